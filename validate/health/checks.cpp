// SPDX-License-Identifier: Apache-2.0
#include "validate/health/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "validate/health/check_list.h"

namespace commfuse::validate {

namespace {

using Look = void (*)(const NodeFacts& node, const ManagementFacts& management, CheckList& list);

struct NamedLook {
  std::string_view name;
  Look look;
};

constexpr std::array looks{NamedLook{"driver", look_at_driver},
                           NamedLook{"peers", look_at_peers},
                           NamedLook{"fabric", look_at_fabric},
                           NamedLook{"ecc", look_at_ecc},
                           NamedLook{"xid", look_at_xids},
                           NamedLook{"clocks", look_at_clocks},
                           NamedLook{"pcie", look_at_pcie},
                           NamedLook{"numa", look_at_numa},
                           NamedLook{"rdma", look_at_rdma},
                           NamedLook{"roce", look_at_roce},
                           NamedLook{"congestion", look_at_congestion},
                           NamedLook{"gdr", look_at_gdr},
                           NamedLook{"acs", look_at_acs},
                           NamedLook{"iommu", look_at_iommu}};

constexpr auto names = [] {
  std::array<std::string_view, looks.size()> look_names{};
  for (std::size_t i = 0; i < looks.size(); ++i) {
    look_names[i] = looks[i].name;
  }
  return look_names;
}();

}  // namespace

std::string name_of_port(const RdmaPort& port) { return fmt::format("{}/{}", port.device, port.number); }

std::span<const std::string_view> health_check_names() { return names; }

std::vector<HealthCheck> health_checks(const NodeFacts& node, const ManagementFacts& management,
                                       std::span<const std::string> skipped) {
  std::vector<HealthCheck> checks;
  for (const NamedLook& named : looks) {
    if (std::find(skipped.begin(), skipped.end(), named.name) != skipped.end()) {
      continue;
    }
    CheckList list{std::string(named.name)};
    named.look(node, management, list);
    for (HealthCheck& check : list.take()) {
      checks.push_back(std::move(check));
    }
  }
  return checks;
}

}  // namespace commfuse::validate
