// SPDX-License-Identifier: Apache-2.0
// Dependencies among ops and tasks of a rank: by lanes and waits, or by the memory that they touch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/lower.h"
#include "model/program/order.h"

namespace commfuse::reports {

/// Returns the candidates, without doubles and without those that end before another one starts, which implies them.
/// Ascending. Requires that all of them take part.
std::vector<OpId> unimplied(const Order& order, std::vector<OpId> candidates);

/// Remembers the tasks that touched each memory of a rank, which the next task to touch it waits for.
class MemoryOrder {
 public:
  /// Operands are rectangles stacked by rows.
  using Operands = std::vector<std::vector<Rectangle>>;

  explicit MemoryOrder(std::size_t buffers) : reads_(buffers), writes_(buffers) {}

  /// Returns the tasks so far that wrote a part of `reads` or touched a part of `writes`. Ascending.
  [[nodiscard]] std::vector<std::int32_t> conflicts(const Operands& reads, const Operands& writes) const;

  /// Notes that `task` reads and writes these operands. Accesses wholly under a write are forgotten: the next task to
  /// touch that memory waits for the writer, which waits for the tasks before.
  void note(std::int32_t task, const Operands& reads, const Operands& writes);

 private:
  struct Access {
    Rectangle where;
    std::int32_t task = 0;
  };
  std::vector<std::vector<Access>> reads_, writes_;  // by buffer
};

}  // namespace commfuse::reports
