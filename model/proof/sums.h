// SPDX-License-Identifier: Apache-2.0
// Which contraction blocks a partial sum has counted: interned sets, so that equal sets have equal ids.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/proof/rotation.h"

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
  using Set = std::span<const Interval>;  // sorted, disjoint, with gaps between
  struct Place {                          // of a set in runs_
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t hash = 0;
  };

  [[nodiscard]] Set set_of(SumId sum) const {
    const Place& place = sets_[static_cast<std::size_t>(sum)];
    return Set(runs_).subspan(place.first, place.count);
  }
  SumId intern(Set set);
  void grow();
  std::optional<std::int32_t> join();
  void move(const Interval& run, const Cycle& cycle);

  std::vector<Interval> runs_;    // of all sets, one after another
  std::vector<Place> sets_;       // by id
  std::vector<SumId> ids_;        // a hash table: a set's id stands at the first place from its hash on that was free
  std::vector<Interval> joined_;  // room to work in
  Interval last_range_;           // that was asked for, often again and again
  SumId last_range_id_ = 0;
};

}  // namespace commfuse
