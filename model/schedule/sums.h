// SPDX-License-Identifier: Apache-2.0
// Which contraction blocks a partial sum has counted: interned sets, so that equal sets have equal ids.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/schedule/rotation.h"

namespace commfuse {

using SumId = std::int32_t;

class Sums {
 public:
  /// {first, ..., end - 1}. Requires first < end.
  SumId range(std::int32_t first, std::int32_t end);

  /// The union, or the first block that two of them count.
  struct Union {
    SumId sum = 0;
    std::optional<std::int32_t> twice;
  };
  /// Requires at least one.
  Union unite(std::span<const SumId> parts);

  /// The blocks that these blocks come to.
  SumId moved(SumId sum, const Cycle& cycle);

  /// "{0,3}", "{0-3,6}".
  [[nodiscard]] std::string in_words(SumId sum) const;

 private:
  struct Interval {
    std::int32_t first = 0;
    std::int32_t end = 0;
    friend bool operator==(const Interval&, const Interval&) = default;
  };
  using Set = std::vector<Interval>;  // sorted, disjoint, with gaps between
  struct Hash {
    std::size_t operator()(const Set& set) const;
  };

  SumId intern(const Set& set);
  std::optional<std::int32_t> join();
  void move(const Interval& run, const Cycle& cycle);

  std::unordered_map<Set, SumId, Hash> ids_;  // only looked up, never walked
  std::vector<const Set*> sets_;              // by id: the keys of ids_, which stay where they are
  Set joined_;                                // room to work in
};

}  // namespace commfuse
