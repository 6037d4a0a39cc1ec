// SPDX-License-Identifier: Apache-2.0
// Checks of RoCE ports: their table of addresses, and their behaviour under congestion.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "validate/health/check_list.h"

namespace commfuse::validate {

namespace {

std::string interface_in_words(const RdmaPort& port) { return port.interface.empty() ? "INTERFACE" : port.interface; }

/// Returns the active RoCE ports. A port that is down is reported by the check rdma.
std::vector<const RdmaPort*> roce_ports(const NodeFacts& node) {
  std::vector<const RdmaPort*> ports;
  for (const RdmaPort& port : node.ports) {
    if (is_active_roce(port)) {
      ports.push_back(&port);
    }
  }
  return ports;
}

/// Returns "0 v1 fe80:..., 3 v2 0000:...", with at most the first few entries.
std::string table_in_words(const RdmaPort& port) {
  constexpr std::size_t max_listed = 6;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(max_listed, port.gids.size()); ++i) {
    const Gid& gid = port.gids[i];
    const std::string_view version = gid.type == roce_version_2 ? "v2" : gid.type.empty() ? "unknown" : "v1";
    words.push_back(fmt::format("{} {} {}", gid.index, version, gid.address));
  }
  return fmt::format("{}{}", fmt::join(words, ", "),
                     port.gids.size() > max_listed ? fmt::format(" and {} more", port.gids.size() - max_listed) : "");
}

bool is_ipv4_of_version_2(const Gid& gid) { return gid.type == roce_version_2 && is_mapped_ipv4(gid); }

/// Reports an NCCL_IB_GID_INDEX that names an entry of RoCE v1, an entry that this port lacks, or a link-local address
/// although the port has another. Returns true if it reported one.
bool look_at_chosen_index(const RdmaPort& port, int index, CheckList& list) {
  const auto gid = std::ranges::find(port.gids, index, &Gid::index);
  const std::optional<int> usable = usable_gid_index(port);
  if (gid != port.gids.end() && gid->type == roce_version_2) {
    if (is_routable(*gid) || !usable) {
      return false;
    }
    list.warn({.subject = name_of_port(port),
               .found = fmt::format("GID {} is the link-local address {}", index, gid->address),
               .wrong = "NCCL_IB_GID_INDEX names an address that routers do not forward",
               .remedy = fmt::format("set NCCL_IB_GID_INDEX={}", *usable)});
    return true;
  }
  const bool finds_index = std::ranges::any_of(port.gids, is_ipv4_of_version_2);
  list.bad(
      {.subject = name_of_port(port),
       .found = port.gids.empty()        ? "no GID"
                : gid == port.gids.end() ? fmt::format("no GID with index {}: {}", index, table_in_words(port))
                                         : fmt::format("GID {} is {}", index, gid->type),
       .wrong = gid == port.gids.end() ? fmt::format("NCCL_IB_GID_INDEX is {}, which this port lacks", index)
                                       : "NCCL_IB_GID_INDEX names an address that routers do not forward",
       .remedy = usable ? fmt::format("set NCCL_IB_GID_INDEX={}{}", *usable,
                                      finds_index ? ", or unset it: NCCL 2.21 and later find the index" : "")
                        : fmt::format("give {} an IP address, and unset NCCL_IB_GID_INDEX", interface_in_words(port))});
  return true;
}

/// Reports a table whose addresses peers or NCCL cannot use. Returns true if there was nothing to report. `is_chosen`:
/// jobs name the index, so NCCL does not search for one.
bool look_at_table(const RdmaPort& port, bool is_chosen, CheckList& list) {
  const std::string address =
      fmt::format("give {} an IP address and bring it up (ip address add, ip link set up)", interface_in_words(port));
  if (port.gids.empty()) {
    list.bad({.subject = name_of_port(port),
              .found = "no GID",
              .wrong = "RDMA over this port cannot connect",
              .remedy = address});
  } else if (std::ranges::none_of(port.gids, [](const Gid& gid) { return gid.type == roce_version_2; })) {
    list.warn({.subject = name_of_port(port),
               .found = fmt::format("no GID of RoCE v2: {}", table_in_words(port)),
               .wrong = "RoCE v1 messages cannot cross a router, and NCCL requires v2",
               .remedy = address + "; if only v1 remains, set the driver to v2 (cma_roce_mode -d DEVICE -p 1 -m 2)"});
  } else if (!usable_gid_index(port)) {
    list.warn({.subject = name_of_port(port),
               .found = fmt::format("only GIDs of link-local addresses: {}", table_in_words(port)),
               .wrong = "messages over this port cannot cross a router",
               .remedy = address});
  } else if (!is_chosen && std::ranges::none_of(port.gids, is_ipv4_of_version_2)) {
    list.warn({.subject = name_of_port(port),
               .found = fmt::format("only GIDs of RoCE v2 for IPv6: {}", table_in_words(port)),
               .wrong = "by default NCCL looks for a GID of an IPv4 address, and would use index 0",
               .remedy = fmt::format("set NCCL_IB_ADDR_FAMILY=AF_INET6, or give {} an IPv4 address",
                                     interface_in_words(port))});
  } else {
    return true;
  }
  return false;
}

std::string indices_in_words(const std::map<int, std::vector<std::string>>& ports_of_index) {
  std::vector<std::string> words;
  for (const auto& [index, ports] : ports_of_index) {
    words.push_back(fmt::format("{} on {}", index, fmt::join(ports, ", ")));
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

/// Returns "no priority", "priority 3" or "priorities 3, 4".
std::string priorities_in_words(const std::vector<int>& priorities) {
  return priorities.empty()
             ? "no priority"
             : fmt::format("{} {}", priorities.size() == 1 ? "priority" : "priorities", fmt::join(priorities, ", "));
}

void look_at_ecn(const RdmaPort& port, CheckList& list) {
  const CongestionFacts& facts = port.congestion;
  if (!facts.has_ecn || (!facts.notifying.empty() && facts.notifying == facts.reacting)) {
    return;
  }
  const std::string folder = fmt::format("/sys/class/net/{}/ecn", interface_in_words(port));
  CheckList::Finding finding{
      .subject = name_of_port(port),
      .found = fmt::format("ECN: receivers notify on {}, senders react on {}", priorities_in_words(facts.notifying),
                           priorities_in_words(facts.reacting)),
      .wrong = "senders do not slow down under congestion, so switches drop packets or pause all ports",
      .remedy = fmt::format("turn on ECN for RoCE's priority, usually 3: write 1 to {0}/roce_np/enable/3 and to "
                            "{0}/roce_rp/enable/3; turn on ECN marking on the switches too",
                            folder)};
  list.warn(std::move(finding));
}

void look_at_trust(const RdmaPort& port, CheckList& list) {
  if (port.congestion.trust != "pcp") {
    return;
  }
  list.warn(
      {.subject = name_of_port(port),
       .found = "the NIC takes priorities from VLAN tags (trust pcp)",
       .wrong = "RoCE packets without a tag are on priority 0, which is neither paused nor marked like RoCE's priority",
       .remedy = fmt::format("run mlnx_qos -i {} --trust dscp, unless RoCE uses a VLAN with priorities",
                             interface_in_words(port))});
}

/// Reports losses without a single mark: the switches drop packets before they warn a sender. Returns true if it
/// reported any.
bool look_at_losses(const RdmaPort& port, CheckList& list) {
  const CongestionFacts& facts = port.congestion;
  constexpr std::uint64_t min_lost = 100;  // a link that comes up, or a job that dies, causes a few
  if (facts.lost.value_or(0) < min_lost || facts.marked.value_or(1) > 0 || facts.notified.value_or(0) > 0) {
    return false;
  }
  list.warn(
      {.subject = name_of_port(port),
       .found = fmt::format(
           "peers reported {} sequence gaps but no packet was marked by ECN, since the driver was loaded", *facts.lost),
       .wrong = "switches drop RoCE packets instead of marking them or pausing the sender",
       .remedy = "turn on ECN and PFC for RoCE's priority on the switches, and look at the drops of each port"});
  return true;
}

/// Returns the first index with a routable address on every port.
std::optional<int> common_index(const std::vector<const RdmaPort*>& ports) {
  for (const Gid& gid : ports.front()->gids) {
    const auto has_index = [&](const RdmaPort* port) {
      return std::ranges::any_of(port->gids,
                                 [&](const Gid& other) { return other.index == gid.index && is_routable(other); });
    };
    if (std::ranges::all_of(ports, has_index)) {
      return gid.index;
    }
  }
  return std::nullopt;
}

}  // namespace

void look_at_roce(const NodeFacts& node, const ManagementFacts& /*management*/, CheckList& list) {
  std::map<int, std::vector<std::string>> ports_of_index;
  const std::vector<const RdmaPort*> ports = roce_ports(node);
  for (const RdmaPort* const port : ports) {
    if (!port->has_gid_types) {
      list.unknown({.subject = name_of_port(*port),
                    .found = "Linux shows no types of GIDs here",
                    .wrong = "the versions of RoCE were not checked",
                    .remedy = "run this on the host, or look at show_gids and ibv_devinfo -v"});
    } else if (const bool is_wrong = node.gid_index && look_at_chosen_index(*port, *node.gid_index, list);
               !is_wrong && look_at_table(*port, node.gid_index.has_value(), list)) {
      ports_of_index[node.gid_index.value_or(*usable_gid_index(*port))].push_back(name_of_port(*port));
    }
  }
  if (const std::optional<int> common = ports_of_index.size() > 1 ? common_index(ports) : std::nullopt) {
    ports_of_index = {{*common, {}}};
  }
  if (ports_of_index.size() > 1) {
    list.warn({.found = fmt::format("GID index of RoCE v2: {}", indices_in_words(ports_of_index)),
               .wrong = "no single NCCL_IB_GID_INDEX fits all ports",
               .remedy = "leave NCCL_IB_GID_INDEX unset (NCCL 2.21 and later find the index of each port), or give all "
                         "interfaces the same kinds of addresses in the same order"});
  }
  list.otherwise_ok(ports.empty() ? "no active RoCE port"
                                  : fmt::format("{} with RoCE v2, GID index {}", counted(ports.size(), "port"),
                                                ports_of_index.empty() ? 0 : ports_of_index.begin()->first));
}

void look_at_congestion(const NodeFacts& node, const ManagementFacts& /*management*/, CheckList& list) {
  const std::vector<const RdmaPort*> ports = roce_ports(node);
  std::set<std::string> settings;
  for (const RdmaPort* const port : ports) {
    const CongestionFacts& facts = port->congestion;
    look_at_ecn(*port, list);
    look_at_trust(*port, list);
    if (!look_at_losses(*port, list) && !facts.has_ecn) {
      list.unknown(
          {.subject = name_of_port(*port),
           .found = facts.trust.empty() ? "no file shows ECN or trust; only drivers of MLNX_OFED and DOCA have them"
                                        : fmt::format("trust {}, and no file shows ECN", facts.trust),
           .wrong = "ECN and PFC were not checked",
           .remedy = fmt::format("look at dcb pfc show dev {0}, or at mlnx_qos -i {0}", interface_in_words(*port))});
    }
    settings.insert(fmt::format("ECN {}, trust {}",
                                facts.has_ecn ? "on " + priorities_in_words(facts.notifying) : "unknown",
                                facts.trust.empty() ? "unknown" : facts.trust));
  }
  if (settings.size() > 1 && list.empty()) {
    list.warn(
        {.found = fmt::format("{}", fmt::join(settings, "; ")),
         .wrong = "RoCE ports of this node differ in how they handle congestion",
         .remedy =
             "give all ports the same settings with one script at boot (mlnx_qos, and ecn below /sys/class/net)"});
  }
  list.otherwise_ok(ports.empty() ? "no active RoCE port"
                                  : fmt::format("{}; no file shows PFC (dcb pfc show dev {})",
                                                fmt::join(settings, "; "), interface_in_words(*ports.front())));
}

}  // namespace commfuse::validate
