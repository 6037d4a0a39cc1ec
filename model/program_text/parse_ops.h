// SPDX-License-Identifier: Apache-2.0
// The ops of a schedule text: every demand of ProgramBuilder is met here with a place and a remedy.
#pragma once

#include <string>

#include "model/program/builder.h"
#include "model/program_text/fields.h"

namespace commfuse::text {

/// Notes every mistake; adds to `builder` only while there is none.
void read_ops(const Node& list, const Surroundings& around, std::span<const Dimension> dimensions,
              ProgramBuilder& builder, Mistakes& mistakes);

/// "tokens*4".
std::string in_words(Extent extent, std::span<const Dimension> dimensions);

/// A declared dimension of one block: attention takes the number of sequences and the size of a head from such.
DimensionId one_block_of(const Node& node, const Names& names, std::span<const Dimension> dimensions);

}  // namespace commfuse::text
