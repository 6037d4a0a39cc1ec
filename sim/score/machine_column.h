// SPDX-License-Identifier: Apache-2.0
// The machines that the rows of one table name, each looked up once.
#pragma once

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

}  // namespace commfuse::score
