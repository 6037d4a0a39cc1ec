// SPDX-License-Identifier: Apache-2.0
// Reads the ops of a schedule text. Every requirement of ProgramBuilder is checked here first, with a place and a
// remedy.
#pragma once

#include <string>

#include "model/program/builder.h"
#include "model/program_text/fields.h"

namespace commfuse::text {

/// Reads the ops and collects all mistakes; adds ops to `builder` only until the first mistake.
void read_ops(const Node& list, const Surroundings& around, std::span<const Dimension> dimensions,
              ProgramBuilder& builder, Mistakes& mistakes);

/// Returns "tokens*4".
std::string in_words(Extent extent, std::span<const Dimension> dimensions);

/// Returns a declared dimension of one block; an attention uses such dimensions for its number of sequences and its
/// head size.
DimensionId one_block_of(const Node& node, const Names& names, std::span<const Dimension> dimensions);

}  // namespace commfuse::text
