// SPDX-License-Identifier: Apache-2.0
// Finds the machine that a table names, by the names of machines and accelerators and by `known_as` in the files of
// configs/hardware and configs/clusters.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/hardware/machine.h"

namespace commfuse::score {

/// A machine, or the reason why none was found.
struct FoundMachine {
  const Machine* machine = nullptr;
  std::string why_not;
  bool is_left_out = false;  ///< A machine was found, but keep_only() leaves it out.

  /// Returns whether the text named a machine, even one that is left out.
  [[nodiscard]] bool was_named() const { return machine != nullptr || is_left_out; }
};

/// Compares names word by word, ignoring case and separators: "A100-SXM4-80GB" has the words a100, sxm4 and 80gb. The
/// longest matching name wins. A name followed by a word such as PCIe, or by a memory size that differs from the
/// machine's, means another machine.
class KnownMachines {
 public:
  /// Loads the catalogue. Throws ConfigError with the mistakes in a file.
  KnownMachines();
  /// Uses only `machines`. Machines with several nodes count as clusters.
  explicit KnownMachines(std::vector<Machine> machines);

  /// Keeps only the one-node machines with these names. Without names, nothing is left out. Clusters stay for
  /// over_nodes(), which finds them by their nodes.
  void keep_only(std::vector<std::string> names) { kept_ = std::move(names); }

  /// Returns the machine, or nothing with the reason if keep_only() leaves it out. A cluster is also kept if the
  /// hardware of its nodes is.
  [[nodiscard]] FoundMachine unless_left_out(const Machine& machine) const;

  /// Finds the machine that a cell of a table names. Each word of the cell must belong to the machine's name, be its
  /// memory size, or be a neutral word such as "nvidia" or "gpus".
  [[nodiscard]] FoundMachine by_name(std::string_view cell) const;
  /// Finds the machine that a comment in prose names. Fails if the comment names several machines, or none that is
  /// known.
  [[nodiscard]] FoundMachine in_prose(std::string_view text) const;
  /// Returns a cluster whose nodes are like `node`, resized to `nodes` nodes: preferably a cluster that `text` names,
  /// otherwise a cluster without `known_as`. For one node, returns the machine itself.
  FoundMachine over_nodes(const Machine& node, int nodes, std::string_view text);
  /// Returns the node with `kernel` for its all-reduces; fails if the node has no fitted times of `kernel`.
  FoundMachine with_all_reduce(const Machine& node, AllReduceKernel kernel);

 private:
  std::vector<std::string> kept_;  // names given to keep_only()
  std::vector<Machine> machines_;  // machines of one node
  std::vector<Machine> clusters_;
  std::map<std::tuple<std::string, int>, Machine> resized_;
  std::map<std::tuple<std::string, AllReduceKernel>, Machine> with_kernel_;
};

}  // namespace commfuse::score
