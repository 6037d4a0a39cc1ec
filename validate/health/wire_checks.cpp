// SPDX-License-Identifier: Apache-2.0
// Checks of wires: PCIe, NICs, and the paths between NICs and GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "model/text/quantity.h"
#include "validate/health/check_list.h"

namespace commfuse::validate {

namespace {

std::vector<PciPath> gpus_and_nics(const NodeFacts& node) {
  std::vector<PciPath> paths = node.gpus;
  paths.insert(paths.end(), node.nics.begin(), node.nics.end());
  return paths;
}

std::string kind_in_words(const PciFunction& device) {
  return device.kind == PciKind::gpu ? "GPU" : device.kind == PciKind::nic ? "NIC" : "PCIe switch";
}

/// Returns a string such as "PCIe generation 5 x16".
std::string link_in_words(std::optional<double> speed, std::optional<int> width) {
  return fmt::format("{}{}", speed ? generation_in_words(*speed) : "PCIe", width ? fmt::format(" x{}", *width) : "");
}

template <class Value>
std::optional<Value> lesser(std::optional<Value> a, std::optional<Value> b) {
  return a && b ? std::min(a, b) : a ? a : b;
}

/// A link between a device, or the upper side of a switch, and the port above it.
struct PciLink {
  const PciFunction& below;
  const PciFunction* above;  ///< Null where Linux shows no port.

