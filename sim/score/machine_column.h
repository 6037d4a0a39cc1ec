// SPDX-License-Identifier: Apache-2.0
// Finds the machines that the rows of one table name, and looks each up once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/score/kinds.h"

namespace commfuse::score {

/// Returns "vLLM" or "SGLang" where a table's `# software:` says "vllm/0.24.0" or the like; otherwise nothing.
std::string_view framework_in(std::string_view software);

class MachineColumn {
 public:
  /// Reads the cells of a column. A framework with kernels of its own is a machine of its own where a hardware file is
  /// known by both names: "H100-SXM5 vLLM".
  explicit MachineColumn(const KnownMachines& machines, std::string_view framework = {})
      : machines_(machines), framework_(framework) {}

  const FoundMachine& of(std::string_view cell) {
    for (const auto& [name, machine] : known_) {
      if (name == cell) {
        return machine;
      }
    }
    return known_.emplace_back(cell, look_up(cell)).second;
  }

 private:
  [[nodiscard]] FoundMachine look_up(std::string_view cell) const;

  const KnownMachines& machines_;
  std::string_view framework_;
  std::vector<std::pair<std::string_view, FoundMachine>> known_;
};

/// Returns the machine that the comments of a table name, otherwise the one that its file name names.
FoundMachine machine_of_table(const Table& table, const Context& context);
/// `file_name` is without its ending.
FoundMachine machine_of_table(const Table& table, std::string_view file_name, const KnownMachines& machines);

/// Finds the machine of a row where a comment lists machines by GPUs: "ngpus=64: 8 nodes of H100; 72: one GB200 rack;
/// 144: two racks". An entry without a machine has that of the entry before. Nothing if the comment is not such a
/// list.
class MachinesByGpus {
 public:
  MachinesByGpus(std::string_view comment, const KnownMachines& machines);
  [[nodiscard]] bool tells() const { return !by_gpus_.empty(); }
  [[nodiscard]] FoundMachine of(std::int64_t gpus) const;

 private:
  std::map<std::int64_t, FoundMachine> by_gpus_;
};

}  // namespace commfuse::score
