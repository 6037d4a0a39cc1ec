// SPDX-License-Identifier: Apache-2.0
// Finds the machines that the rows of a table name, and looks up each name once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/score/kinds.h"

namespace commfuse::score {

/// Returns "vLLM" or "SGLang" if a table's `# software:` names it, as in "vllm/0.24.0"; otherwise an empty text.
std::string_view framework_in(std::string_view software);

class MachineColumn {
 public:
  /// With a framework, prefers the hardware file that is known by the names of both machine and framework, such as
  /// "H100-SXM5 vLLM", which describes the framework's own kernels.
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

/// Returns the machine that the comment `# hardware:` of a table names or, without that comment, the machine that the
/// file name names.
FoundMachine machine_of_table(const Table& table, const Context& context);
/// Returns the machine that the comment `# source:` of a table names, otherwise machine_of_table().
FoundMachine machine_of_source(const Table& table, const Context& context);
/// `file_name` must have no extension.
FoundMachine machine_of_table(const Table& table, std::string_view file_name, const KnownMachines& machines);

/// Finds the machine of a row if a comment lists machines by number of GPUs: "ngpus=64: 8 nodes of H100; 72: one
/// GB200 rack; 144: two racks". An entry that names no machine has the machine of the previous entry. The list is empty
/// if the comment has another form.
class MachinesByGpus {
 public:
  MachinesByGpus(std::string_view comment, const KnownMachines& machines);
  [[nodiscard]] bool lists_machines() const { return !by_gpus_.empty(); }
  [[nodiscard]] FoundMachine of(std::int64_t gpus) const;

 private:
  std::map<std::int64_t, FoundMachine> by_gpus_;
};

}  // namespace commfuse::score
