// SPDX-License-Identifier: Apache-2.0
// Names of ops for people: the kind and the output, "gemm gate_up[3]", "exchange gathered[2]".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/program/program.h"

namespace commfuse::reports {

/// Text and an optional index, whose value on a rank follows the text.
struct LabelPiece {
  std::string text;
  std::optional<Index> index;
};

/// Returns the pieces of an op's name, which are identical on all ranks except for the values of the indices. The name
/// includes the output, or the input of an op that has no output. Positions are in blocks, as in the schedule's text:
/// "y[2 +: 2]" is two blocks starting at block 2.
std::vector<LabelPiece> label_pieces(const Program& program, const Op& op);

/// Returns the whole name on one rank.
std::string op_label(const Program& program, const Op& op, Rank rank);

/// Returns the strategy with its parameters: "commfuse (ring)", "serial".
std::string strategy_label(const std::string& strategy, const std::string& parameters);

/// Turns a name in an explanation into the terms of the field: "GEMM 4K x 7K x 8K" gets multiplication signs, and
/// "memory-bound of 84 MiB" becomes "memory-bound op of 84 MiB". Other names stay unchanged.
std::string op_in_words(std::string name);

}  // namespace commfuse::reports
