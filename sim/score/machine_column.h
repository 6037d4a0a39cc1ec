// SPDX-License-Identifier: Apache-2.0
// The machines that the rows of one table name, each looked up once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/dtype.h"
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

/// Our name of what tables call bfloat16, float16, half, fp8_e4m3 and so on; nothing for other formats.
std::optional<DType> dtype_in_table(std::string_view word);

}  // namespace commfuse::score
