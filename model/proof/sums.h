// SPDX-License-Identifier: Apache-2.0
// Sets of contraction blocks in partial sums. The sets are interned, so that equal sets have equal ids.
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
  /// Returns {first, ..., end - 1}. Requires first < end.
  SumId range(std::int32_t first, std::int32_t end);

  /// The union of sets, or `twice`, the first block that two of them contain.
  struct Union {
    SumId sum = 0;
    std::optional<std::int32_t> twice;
  };
  /// Unites sets. Requires at least one set.
  Union unite(std::span<const SumId> parts);

  /// Returns the set of the images of the blocks under `cycle`.
  SumId moved(SumId sum, const Cycle& cycle);

  /// Returns, for example, "{0,3}" or "{0-3,6}".
  [[nodiscard]] std::string in_words(SumId sum) const;

 private:
  struct Interval {
    std::int32_t first = 0;
    std::int32_t end = 0;
    friend bool operator==(const Interval&, const Interval&) = default;
  };
  using Set = std::span<const Interval>;  // sorted, disjoint, with gaps between
  struct Place {                          // place of a set in runs_
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

  std::vector<Interval> runs_;    // intervals of all sets, one set after another
  std::vector<Place> sets_;       // by id
  std::vector<SumId> ids_;        // a hash table: a set's id is at the first free place from its hash on
  std::vector<Interval> joined_;  // scratch space
  Interval last_range_;           // the last requested range, since it is often requested again
  SumId last_range_id_ = 0;
};

}  // namespace commfuse
