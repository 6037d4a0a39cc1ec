// SPDX-License-Identifier: Apache-2.0
// Joins tables into one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace commfuse {

/// Returns `before`, then the results of `make.template operator()<index>()` for the indices 0 to count - 1, then
/// `after`.
template <std::size_t count, class Entry, std::size_t entries_before, std::size_t entries_after>
constexpr auto joined(const std::array<Entry, entries_before>& before, auto make,
                      const std::array<Entry, entries_after>& after) {
  std::array<Entry, entries_before + count + entries_after> entries{};
  auto next = std::copy(before.begin(), before.end(), entries.begin());
  [&]<std::size_t... index>(std::index_sequence<index...>) { ((*next++ = make.template operator()<index>()), ...); }
  (std::make_index_sequence<count>{});
  std::copy(after.begin(), after.end(), next);
  return entries;
}

/// Returns the entries of all tables, in their order.
template <class Entry, std::size_t... sizes>
constexpr auto concatenated(const std::array<Entry, sizes>&... tables) {
  std::array<Entry, (sizes + ...)> entries{};
  auto next = entries.begin();
  ((next = std::copy(tables.begin(), tables.end(), next)), ...);
  return entries;
}

}  // namespace commfuse