  [[nodiscard]] std::optional<double> possible_speed() const {
    return above == nullptr ? below.max_speed : lesser(below.max_speed, above->max_speed);
  }
  [[nodiscard]] std::optional<int> possible_width() const {
    return above == nullptr ? below.max_width : lesser(below.max_width, above->max_width);
  }
};

/// Returns the links of a path. Its steps are alternately the lower and the upper end of a link: device and port, upper
/// side of a switch and the port above.
std::vector<PciLink> links_of(const PciPath& path) {
  std::vector<PciLink> links;
  for (std::size_t i = 0; i < path.steps.size(); i += 2) {
    links.push_back({path.steps[i], i + 1 < path.steps.size() ? &path.steps[i + 1] : nullptr});
  }
  return links;
}

void look_at_link(const PciLink& link, CheckList& list) {
  const std::optional<double> speed = link.possible_speed();
  const std::optional<int> width = link.possible_width();
  const bool is_slow = link.below.speed && speed && *link.below.speed < *speed;
  const bool is_narrow = link.below.width && width && *link.below.width < *width;
  const auto finding = [&](std::string wrong, std::string remedy) {
    return CheckList::Finding{
        .subject = link.below.address,
        .found = fmt::format("{} at {}, {} is possible", kind_in_words(link.below),
                             link_in_words(link.below.speed, link.below.width), link_in_words(speed, width)),
        .wrong = std::move(wrong),
        .remedy = std::move(remedy)};
  };
  constexpr double saves_power = 2.5;  // GT/s; many idle GPUs fall back to this speed
  if (is_slow && !is_narrow && link.below.kind == PciKind::gpu && *link.below.speed == saves_power) {
    list.warn(finding("the link is slow, perhaps only while the GPU is idle",
                      "run this again while a program uses the GPU; if it stays slow, reseat the GPU"));
  } else if (is_slow || is_narrow) {
    list.bad(finding("the link runs below the speed or width that both ends support",
                     "reboot; if this recurs, reseat the card and its riser or cable, update the firmware, and "
                     "check the slot's speed in the BIOS"));
  }
}

/// Reports a slot that is slower or narrower than the card in it.
void look_at_slot(const PciLink& link, CheckList& list) {
  const bool is_slow = link.below.max_speed && *link.possible_speed() < *link.below.max_speed;
  const bool is_narrow = link.below.max_width && *link.possible_width() < *link.below.max_width;
  if (is_slow || is_narrow) {
    list.warn(
        {.subject = link.below.address,
         .found = fmt::format("{} for {} in a slot of {}", kind_in_words(link.below),
                              link_in_words(link.below.max_speed, link.below.max_width),
                              link_in_words(link.possible_speed(), link.possible_width())),
         .wrong = "the slot limits the card",
         .remedy =
             "move the card to a faster slot, or raise the slot's limit in the BIOS; otherwise expect the rate of "
             "the slot"});
  }
}

/// Returns a string such as "8 GPUs at PCIe generation 5 x16".
std::string links_in_words(const std::vector<PciPath>& paths) {
  std::map<std::string, std::size_t> counts;
  for (const PciPath& path : paths) {
    ++counts[kind_in_words(path.device()) + "@" + link_in_words(path.device().speed, path.device().width)];
  }
  std::vector<std::string> words;
  for (const auto& [key, count] : counts) {
    const std::size_t at = key.find('@');
    words.push_back(fmt::format("{} at {}", counted(count, key.substr(0, at)), key.substr(at + 1)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

bool is_active(const RdmaPort& port) { return port.state.find("ACTIVE") != std::string::npos; }

/// Returns "DOWN" for "1: DOWN".
std::string state_in_words(const std::string& state) {
  const std::size_t colon = state.find(": ");
  return state.empty() ? "unknown" : colon == std::string::npos ? state : state.substr(colon + 2);
}

void look_at_port(const RdmaPort& port, double fastest_of_kind, CheckList& list) {
  CheckList::Finding finding{
      .subject = name_of_port(port),
      .found = fmt::format("{} port is {}, physically {}", port.layer.empty() ? "RDMA" : port.layer,
                           state_in_words(port.state), state_in_words(port.physical_state))};
  if (!is_active(port)) {
    const bool is_disabled = port.physical_state.find("Disabled") != std::string::npos;
    finding.wrong = is_disabled ? "the port is turned off" : "no traffic goes over this port";
    finding.remedy =
        is_disabled
            ? "turn it on (ip link set up, or mlxlink), or skip this check with --skip rdma if the port is unused"
        : port.layer == "InfiniBand" && state_in_words(port.physical_state) == "LinkUp"
            ? "start a subnet manager (opensm), or look for the port on the switch"
            : "check the cable, the transceiver and the switch's port (mlxlink, ibstat)";
    is_disabled ? list.warn(std::move(finding)) : list.bad(std::move(finding));
  } else if (port.gigabits && *port.gigabits < fastest_of_kind) {
    finding.found = fmt::format("{}, {:g} Gb/s on other ports of this kind", port.rate, fastest_of_kind);
    finding.wrong = "the port runs below its speed";
    finding.remedy = "check the cable, the transceiver and the speed of the switch's port (mlxlink)";
    list.bad(std::move(finding));
  }
}

/// Returns true if a kernel such as "6.1.0-18" shares GPU memory with NICs as DMA-BUF, which Linux does since 5.12.
bool has_dma_buf(const std::string& kernel) {
  constexpr std::int64_t min_major = 5;
  constexpr std::int64_t min_minor = 12;
  const std::size_t dot = kernel.find('.');
  const std::size_t end = dot == std::string::npos ? dot : kernel.find_first_not_of("0123456789", dot + 1);
  const std::optional<std::int64_t> major = parse_integer(kernel.substr(0, dot));
  const std::optional<std::int64_t> minor =
      dot == std::string::npos ? std::nullopt : parse_integer(kernel.substr(dot + 1, end - dot - 1));
  return major && minor && (*major > min_major || (*major == min_major && *minor >= min_minor));
}

/// Bridges on the paths to GPUs and NICs, sorted by whether their ACS redirects requests.
struct AcsBridges {
  std::set<std::string> redirecting, others, unknown;
  bool in_a_switch = false;  ///< True if a bridge that redirects is in a switch.
};

AcsBridges acs_bridges(const NodeFacts& node) {
  constexpr std::size_t with_a_switch = 4;  // device, port, upper side, root port
  AcsBridges bridges;
  for (const PciPath& path : gpus_and_nics(node)) {
    for (const PciFunction& step : path.steps) {
      if (step.kind != PciKind::bridge) {
        continue;
      }
      std::set<std::string>& into = !step.redirects_peers   ? bridges.unknown
                                    : *step.redirects_peers ? bridges.redirecting
                                                            : bridges.others;
      into.insert(step.address);
      const bool is_root_port = &step == &path.steps.back();
      bridges.in_a_switch |=
          step.redirects_peers.value_or(false) && !is_root_port && path.steps.size() >= with_a_switch;
    }
  }
  return bridges;
}

/// Returns the first addresses, and how many more there are.
std::string first_few(const std::set<std::string>& addresses) {
  constexpr std::size_t max_shown = 4;
  std::vector<std::string> shown(addresses.begin(), addresses.end());
  const std::size_t omitted = shown.size() > max_shown ? shown.size() - max_shown : 0;
  shown.resize(shown.size() - omitted);
  return fmt::format("{}{}", fmt::join(shown, ", "), omitted == 0 ? "" : fmt::format(" and {} more", omitted));
}

}  // namespace

void look_at_pcie(const NodeFacts& node, const ManagementFacts& /*management*/, CheckList& list) {
  const std::vector<PciPath> paths = gpus_and_nics(node);
  std::set<std::string> seen;
  std::size_t devices_with_link = 0;
  for (const PciPath& path : paths) {
    devices_with_link += path.device().speed || path.device().width ? 1 : 0;
    const std::vector<PciLink> links = links_of(path);
    for (const PciLink& link : links) {
      if (seen.insert(link.below.address).second) {
        look_at_link(link, list);
      }
    }
    look_at_slot(links.front(), list);
  }
  if (devices_with_link == 0) {
    list.unknown({.found = paths.empty() ? "no GPU and no RDMA NIC on the PCI bus" : "Linux shows no PCIe links here",
                  .wrong = "PCIe links were not checked",
                  .remedy = paths.empty() ? "none needed on a node without them; otherwise look at lspci"
                                          : "run this on the host of the virtual machine"});
  }
  list.otherwise_ok(links_in_words(paths));
}

void look_at_numa(const NodeFacts& node, const ManagementFacts& /*management*/, CheckList& list) {
  if (node.gpus.empty() || node.numa_nodes < 2) {
    list.otherwise_ok(counted(static_cast<std::size_t>(node.numa_nodes), "NUMA node"));
    return;
  }
  std::set<int> with_nic;
  for (const PciPath& nic : node.nics) {
    with_nic.insert(nic.device().numa_node.value_or(-1));
  }
  for (const PciPath& gpu : node.gpus) {
    const PciFunction& device = gpu.device();
    if (!device.numa_node) {
      list.warn({.subject = device.address,
                 .found = fmt::format("the NUMA node of the GPU is unknown, among {}", node.numa_nodes),
                 .wrong = "launchers cannot bind its processes to cores near it",
                 .remedy = "turn on NUMA in the BIOS (no node interleaving); in a virtual machine give it the host's "
                           "topology"});
    } else if (!node.nics.empty() && !with_nic.contains(*device.numa_node)) {
      list.warn(
          {.subject = device.address,
           .found = fmt::format("the GPU is on NUMA node {}, but no RDMA NIC is", *device.numa_node),
           .wrong = "its messages to other nodes pass through another NUMA node",
           .remedy = "compare with a healthy node of this kind: a NIC may be missing (lspci) or in another slot"});
    }
  }
  list.otherwise_ok(fmt::format("{} on {} NUMA nodes{}", counted(node.gpus.size(), "GPU"), node.numa_nodes,
                                node.nics.empty() ? "" : ", a NIC near each"));
}

void look_at_rdma(const NodeFacts& node, const ManagementFacts& /*management*/, CheckList& list) {
  if (node.ports.empty()) {
    list.unknown({.found = "no RDMA device",
                  .wrong = "there is nothing to check",
                  .remedy =
                      "none needed on a node without a fast network; otherwise load its driver (mlx5_ib, efa) and "
                      "look at lspci"});
    return;
  }
  const auto kind = [](const RdmaPort& port) { return port.board + "/" + port.layer; };
  std::map<std::string, double> fastest;
  std::map<std::string, std::size_t> rates;
  for (const RdmaPort& port : node.ports) {
    if (is_active(port)) {
      double& fastest_rate = fastest[kind(port)];
      fastest_rate = std::max(fastest_rate, port.gigabits.value_or(0.0));
      ++rates[port.rate];
    }
  }
  for (const RdmaPort& port : node.ports) {
    look_at_port(port, fastest[kind(port)], list);
  }
  std::vector<std::string> words;
  for (const auto& [rate, count] : rates) {
    words.push_back(fmt::format("{} at {}", counted(count, "port"), rate.empty() ? "an unknown rate" : rate));
  }
  list.otherwise_ok(fmt::format("active: {}", fmt::join(words, ", ")));
}

void look_at_gdr(const NodeFacts& node, const ManagementFacts& /*management*/, CheckList& list) {
  const auto loaded = [&](std::string_view module) {
    return std::find(node.modules.begin(), node.modules.end(), module) != node.modules.end();
  };
  const bool has_nvidia =
      std::any_of(node.gpus.begin(), node.gpus.end(), [](const PciPath& gpu) { return gpu.device().is_nvidia; });
  if (node.gpus.empty() || node.ports.empty()) {
    list.unknown({.found = node.gpus.empty() ? "no GPU" : "no RDMA device",
                  .wrong = "there is nothing to check",
                  .remedy = "none needed on a node without GPUs or without a fast network"});
  } else if (loaded("nvidia_peermem") || loaded("nv_peer_mem")) {
    list.otherwise_ok("nvidia_peermem is loaded");
  } else if (has_nvidia && node.driver_is_open && has_dma_buf(node.kernel)) {
    list.otherwise_ok("DMA-BUF, by the open kernel modules");
  } else if (!has_nvidia && loaded("amdgpu")) {
    list.otherwise_ok("amdgpu is loaded");
  } else if (!has_nvidia) {
    list.bad({.found = "amdgpu is not loaded",
              .wrong = "NICs cannot read GPU memory",
              .remedy = "load the driver (modprobe amdgpu); if that fails, look at dmesg"});
  } else {
    list.bad({.found = "nvidia_peermem is not loaded, and the driver has no DMA-BUF",
              .wrong = "NICs cannot read GPU memory, so every message is copied through host memory",
              .remedy = "run modprobe nvidia_peermem (and list it in /etc/modules-load.d), or install the open kernel "
                        "modules"});
  }
}

void look_at_acs(const NodeFacts& node, const ManagementFacts& /*management*/, CheckList& list) {
  const AcsBridges bridges = acs_bridges(node);
  if (!bridges.redirecting.empty()) {
    CheckList::Finding finding{
        .found = fmt::format("ACS redirects requests at {}: {}", counted(bridges.redirecting.size(), "bridge"),
                             first_few(bridges.redirecting)),
        .wrong = "traffic between GPUs and NICs goes up to the processor and back",
        .remedy =
            "turn ACS off in the BIOS, or at every boot: setpci -s BRIDGE ECAP_ACS+0x6.w=0000; leave it on where "
            "virtual machines use the devices"};
    bridges.in_a_switch ? list.bad(std::move(finding)) : list.warn(std::move(finding));
  } else if (!bridges.unknown.empty()) {
    list.unknown({.found = "the bridges' configuration is readable only by root",
                  .wrong = "ACS was not checked",
                  .remedy = "run this as root"});
  } else if (bridges.others.empty()) {
    list.unknown({.found = node.gpus.empty() ? "no GPU behind a PCIe bridge" : "Linux shows no PCIe bridges here",
                  .wrong = "there is nothing to check",
                  .remedy = "none needed; in a virtual machine check its host"});
  }
  list.otherwise_ok(fmt::format("off at {} above GPUs and NICs", counted(bridges.others.size(), "bridge")));
}

void look_at_iommu(const NodeFacts& node, const ManagementFacts& /*management*/, CheckList& list) {
  std::set<std::string> translated;
  bool is_known = false;
  for (const PciPath& path : gpus_and_nics(node)) {
    is_known = is_known || !path.device().translation.empty();
    if (path.device().translation.starts_with("DMA")) {
      translated.insert(path.device().address);
    }
  }
  const bool is_smmu = std::any_of(node.iommu_units.begin(), node.iommu_units.end(),
                                   [](const std::string& unit) { return unit.find("smmu") != std::string::npos; });
  if (node.iommu_units.empty()) {
    list.otherwise_ok("off");
  } else if (is_smmu) {
    list.otherwise_ok("on, as an SMMU, which GPUs of this processor need");
  } else if (!translated.empty()) {
    list.warn({.found = fmt::format("on, and translates addresses of {}", first_few(translated)),
               .wrong = "traffic between GPUs and NICs goes through the IOMMU, or fails",
               .remedy = "boot with iommu=pt on the kernel's command line, or turn the IOMMU off in the BIOS"});
  } else if (!is_known && !node.gpus.empty() && node.command_line.find("iommu=pt") == std::string::npos) {
    list.unknown({.found = "on, and Linux does not show the mode",
                  .wrong = "the mode was not checked",
                  .remedy = "look for iommu=pt in /proc/cmdline"});
  } else {
    list.otherwise_ok(is_known ? "on, passes addresses through" : "on");
  }
}

}  // namespace commfuse::validate
