// SPDX-License-Identifier: Apache-2.0
// The machines that the rows of one table name, each looked up once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/score/kinds.h"

namespace commfuse::score {

class MachineColumn {
 public:
  /// By the cells of a column.
  explicit MachineColumn(const KnownMachines& machines) : machines_(machines) {}

  const FoundMachine& of(std::string_view cell) {
    for (const auto& [name, found] : known_) {
      if (name == cell) {
        return found;
      }
    }
    return known_.emplace_back(cell, machines_.by_name(cell)).second;
  }

 private:
  const KnownMachines& machines_;
  std::vector<std::pair<std::string_view, FoundMachine>> known_;
};

/// The machine that the comments of a table name, or else the name of its file.
FoundMachine machine_of_table(const Table& table, const Context& context);

/// The machine of a row where the comment tells rows apart by their GPUs, "ngpus=64: 8 nodes of H100; 72: one GB200
/// rack; 144: two racks": what names no machine has the one before. Nothing where the comment is not such a list.
class MachinesByGpus {
 public:
  MachinesByGpus(std::string_view comment, const KnownMachines& machines);
  [[nodiscard]] bool tells() const { return !by_gpus_.empty(); }
  [[nodiscard]] FoundMachine of(std::int64_t gpus) const;

 private:
  std::map<std::int64_t, FoundMachine> by_gpus_;
};

}  // namespace commfuse::score
