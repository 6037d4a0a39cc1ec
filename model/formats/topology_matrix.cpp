// SPDX-License-Identifier: Apache-2.0
// Derives the wires of a node from the table of `nvidia-smi topo -m`, or from the tables of AMD's tools. A table shows
// NVLinks in place of the PCIe path, so only pairs without NVLinks are placed under switches and sockets. The table
// does not distinguish a crossbar from single wires: a GPU that would need more NVLinks than any GPU has is on a
// crossbar.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "model/config_error.h"
#include "model/formats/topology_file.h"
#include "model/formats/topology_table.h"

namespace commfuse {

namespace {

using Level = MeetingLevel;
using Cell = MeetingCell;

/// Disjoint groups of GPUs, which can be merged.
class Groups {
 public:
  explicit Groups(int count) : first_(static_cast<std::size_t>(count)) { std::iota(first_.begin(), first_.end(), 0); }
  /// Returns the lowest GPU of a GPU's group, which names the group.
  [[nodiscard]] int of(int gpu) const { return first_[static_cast<std::size_t>(gpu)]; }
  void unite(int a, int b) {
    const int low = std::min(of(a), of(b));
    const int high = std::max(of(a), of(b));
    std::replace(first_.begin(), first_.end(), high, low);
  }

 private:
  std::vector<int> first_;
};

class Wiring {
 public:
  Wiring(const std::string& path, TopologyTable table, const WireRates& rates)
      : path_(path), table_(std::move(table)), rates_(rates) {}

  NodeWires wire() {
    wires_.gpus = table_.gpus;
    require_symmetry();
    add_nvlinks();
    add_buses();
    wires_.nic_of_gpu = nearest_nics(nic_distances());
    return std::move(wires_);
  }

 private:
  [[noreturn]] void refuse(YamlPlace place, const std::string& message) const {
    throw ConfigError(at_place(path_, place, message));
  }
  [[nodiscard]] const Cell& cell(int gpu, int device) const {
    return table_.cells[static_cast<std::size_t>(gpu)][static_cast<std::size_t>(device)];
  }
  [[nodiscard]] const std::string& name(int gpu) const { return table_.names[static_cast<std::size_t>(gpu)]; }
  int add(VertexKind kind) {
    wires_.others.push_back(kind);
    return wires_.gpus + static_cast<int>(wires_.others.size()) - 1;
  }

  /// Calls visit(a, b) for every pair a < b.
  template <class Visit>
  void for_each_pair(const Visit& visit) const {
    for (int a = 0; a < table_.gpus; ++a) {
      for (int b = a + 1; b < table_.gpus; ++b) {
        visit(a, b);
      }
    }
  }

  void require_symmetry() const {
    for (int gpu = 0; gpu < table_.gpus; ++gpu) {
      if (cell(gpu, gpu).level != Level::self) {
        refuse(cell(gpu, gpu).place,
               fmt::format("the connection of {} with itself must be X; correct the cell", name(gpu)));
      }
    }
    for_each_pair([&](int a, int b) {
      const Cell& forth = cell(a, b);
      const Cell& back = cell(b, a);
      if (forth.level == Level::self || forth.level != back.level || forth.links != back.links) {
        refuse(back.place, fmt::format("this contradicts row {}, column {}; {}", name(a), name(b), table_.tool));
      }
    });
  }

  [[nodiscard]] BytesPerSecond rate(const std::optional<BytesPerSecond>& given, const Cell& needed,
                                    std::string_view what, std::string_view key) const {
    if (!given) {
      refuse(needed.place, fmt::format("the table does not state the rate of {}; set {} next to the file", what, key));
    }
    return *given;
  }
  [[nodiscard]] BytesPerSecond nvlinks(const Cell& crossing) const {
    return {crossing.links * rate(rates_.nvlink, crossing, table_.link, "nvlink_rate").value};
  }

  /// Adds a wire for each pair with NVLinks, or a crossbar for GPUs that would need too many links. Crossbars come
  /// before bridges, so that routes prefer them to bridges with the same number of hops.
  void add_nvlinks() {
    Groups groups(table_.gpus);
    std::vector<int> links(static_cast<std::size_t>(table_.gpus));
    for_each_pair([&](int a, int b) {
      if (cell(a, b).level == Level::nvlink) {
        groups.unite(a, b);
        links[static_cast<std::size_t>(a)] += cell(a, b).links;
        links[static_cast<std::size_t>(b)] += cell(a, b).links;
      }
    });
    std::set<int> switched;  // groups with a crossbar
    for (int gpu = 0; gpu < table_.gpus; ++gpu) {
      if (table_.may_have_crossbar && links[static_cast<std::size_t>(gpu)] > max_nvlinks) {
        switched.insert(groups.of(gpu));
      }
    }
    for (const int group : switched) {
      add_crossbar(group, groups);
    }
    for_each_pair([&](int a, int b) {
      if (cell(a, b).level == Level::nvlink && switched.count(groups.of(a)) == 0) {
        wires_.edges.push_back({a, b, nvlinks(cell(a, b))});
      }
    });
  }

  void add_crossbar(int group, const Groups& groups) {
    const int crossbar = add(VertexKind::crossbar);
    for (int gpu = 0; gpu < table_.gpus; ++gpu) {
      if (groups.of(gpu) == group) {
        const std::vector<Cell>& row = table_.cells[static_cast<std::size_t>(gpu)];
        const auto widest = std::max_element(row.begin(), row.begin() + table_.gpus,
                                             [](const Cell& a, const Cell& b) { return a.links < b.links; });
        wires_.edges.push_back({gpu, crossbar, nvlinks(*widest)});
      }
    }
  }

