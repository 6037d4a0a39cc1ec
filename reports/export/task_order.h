// SPDX-License-Identifier: Apache-2.0
// Which ops and tasks of a rank wait for which: by lanes and waits, or by the memory they touch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/lower.h"
#include "model/program/order.h"

namespace commfuse::reports {

/// The candidates that none of the others implies: all that end before another one starts are left out, and doubles.
/// Ascending. Requires that all of them take part.
std::vector<OpId> unimplied(const Order& order, std::vector<OpId> candidates);

/// Remembers who touched which memory of a rank, and so whom the next one to touch it waits for.
class MemoryOrder {
 public:
  /// Operands: rectangles stacked by rows.
  using Operands = std::vector<std::vector<Rectangle>>;

  explicit MemoryOrder(std::size_t buffers) : reads_(buffers), writes_(buffers) {}

  /// Of the tasks noted so far, those that wrote what is read here or touched what is written here. Ascending.
  [[nodiscard]] std::vector<std::int32_t> conflicts(const Operands& reads, const Operands& writes) const;

  /// `task` reads and writes these. What lies wholly under a write is forgotten: whoever touches it next waits for the
  /// writer, and the writer waits for those before.
  void note(std::int32_t task, const Operands& reads, const Operands& writes);

 private:
  struct Access {
    Rectangle where;
    std::int32_t task = 0;
  };
  std::vector<std::vector<Access>> reads_, writes_;  // by buffer
};

}  // namespace commfuse::reports
