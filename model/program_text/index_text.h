// SPDX-License-Identifier: Apache-2.0
// The small grammar inside the schedule text: extents, indices, regions, predicates, lanes. text.h has examples.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/builder.h"
#include "model/program/program.h"

namespace commfuse::text {

/// Mistake in a string, and its position. The parse functions of this file throw it.
struct TextError {
  std::size_t at = 0;
  std::string message;  // "sentence; remedy"
};

// Limits that keep every position, sum and product of a valid text inside 32 bits.
inline constexpr std::int64_t max_blocks = std::int64_t{1} << 24;
inline constexpr std::int64_t max_ranks = std::int64_t{1} << 20;
inline constexpr std::int64_t max_distance = std::int64_t{1} << 28;  // limit of an index's constant, and of each term
inline constexpr std::uint16_t max_lane_number = 255;

/// Declared names and their indices in the program.
using Names = std::map<std::string, std::int32_t, std::less<>>;

/// Returns the remedy for an undeclared name.
std::string remedy_for_name(std::string_view wrong, const Names& names, std::string_view what);

/// Returns true if a dimension, tensor, buffer or axis may have this name: up to 100 letters, digits, '_' and '.',
/// beginning with a letter or '_'.
bool is_name(std::string_view text);

/// Parses "tokens*4".
Extent parse_extent(std::string_view text, const Names& dimensions);
/// Parses "2*((tp+1)%4)+1"; offsets are brought into [0, extent).
Index parse_index(std::string_view text, const Mesh& mesh);
/// Parses "tp < 3".
Predicate parse_predicate(std::string_view text, const Mesh& mesh);
/// Parses "comm" or "comm2".
Lane parse_lane(std::string_view text);

/// Names that regions may use.
struct Surroundings {
  const Mesh& mesh;
  const Names& names;  // names of buffers
  std::span<const Buffer> buffers;
};

/// Parses "x", "y[(tp+3)%4]" or "y[2*tp +: 2, 0]". Positions that are equal on all ranks must lie inside the buffer.
Region parse_region(std::string_view text, const Surroundings& around);
/// Parses "y[0]; y[4]": one or more regions of equal width, over the same dimensions, with a total of at most
/// max_blocks rows.
Operand parse_operand(std::string_view text, const Surroundings& around);

}  // namespace commfuse::text
