// SPDX-License-Identifier: Apache-2.0
#include "reports/export/task_order.h"

#include <algorithm>

namespace commfuse::reports {

namespace {

bool overlap(const Rectangle& a, const Rectangle& b) {
  return a.row < b.row + b.rows && b.row < a.row + a.rows && a.column < b.column + b.columns &&
         b.column < a.column + a.columns;
}

bool covers(const Rectangle& over, const Rectangle& under) {
  return over.row <= under.row && under.row + under.rows <= over.row + over.rows && over.column <= under.column &&
         under.column + under.columns <= over.column + over.columns;
}

void sort_without_doubles(auto& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

std::vector<OpId> unimplied(const Order& order, std::vector<OpId> candidates) {
  sort_without_doubles(candidates);
  std::vector<OpId> needed;
  for (const OpId candidate : candidates) {
    if (std::none_of(candidates.begin(), candidates.end(),
                     [&](OpId other) { return other != candidate && order.before(candidate, other); })) {
      needed.push_back(candidate);
    }
  }
  return needed;
}

std::vector<std::int32_t> MemoryOrder::conflicts(const Operands& reads, const Operands& writes) const {
  std::vector<std::int32_t> tasks;
  const auto add_tasks = [&](const Operands& operands, const std::vector<std::vector<Access>>& earlier) {
    for (const std::vector<Rectangle>& operand : operands) {
      for (const Rectangle& area : operand) {
        for (const Access& access : earlier[position(area.buffer)]) {
          if (overlap(access.where, area)) {
            tasks.push_back(access.task);
          }
        }
      }
    }
  };
  add_tasks(reads, writes_);
  add_tasks(writes, writes_);
  add_tasks(writes, reads_);
  sort_without_doubles(tasks);
  return tasks;
}

void MemoryOrder::note(std::int32_t task, const Operands& reads, const Operands& writes) {
  for (const std::vector<Rectangle>& operand : reads) {
    for (const Rectangle& area : operand) {
      reads_[position(area.buffer)].push_back({area, task});
    }
  }
  for (const std::vector<Rectangle>& operand : writes) {
    for (const Rectangle& area : operand) {
      const auto covered = [&](const Access& access) { return covers(area, access.where); };
      std::erase_if(reads_[position(area.buffer)], covered);
      std::erase_if(writes_[position(area.buffer)], covered);
      writes_[position(area.buffer)].push_back({area, task});
    }
  }
}

}  // namespace commfuse::reports
