// SPDX-License-Identifier: Apache-2.0
// Names of ops for people: the kind and the output, "gemm gate_up[3]", "exchange gathered[2]".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/program/program.h"

namespace commfuse::reports {

/// Text, followed by the value of an index on a rank if there is an index.
struct LabelPiece {
  std::string text;
  std::optional<Index> index;
};

/// Returns the pieces of a name, which are equal on all ranks except for the values of the indices. They name the
/// output; for an op without one, what it sends. Positions are in blocks, as in the schedule's text: "y[2 +: 2]" is two
/// blocks from block 2.
std::vector<LabelPiece> label_pieces(const Program& program, const Op& op);

/// Returns the whole name on one rank.
std::string op_label(const Program& program, const Op& op, Rank rank);

/// "commfuse (ring)", "serial": the strategy with its parameters.
std::string strategy_label(const std::string& strategy, const std::string& parameters);

/// "GEMM 4K x 7K x 8K" of "product 4K x 7K x 8K", with the sign of multiplication, and "memory-bound op of 84 MiB":
/// what explanations name, in the words of the field. Names of parameters stay as they are.
std::string op_in_words(std::string name);

}  // namespace commfuse::reports
