// SPDX-License-Identifier: Apache-2.0
// Numbers of elements per block, which a point adds to the structure of a schedule.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/program.h"
#include "model/units.h"

namespace commfuse {

/// Elements per block, by DimensionId.
struct Sizes {
  std::vector<std::int64_t> block;

  [[nodiscard]] std::int64_t elements(Extent extent) const { return extent.blocks * block[position(extent.dimension)]; }
};

/// The whole size of a dimension in elements: {"tokens", 32768}.
struct Quantity {
  std::string_view dimension;
  std::int64_t elements = 0;
};

/// Returns the elements per block for these quantities. Throws ConfigError when a quantity is not a positive multiple
/// of its dimension's number of blocks, or when a slice of queries would contain different positions of the sequences
/// in a batch; aborts when a quantity is missing.
Sizes bind_sizes(const Program& program, std::span<const Quantity> quantities);

/// Returns the reason for which bind_sizes() throws for these quantities; empty if it does not throw.
std::string refusal_of(const Program& program, std::span<const Quantity> quantities);

/// Returns the total memory of one rank's buffers.
Bytes bytes_per_rank(const Program& program, const Sizes& sizes);

}  // namespace commfuse
