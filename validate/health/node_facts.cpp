// SPDX-License-Identifier: Apache-2.0
#include "validate/health/node_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/text/quantity.h"

namespace commfuse::validate {

namespace {

namespace fs = std::filesystem;

const fs::path pci_folder = "sys/bus/pci/devices";
const fs::path rdma_folder = "sys/class/infiniband";
constexpr std::size_t max_log_bytes = std::size_t{64} << 20U;  // log_buf_len may be many MiB; the newest lines are last
constexpr std::size_t max_path_steps = 32;
constexpr std::int64_t max_gids = 4096;

/// Returns the number before the first blank: "16.0" of "16.0 GT/s PCIe", "400" of "400 Gb/sec (4X NDR)".
std::optional<double> leading_number(const std::string& text) {
  const std::optional<double> number = parse_number(text.substr(0, text.find(' ')));
  return number && std::isfinite(*number) && *number > 0.0 ? number : std::nullopt;
}

std::optional<double> speed_in(const NodeFiles& files, const fs::path& path) {
  const std::optional<std::string> text = files.text(path);  // "Unknown" where there is no link
  return text && text->find("GT/s") != std::string::npos ? leading_number(*text) : std::nullopt;
}

std::optional<int> whole_in(const NodeFiles& files, const fs::path& path) {
  constexpr std::int64_t largest = 1 << 20;
  const std::optional<std::int64_t> number = parse_integer(files.text(path).value_or(""));
  return number && *number >= 0 && *number <= largest ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

/// Returns nothing for 0 and 255, which mean that there is no link.
std::optional<int> width_in(const NodeFiles& files, const fs::path& path) {
  constexpr int max_lanes = 32;
  const std::optional<int> width = whole_in(files, path);
  return width && *width > 0 && *width <= max_lanes ? width : std::nullopt;
}

/// Returns the kind by class and vendor, such as "0x030200" and "0x10de".
PciKind kind_of(const std::string& code, const std::string& vendor) {
  const bool is_nvidia = vendor == "0x10de";
  const bool is_amd = vendor == "0x1002";
  const auto is_class = [&](std::string_view begin) { return code.starts_with(begin); };
  if (is_class("0x0604")) {
    return PciKind::bridge;
  }
  if (is_class("0x0680") && is_nvidia) {
    return PciKind::nvswitch;
  }
  if (is_class("0x0200") || is_class("0x0207")) {
    return PciKind::nic;
  }
  const bool is_accelerator = is_class("0x0302") || is_class("0x0380") || is_class("0x1200");
  const bool is_display = is_class("0x0300");  // an AMD display controller is the GPU inside a processor
  return (is_accelerator && (is_nvidia || is_amd)) || (is_display && is_nvidia) ? PciKind::gpu : PciKind::other;
}

std::uint32_t little_endian(const std::string& bytes, std::size_t at, std::size_t count) {
  constexpr unsigned bits_per_byte = 8;
  std::uint32_t value = 0;
  for (std::size_t i = count; i-- > 0;) {
    value = (value << bits_per_byte) | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

/// Reads ACS from a bridge's configuration space (PCI Express Base Specification, "ACS Extended Capability"). Returns
/// nothing if the space is not readable beyond its header; only root can read the rest.
std::optional<bool> redirects_peers(const NodeFiles& files, const fs::path& folder) {
  constexpr std::size_t whole_space = 4096;
  constexpr std::size_t extended = 256;
  constexpr std::uint32_t acs = 0x000D;
  constexpr std::uint32_t redirection = 0x04 | 0x08 | 0x10;  // requests, completions, upstream forwarding
  const std::string space = files.bytes(folder / "config", whole_space).value_or("");
  if (space.size() < extended + 4) {
    return std::nullopt;
  }
  std::size_t at = extended;
  for (std::size_t steps = 0; at >= extended && at + 8 <= space.size() && steps < whole_space / 4; ++steps) {
    const std::uint32_t head = little_endian(space, at, 4);
    if ((head & 0xFFFFU) == acs) {
      return (little_endian(space, at + 6, 2) & redirection) != 0;
    }
    at = head >> 20U;
  }
  return false;
}

PciFunction function_at(const NodeFiles& files, const fs::path& folder) {
  const std::string vendor = files.text(folder / "vendor").value_or("");
  PciFunction function{.address = folder.filename().string(),
                       .kind = kind_of(files.text(folder / "class").value_or(""), vendor),
                       .is_nvidia = vendor == "0x10de",
                       .is_amd = vendor == "0x1002",
                       .speed = speed_in(files, folder / "current_link_speed"),
                       .max_speed = speed_in(files, folder / "max_link_speed"),
                       .width = width_in(files, folder / "current_link_width"),
                       .max_width = width_in(files, folder / "max_link_width"),
                       .numa_node = whole_in(files, folder / "numa_node"),  // -1 if the firmware does not report it
                       .driver = files.link_name(folder / "driver").value_or(""),
                       .translation = files.text(folder / "iommu_group" / "type").value_or("")};
  if (function.kind == PciKind::bridge) {
    function.redirects_peers = redirects_peers(files, folder);
  }
  return function;
}

/// Returns true for an address such as "0000:1b:00.0".
bool is_address(const std::string& name) {
  return name.size() >= 12 && name.find_first_not_of("0123456789abcdef:.") == std::string::npos &&
         std::count(name.begin(), name.end(), ':') == 2;
}

PciPath path_of(const NodeFiles& files, const std::string& address) {
  fs::path folder = files.resolved(pci_folder / address);
  PciPath path;
  while (path.steps.size() < max_path_steps && is_address(folder.filename().string())) {
    path.steps.push_back(function_at(files, folder));
    folder = folder.parent_path();
  }
  if (path.steps.empty()) {  // a link without a target
    path.steps.push_back(function_at(files, pci_folder / address));
  }
  return path;
}

void add_pci(const NodeFiles& files, NodeFacts& facts) {
  for (const std::string& address : files.names(pci_folder)) {
    const fs::path folder = pci_folder / address;
    const PciKind kind = kind_of(files.text(folder / "class").value_or(""), files.text(folder / "vendor").value_or(""));
    if (files.exists(folder / "physfn")) {
      continue;  // a virtual function shares the link of its parent
    }
    if (kind == PciKind::gpu) {
      facts.gpus.push_back(path_of(files, address));
    } else if (kind == PciKind::nvswitch) {
      facts.switches.push_back(path_of(files, address));
    } else if (kind == PciKind::nic && files.exists(folder / "infiniband")) {
      facts.nics.push_back(path_of(files, address));
    }
  }
}

/// Returns the uncorrected errors in the text of amdgpu's files ras/*_err_count and ras/aca_*, which have lines such as
/// "ue: 0" and "ce: 3" (kernel documentation, "AMDGPU RAS Support"). Returns nothing for other text.
std::optional<std::int64_t> uncorrected_in(const std::string& text) {
  constexpr std::int64_t largest = std::int64_t{1} << 40;
  constexpr std::string_view mark = "ue: ";
  if (!text.starts_with(mark)) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> count = parse_integer(text.substr(mark.size(), text.find('\n') - mark.size()));
  return count && *count >= 0 ? std::optional(std::min(*count, largest)) : std::nullopt;
}

void add_amd_errors(const NodeFiles& files, NodeFacts& facts) {
  for (const PciPath& gpu : facts.gpus) {
    const fs::path folder = pci_folder / gpu.device().address / "ras";
    std::optional<AmdErrors> errors;
    for (const std::string& name : gpu.device().is_amd ? files.names(folder) : std::vector<std::string>{}) {
      const bool is_count = name.ends_with("_err_count") || name.starts_with("aca_");
      if (const auto count = is_count ? uncorrected_in(files.text(folder / name).value_or("")) : std::nullopt) {
        errors = errors.value_or(AmdErrors{.address = gpu.device().address});
        errors->uncorrected += static_cast<std::uint64_t>(*count);
      }
    }
    if (errors) {
      facts.amd_errors.push_back(*errors);
    }
  }
}

/// Returns the entries of a port's table. Linux refuses to report the type of an entry that is not in use.
std::vector<Gid> gids_in(const NodeFiles& files, const fs::path& port) {
  std::vector<Gid> gids;
  for (const std::string& name : files.names(port / "gids")) {
    const std::optional<std::int64_t> index = parse_integer(name);
    const std::string address = files.text(port / "gids" / name).value_or("");
    const bool is_used = address.find_first_not_of("0:") != std::string::npos;
    if (index && *index >= 0 && *index <= max_gids && is_used) {
      gids.push_back({.index = static_cast<int>(*index),
                      .address = address,
                      .type = files.text(port / "gid_attrs/types" / name).value_or("")});
    }
  }
  std::ranges::sort(gids, {}, &Gid::index);
  return gids;
}

/// Returns the interface of the port's first GID, else the only interface of the device.
std::string interface_of(const NodeFiles& files, const fs::path& port, const fs::path& device,
                         const std::vector<Gid>& gids) {
  for (const Gid& gid : gids) {
    if (std::string name = files.text(port / "gid_attrs/ndevs" / std::to_string(gid.index)).value_or("");
        !name.empty() && name.find('/') == std::string::npos) {
      return name;
    }
  }
  const std::vector<std::string> names = files.names(device / "device/net");
  return names.size() == 1 ? names.front() : "";
}

std::optional<std::uint64_t> count_in(const NodeFiles& files, const fs::path& path) {
  const std::optional<std::int64_t> count = parse_integer(files.text(path).value_or(""));
  return count && *count >= 0 ? std::optional(static_cast<std::uint64_t>(*count)) : std::nullopt;
}

CongestionFacts congestion_at(const NodeFiles& files, const fs::path& port, const std::string& interface) {
  constexpr int priorities = 8;
  const fs::path network = fs::path("sys/class/net") / interface;
  CongestionFacts facts{.marked = count_in(files, port / "hw_counters/np_ecn_marked_roce_packets"),
                        .lost = count_in(files, port / "hw_counters/packet_seq_err"),
                        .notified = count_in(files, port / "hw_counters/rp_cnp_handled")};
  if (interface.empty()) {
    return facts;
  }
  facts.trust = files.text(network / "qos/trust").value_or("");
  for (int priority = 0; priority < priorities; ++priority) {
    const std::string name = std::to_string(priority);
    const std::optional<std::string> notifies = files.text(network / "ecn/roce_np/enable" / name);
    const std::optional<std::string> reacts = files.text(network / "ecn/roce_rp/enable" / name);
    facts.has_ecn = facts.has_ecn || (notifies && reacts);
    if (notifies == "1") {
      facts.notifying.push_back(priority);
    }
    if (reacts == "1") {
      facts.reacting.push_back(priority);
    }
  }
  return facts;
}

/// Returns NCCL_IB_GID_INDEX from the text of an NCCL configuration file, which has one variable with its value per
/// line; "#" begins a comment.
std::optional<int> gid_index_in(const std::string& text) {
  constexpr std::string_view key = "NCCL_IB_GID_INDEX=";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.starts_with(key)) {  // The first line wins: NCCL sets no variable twice.
      const std::string value = line.substr(key.size());
      const std::optional<std::int64_t> number = parse_integer(value.substr(0, value.find_last_not_of(" \t\r") + 1));
      return number && *number >= 0 && *number <= max_gids ? std::optional(static_cast<int>(*number)) : std::nullopt;
    }
    at = end + 1;
  }
  return std::nullopt;
}

void add_addresses(const NodeFiles& files, RdmaPort& port) {
  const fs::path device = rdma_folder / port.device;
  const fs::path folder = device / "ports" / port.number;
  port.gids = gids_in(files, folder);
  port.has_gid_types = files.exists(folder / "gids") && files.exists(folder / "gid_attrs/types");
  port.interface = interface_of(files, folder, device, port.gids);
  port.congestion = congestion_at(files, folder, port.interface);
}

void add_ports(const NodeFiles& files, NodeFacts& facts) {
  for (const std::string& device : files.names(rdma_folder)) {
    for (const std::string& number : files.names(rdma_folder / device / "ports")) {
      const fs::path folder = rdma_folder / device / "ports" / number;
      const auto text = [&](const char* name) { return files.text(folder / name).value_or(""); };
      facts.ports.push_back({.device = device,
                             .board = files.text(rdma_folder / device / "hca_type").value_or("") + " " +
                                      files.text(rdma_folder / device / "board_id").value_or(""),
                             .number = number,
                             .layer = text("link_layer"),
                             .state = text("state"),
                             .physical_state = text("phys_state"),
                             .rate = text("rate"),
                             .gigabits = leading_number(text("rate")),
                             .pci_address = files.link_name(rdma_folder / device / "device").value_or(""),
                             .firmware = files.text(rdma_folder / device / "fw_ver").value_or("")});
      if (facts.ports.back().layer == "Ethernet") {
        add_addresses(files, facts.ports.back());
      }
    }
  }
}

/// Returns the number of nodes in a list such as "0", "0-1" or "0,2-3"; at least 1.
int number_of_nodes(const std::string& list) {
  constexpr int max_nodes = 4096;
  int count = 0;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string part = list.substr(at, end - at);
    const std::size_t dash = part.find('-');
    const std::optional<std::int64_t> first = parse_integer(part.substr(0, dash));
    const std::optional<std::int64_t> last = dash == std::string::npos ? first : parse_integer(part.substr(dash + 1));
    if (first && last && *first >= 0 && *last >= *first && *last - *first < max_nodes) {
      count = std::min(max_nodes, count + static_cast<int>(*last - *first) + 1);
    }
    at = end + 1;
  }
  return std::max(count, 1);
}

}  // namespace

std::string generation_in_words(double speed) {
  constexpr std::array speeds{2.5, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0};
  const auto* const known = std::find(speeds.begin(), speeds.end(), speed);
  return known == speeds.end() ? fmt::format("{:g} GT/s", speed)
                               : fmt::format("PCIe generation {}", known - speeds.begin() + 1);
}

bool is_mapped_ipv4(const Gid& gid) { return gid.address.starts_with("0000:0000:0000:0000:0000:ffff:"); }

bool is_routable(const Gid& gid) {
  constexpr std::string_view link_local = "fe80";
  return gid.type == roce_version_2 && !gid.address.starts_with(link_local);
}

std::optional<int> usable_gid_index(const RdmaPort& port) {
  std::optional<int> fallback;
  for (const Gid& gid : port.gids) {
    if (!is_routable(gid)) {
      continue;
    }
    if (is_mapped_ipv4(gid)) {
      return gid.index;
    }
    fallback = fallback ? fallback : gid.index;
  }
  return fallback;
}

bool is_active_roce(const RdmaPort& port) {
  return port.layer == "Ethernet" && port.state.find("ACTIVE") != std::string::npos;
}

NodeFacts node_facts(const NodeFiles& files) {
  NodeFacts facts{.host = files.text("proc/sys/kernel/hostname").value_or(""),
                  .kernel = files.text("proc/sys/kernel/osrelease").value_or(""),
                  .command_line = files.text("proc/cmdline").value_or(""),
                  .driver = files.text("sys/module/nvidia/version").value_or(""),
                  .iommu_units = files.names("sys/class/iommu"),
                  .numa_nodes = number_of_nodes(files.text("sys/devices/system/node/online").value_or("0"))};
  const std::string version = files.text("proc/driver/nvidia/version").value_or("");
  facts.driver_is_open = version.find("Open Kernel Module") != std::string::npos;
  for (const char* const module : {"nvidia_peermem", "nv_peer_mem", "gdrdrv", "amdgpu"}) {
    if (files.exists(fs::path("sys/module") / module)) {
      facts.modules.emplace_back(module);
    }
  }
  add_pci(files, facts);
  add_amd_errors(files, facts);
  add_ports(files, facts);
  facts.gid_index = gid_index_in(files.text("etc/nccl.conf").value_or(""));
  if (const std::optional<std::string> text = files.kernel_log(max_log_bytes)) {
    facts.xids = xids_in(*text);
  }
  return facts;
}

}  // namespace commfuse::validate
