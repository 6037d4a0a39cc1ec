// SPDX-License-Identifier: Apache-2.0
// From what a table calls a machine to ours: `known_as` of the files in configs/hardware and configs/clusters.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/hardware/machine.h"

namespace commfuse::score {

/// A machine, or a sentence why there is none.
struct FoundMachine {
  const Machine* machine = nullptr;
  std::string why_not;
};

/// Words are compared without case and without what joins them: "A100-SXM4-80GB" is the words a100, sxm4, 80gb. The
/// longest name wins. A size of memory that is not the machine's own, or a word such as PCIe behind its name, tells
/// another machine.
class KnownMachines {
 public:
  /// Loads the catalogue. Throws ConfigError with the mistakes of a file.
  KnownMachines();
  /// These and no others; clusters are those of several nodes.
  explicit KnownMachines(std::vector<Machine> machines);

  /// By the cell of a table's column: all its words belong to the name, the maker or the memory.
  [[nodiscard]] FoundMachine by_name(std::string_view cell) const;
  /// By a comment in prose, which names one machine somewhere.
  [[nodiscard]] FoundMachine in_prose(std::string_view text) const;
  /// The cluster of such nodes that `text` names, else the first that has no names of its own, made of `nodes` nodes;
  /// the machine itself for one node.
  FoundMachine over_nodes(const Machine& node, int nodes, std::string_view text);

 private:
  std::vector<Machine> machines_;  // of one node
  std::vector<Machine> clusters_;
  std::map<std::tuple<std::string, int>, Machine> resized_;
};

}  // namespace commfuse::score