  /// Adds switches and sockets: at each level of the table, one vertex for each group of GPUs that meet there.
  void add_buses() {
    Groups groups(table_.gpus);
    std::vector<int> top(static_cast<std::size_t>(table_.gpus));  // for each GPU, the highest vertex above it so far
    std::iota(top.begin(), top.end(), 0);
    for (const Level level : {Level::pix, Level::pxb, Level::phb, Level::node}) {
      require_not_joined(groups, level);
      for_each_pair([&](int a, int b) {
        if (cell(a, b).level == level) {
          groups.unite(a, b);
          pcie_ = rate(rates_.pcie, cell(a, b), "PCIe", "pcie_rate");
        }
      });
      add_level(level < Level::phb ? VertexKind::bridge : VertexKind::root, groups, top);
    }
    require_not_joined(groups, Level::sys);
    join_numa_nodes(groups, top);
    join_sockets(groups, top);
  }

  /// Refuses a table in which a pair that meets at this level or above is already joined at a lower level.
  void require_not_joined(const Groups& groups, Level level) const {
    for_each_pair([&](int a, int b) {
      if (cell(a, b).level >= level && groups.of(a) == groups.of(b)) {
        refuse(cell(a, b).place,
               fmt::format("{} and {} are farther apart in this cell than their connections to other GPUs allow; {}",
                           name(a), name(b), table_.tool));
      }
    });
  }

  /// Adds one vertex above each group that has several topmost vertices.
  void add_level(VertexKind kind, const Groups& groups, std::vector<int>& top) {
    for (int group = 0; group < table_.gpus; ++group) {
      std::set<int> parts;
      for (int gpu = 0; gpu < table_.gpus; ++gpu) {
        if (groups.of(gpu) == group) {
          parts.insert(top[static_cast<std::size_t>(gpu)]);
        }
      }
      if (parts.size() < 2) {
        continue;
      }
      const int above = add(kind);
      for (const int part : parts) {
        wires_.edges.push_back({part, above, pcie_});
      }
      for (int& vertex : top) {
        vertex = parts.count(vertex) > 0 ? above : vertex;
      }
    }
  }

  /// Puts the GPUs of each NUMA node under one root, because NVLinks may hide that they meet over PCIe. Does nothing if
  /// no pair meets between NUMA nodes, since the roots would have no use, or if the table contradicts its NUMA nodes.
  void join_numa_nodes(Groups& groups, std::vector<int>& top) {
    bool meets_between = false;
    bool meets_within = false;
    for_each_pair([&](int a, int b) {
      const bool is_far = cell(a, b).level == Level::sys;
      meets_between = meets_between || is_far;
      meets_within = meets_within || (is_far && shares_numa_node(a, b));
    });
    if (!meets_between || meets_within) {
      return;
    }
    for_each_pair([&](int a, int b) {
      if (shares_numa_node(a, b)) {
        groups.unite(a, b);
        pcie_ = rate(rates_.pcie, cell(a, b), "PCIe", "pcie_rate");
      }
    });
    add_level(VertexKind::root, groups, top);
  }

  [[nodiscard]] bool shares_numa_node(int a, int b) const {
    return !table_.numa.empty() && table_.numa[static_cast<std::size_t>(a)] == table_.numa[static_cast<std::size_t>(b)];
  }

  /// Joins groups that meet between sockets. Each group has its own root.
  void join_sockets(const Groups& groups, const std::vector<int>& top) {
    std::set<int> far_groups;
    for_each_pair([&](int a, int b) {
      if (cell(a, b).level == Level::sys) {
        far_groups.insert({groups.of(a), groups.of(b)});
        pcie_ = rate(rates_.pcie, cell(a, b), "PCIe", "pcie_rate");
      }
    });
    std::vector<int> roots;
    for (const int group : far_groups) {
      int root = top[static_cast<std::size_t>(group)];
      const bool is_root =
          root >= table_.gpus && wires_.others[static_cast<std::size_t>(root - table_.gpus)] == VertexKind::root;
      if (!is_root) {
        root = add(VertexKind::root);
        wires_.edges.push_back({top[static_cast<std::size_t>(group)], root, pcie_});
      }
      for (const int other : roots) {
        if (rates_.root) {
          wires_.edges.push_back({other, root, *rates_.root});
        }
      }
      roots.push_back(root);
    }
  }

  [[nodiscard]] std::vector<std::vector<int>> nic_distances() const {
    std::vector<std::vector<int>> distances;
    for (const std::vector<Cell>& row : table_.cells) {
      std::vector<int> gpu_distances;
      for (auto nic = row.begin() + table_.gpus; nic != row.end(); ++nic) {
        gpu_distances.push_back(static_cast<int>(nic->level));
      }
      distances.push_back(std::move(gpu_distances));
    }
    return distances;
  }

  const std::string& path_;
  TopologyTable table_;
  const WireRates& rates_;
  NodeWires wires_;
  BytesPerSecond pcie_;
};

}  // namespace

NodeWires wires_of(const std::string& path, TopologyTable table, const WireRates& rates) {
  return Wiring(path, std::move(table), rates).wire();
}

NodeWires read_topology_matrix(const std::string& path, const std::string& text, const WireRates& rates) {
  return wires_of(path, read_topology_table(path, text), rates);
}

NodeWires read_rocm_topology(const std::string& path, const std::string& text, const WireRates& rates) {
  return wires_of(path, read_rocm_table(path, text), rates);
}

}  // namespace commfuse
