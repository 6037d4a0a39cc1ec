// SPDX-License-Identifier: Apache-2.0
// Dependencies among ops and tasks of a rank: by lanes and waits, or by the memory that they touch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/lower.h"
#include "model/program/order.h"

namespace commfuse::reports {

/// Returns the candidates in ascending order, without duplicates, and without ops that end before another candidate
/// starts: a wait for that candidate implies a wait for them. Requires that the rank takes part in all candidates.
std::vector<OpId> unimplied(const Order& order, std::vector<OpId> candidates);

/// Remembers which tasks read and wrote each part of a rank's memory, to find the tasks for which a later task must
/// wait.
class MemoryOrder {
 public:
  /// Operands are rectangles stacked by rows.
  using Operands = std::vector<std::vector<Rectangle>>;

  explicit MemoryOrder(std::size_t buffers) : reads_(buffers), writes_(buffers) {}

  /// Returns, in ascending order, the earlier tasks that wrote a part of `reads` or touched a part of `writes`.
  [[nodiscard]] std::vector<std::int32_t> conflicts(const Operands& reads, const Operands& writes) const;

  /// Records that `task` reads and writes these operands. Forgets accesses that a write covers completely: the next
  /// task to touch that memory waits for the writer, which waits for the earlier tasks.
  void note(std::int32_t task, const Operands& reads, const Operands& writes);

 private:
  struct Access {
    Rectangle where;
    std::int32_t task = 0;
  };
  std::vector<std::vector<Access>> reads_, writes_;  // by buffer
};

}  // namespace commfuse::reports
