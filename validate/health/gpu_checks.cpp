// SPDX-License-Identifier: Apache-2.0
// Checks the health of GPUs from reports of their driver and the kernel's log.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "validate/cuda/nvml.h"
#include "validate/health/check_list.h"

namespace commfuse::validate {

namespace {

bool is_nvidia(const PciPath& path) { return path.device().is_nvidia; }
bool is_amd(const PciPath& path) { return path.device().is_amd; }

std::string subject_of(const GpuFacts& gpu) { return gpu.address; }

/// Returns true if there are GPUs whose driver answers; otherwise adds a check with the reason.
bool has_answers(const NodeFacts& node, const ManagementFacts& management, CheckList& list) {
  if (!management.gpus.empty()) {
    return true;
  }
  if (std::none_of(node.gpus.begin(), node.gpus.end(), is_nvidia)) {
    if (std::any_of(node.gpus.begin(), node.gpus.end(), is_amd)) {
      list.unknown({.found = "AMD GPUs",
                    .wrong = "this check supports only NVIDIA GPUs",
                    .remedy = "look at amd-smi (topology, xgmi, metric) and at dmesg"});
      return false;
    }
    list.unknown({.found = "no NVIDIA GPU",
                  .wrong = "there is nothing to check",
                  .remedy = "none needed on a node without GPUs; otherwise look for the GPU in lspci and reseat it"});
  } else {
    list.unknown({.found = management.missing.empty() ? "the driver shows no GPU" : management.missing,
                  .wrong = "only the driver's library reports this",
                  .remedy = "install the driver's libraries here, or start the container with --gpus all"});
  }
  return false;
}

/// Returns names and counts: "8 x NVIDIA H100 80GB HBM3".
std::string gpus_in_words(const ManagementFacts& management) {
  std::map<std::string, std::size_t> counts;
  for (const GpuFacts& gpu : management.gpus) {
    ++counts[gpu.name.empty() ? "GPU" : gpu.name];
  }
  std::vector<std::string> words;
  for (const auto& [name, count] : counts) {
    words.push_back(fmt::format("{} x {}", count, name));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

constexpr std::array<const char*, 7> peer_statuses{"possible",
                                                   "not supported by the chipset",
                                                   "not supported by the GPU",
                                                   "not possible across these root ports",
                                                   "disabled by a registry key of the driver",
                                                   "not supported",
                                                   "unknown"};

std::string peer_status_in_words(int status) {
  const bool is_known = status >= 0 && status < static_cast<int>(peer_statuses.size());
  return is_known ? peer_statuses[static_cast<std::size_t>(status)] : fmt::format("status {}", status);
}

/// Codes of NVIDIA's "XID Errors" that a program causes more often than the hardware.
constexpr std::array by_programs{13, 31, 43, 45, 68, 69};
/// Codes after which a GPU or its link must not be used until it is reset or replaced.
constexpr std::array by_hardware{48,  62,  64,  74,  79,  95,  110, 119, 120, 136, 140,
                                 143, 144, 145, 146, 147, 148, 149, 150, 155, 156};

template <class Codes>
bool contains(const Codes& codes, int code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

void add_xid(const XidEvent& event, CheckList& list) {
  const std::string message = fmt::format("{} {} in the kernel's log", event.of_switch ? "SXid" : "Xid", event.code);
  if (event.of_switch) {
    list.bad({.subject = event.address,
              .found = message,
              .wrong = "an NVSwitch reported an error",
              .remedy =
                  "read the line's severity in dmesg; if it is fatal, drain the node, reset all GPUs and switches "
                  "together, and restart nvidia-fabricmanager"});
  } else if (contains(by_hardware, event.code)) {
    list.bad({.subject = event.address,
              .found = message,
              .wrong = "the GPU, its memory or its link failed",
              .remedy = "drain the node, reset the GPU (nvidia-smi --gpu-reset) or reboot, run dcgmi diag -r 3, and "
                        "replace the GPU if the error recurs; once fixed, run dmesg --clear"});
  } else if (contains(by_programs, event.code)) {
    list.warn({.subject = event.address,
               .found = message,
               .wrong = "a program on this GPU failed, usually because of a bug in that program",
               .remedy =
                   "take the time of the error from dmesg -T and find the job that ran then; if several jobs fail on "
                   "this GPU alone, run dcgmi diag -r 3"});
  } else {
    list.warn({.subject = event.address,
               .found = message,
               .wrong = "the driver reported an error",
               .remedy = "look up the code in NVIDIA's list of Xid errors, and run dcgmi diag -r 3"});
  }
}

// Bits of nvmlDeviceGetCurrentClocksEventReasons.
constexpr std::uint64_t idle = 0x1;
constexpr std::uint64_t set_clocks = 0x2;
constexpr std::uint64_t power_cap = 0x4;
// Hardware slowdown, software thermal slowdown, hardware thermal slowdown, hardware power brake.
constexpr std::uint64_t heat_or_power = 0x8 | 0x20 | 0x40 | 0x80;

/// Returns true if the GPU is busy enough for its clocks to be the clocks under load.
bool is_loaded(const GpuFacts& gpu) {
  constexpr int min_busy_percent = 50;
  return gpu.busy_percent.value_or(0) >= min_busy_percent && (gpu.throttled_by.value_or(0) & idle) == 0;
}

/// Returns "1410 of 1980 MHz, 98% busy, 690 of 700 W, 61 C", or as much of it as is known.
std::string load_in_words(const GpuFacts& gpu) {
  std::vector<std::string> words;
  if (gpu.clock_mhz) {
    words.push_back(gpu.max_clock_mhz ? fmt::format("{} of {} MHz", *gpu.clock_mhz, *gpu.max_clock_mhz)
                                      : fmt::format("{} MHz", *gpu.clock_mhz));
  }
  if (gpu.busy_percent) {
    words.push_back(fmt::format("{}% busy", *gpu.busy_percent));
  }
  if (gpu.watts) {
    words.push_back(gpu.limit_watts ? fmt::format("{:.0f} of {:.0f} W", *gpu.watts, *gpu.limit_watts)
                                    : fmt::format("{:.0f} W", *gpu.watts));
  }
  if (gpu.celsius) {
    words.push_back(fmt::format("{} C", *gpu.celsius));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

/// Reports the driver's reasons for low clocks, except idling and the power cap, which applies to every loaded GPU.
/// Returns true if it reported any.
bool look_at_reasons(const GpuFacts& gpu, CheckList& list) {
  if ((gpu.throttled_by.value_or(0) & ~(idle | power_cap)) == 0) {
    return false;
  }
  const std::string load = load_in_words(gpu);
  const std::string clocks =
      fmt::format("throttled by {}{}{}", reasons_in_words(*gpu.throttled_by), load.empty() ? "" : ": ", load);
  if ((*gpu.throttled_by & heat_or_power) != 0) {
    list.bad({.subject = subject_of(gpu),
              .found = clocks,
              .wrong = "heat or a missing power supply lowers the clocks",
              .remedy = "check fans, air inlets and power supplies of the node (ipmitool sdr), then run this again"});
  } else if ((*gpu.throttled_by & set_clocks) != 0) {
    list.warn({.subject = subject_of(gpu),
               .found = clocks,
               .wrong = "lower clocks were set",
               .remedy = "undo it with nvidia-smi --reset-gpu-clocks and --reset-applications-clocks"});
  } else {
    list.warn({.subject = subject_of(gpu),
               .found = clocks,
               .wrong = "clocks are lower than possible",
               .remedy = "look at nvidia-smi -q -d PERFORMANCE while a program uses the GPU"});
  }
  return true;
}

void look_at_power_limit(const GpuFacts& gpu, CheckList& list) {
  constexpr double min_share_of_default = 0.99;
  if (gpu.limit_watts && gpu.default_watts && *gpu.limit_watts < min_share_of_default * *gpu.default_watts) {
    list.warn({.subject = subject_of(gpu),
               .found = fmt::format("power limit {:.0f} W, {:.0f} W by default", *gpu.limit_watts, *gpu.default_watts),
               .wrong = "under load, the GPU lowers its clocks too early",
               .remedy = fmt::format(
                   "restore the default with nvidia-smi --power-limit={:.0f}, or expect lower clocks under load",
                   *gpu.default_watts)});
  }
}

/// Returns the median clock of the GPUs that are under load; nothing for fewer than three of them.
std::optional<int> usual_loaded_clock(const ManagementFacts& management) {
  constexpr std::size_t min_gpus = 3;
  std::vector<int> clocks;
  for (const GpuFacts& gpu : management.gpus) {
    if (is_loaded(gpu) && gpu.clock_mhz) {
      clocks.push_back(*gpu.clock_mhz);
    }
  }
  std::sort(clocks.begin(), clocks.end());
  return clocks.size() < min_gpus ? std::nullopt : std::optional(clocks[clocks.size() / 2]);
}

/// Compares the clock under load with that of the other GPUs, and with the highest clock of this GPU.
void look_at_loaded_clock(const GpuFacts& gpu, std::optional<int> usual, CheckList& list) {
  constexpr double min_share_of_usual = 0.85;
  constexpr double min_share_of_max = 0.5;  // the power cap lowers an H100's clocks by a third under large GEMMs
  if (!is_loaded(gpu) || !gpu.clock_mhz) {
    return;
  }
  if (usual && *gpu.clock_mhz < min_share_of_usual * *usual) {
    list.warn({.subject = subject_of(gpu),
               .found = fmt::format("{}; {} MHz on the other busy GPUs", load_in_words(gpu), *usual),
               .wrong = "under load this GPU is slower than the others, and they wait for it",
               .remedy = "compare power limits and heat (nvidia-smi -q -d POWER,PERFORMANCE,TEMPERATURE); check its "
                         "heat sink and power cables"});
  } else if (gpu.max_clock_mhz && *gpu.clock_mhz < min_share_of_max * *gpu.max_clock_mhz) {
    list.warn(
        {.subject = subject_of(gpu),
         .found = load_in_words(gpu),
         .wrong = "under load the clock is below half of what the GPU can do",
         .remedy = "look at nvidia-smi -q -d POWER,PERFORMANCE,CLOCK for a cap, and at the node's power supplies"});
  }
}

void look_at_clocks_of(const GpuFacts& gpu, std::optional<int> usual, CheckList& list) {
  look_at_power_limit(gpu, list);
  if (!look_at_reasons(gpu, list)) {
    look_at_loaded_clock(gpu, usual, list);
  }
}

void look_at_ecc_of(const GpuFacts& gpu, CheckList& list) {
  if (gpu.remap_failed.value_or(false)) {
    list.bad({.subject = subject_of(gpu),
              .found = "a memory row could not be remapped",
              .wrong = "the memory has no spare rows left for its errors",
              .remedy = "replace the GPU"});
  } else if (gpu.remap_pending.value_or(false)) {
    list.bad({.subject = subject_of(gpu),
              .found = "a memory row is not remapped yet",
              .wrong = "the broken row is in use until the GPU is reset",
              .remedy = "drain the node and reset the GPU (nvidia-smi --gpu-reset) or reboot"});
  } else if (gpu.uncorrected.value_or(0) > 0) {
    list.bad(
        {.subject = subject_of(gpu),
         .found = fmt::format("{} since the driver was loaded", counted(*gpu.uncorrected, "uncorrected memory error")),
         .wrong = "memory of this GPU lost data",
         .remedy = "drain the node, reset the GPU (nvidia-smi --gpu-reset) and run dcgmi diag -r 3"});
  } else if (gpu.has_ecc && !*gpu.has_ecc) {
    list.warn({.subject = subject_of(gpu),
               .found = "ECC is off",
               .wrong = "memory errors go unnoticed",
               .remedy = "turn it on with nvidia-smi -e 1 and reboot"});
  }
}

/// Reports a GPU that is bound to a driver other than its own, or to none.
void look_at_bound_driver(const PciFunction& gpu, CheckList& list) {
  const std::string own_driver = gpu.is_amd ? "amdgpu" : "nvidia";
  if (gpu.driver != own_driver) {
    list.bad(
        {.subject = gpu.address,
         .found = gpu.driver.empty() ? "no driver is bound to this GPU"
                                     : fmt::format("the driver {} is bound to this GPU", gpu.driver),
         .wrong = "programs on this node cannot use the GPU",
         .remedy = fmt::format("load its driver (modprobe {}) and look at dmesg; vfio-pci is right only if a virtual "
                               "machine uses the GPU",
                               own_driver)});
  }
}

void look_at_amd_errors(const NodeFacts& node, CheckList& list) {
  for (const AmdErrors& gpu : node.amd_errors) {
    if (gpu.uncorrected > 0) {
      list.bad({.subject = gpu.address,
                .found = fmt::format("{} since the driver was loaded", counted(gpu.uncorrected, "uncorrected error")),
                .wrong = "this GPU lost data",
                .remedy = "drain the node, reset the GPU (amd-smi reset --gpureset) or reboot, and look at amd-smi "
                          "bad-pages; replace the GPU if this recurs"});
    }
  }
}

/// Compares GPUs of the same model, because another model may have fewer NVLinks, or none.
void look_at_links(const ManagementFacts& management, CheckList& list) {
  std::map<std::string, int> max_links_up;
  for (const GpuFacts& gpu : management.gpus) {
    int& max_of_model = max_links_up[gpu.name];
    max_of_model = std::max(max_of_model, gpu.links_up);
  }
  for (const GpuFacts& gpu : management.gpus) {
    const int max_of_model = max_links_up.at(gpu.name);
    if (gpu.links_up < max_of_model) {
      list.bad({.subject = subject_of(gpu),
                .found = fmt::format("{} of {} up, {} on other GPUs", gpu.links_up,
                                     counted(static_cast<std::size_t>(gpu.links), "NVLink"), max_of_model),
                .wrong = "NVLinks of this GPU are down",
                .remedy = "drain the node, reset all GPUs together or reboot; if this recurs, look at nvidia-smi "
                          "nvlink -e and replace the GPU or its board"});
    }
  }
}

/// Returns "18 NVLinks", or "0 to 12 NVLinks" if GPUs of several models differ.
std::string links_up_in_words(const ManagementFacts& management) {
  const auto [fewest, largest] = std::ranges::minmax(management.gpus, {}, &GpuFacts::links_up);
  const std::string links = counted(static_cast<std::size_t>(largest.links_up), "NVLink");
  return fewest.links_up == largest.links_up ? links : fmt::format("{} to {}", fewest.links_up, links);
}

}  // namespace

std::vector<HealthCheck> CheckList::take() {
  if (checks_.empty()) {
    add(HealthStatus::ok, {.found = ok_});
  }
  return std::move(checks_);
}

void look_at_driver(const NodeFacts& node, const ManagementFacts& management, CheckList& list) {
  const auto on_bus = static_cast<std::size_t>(std::count_if(node.gpus.begin(), node.gpus.end(), is_nvidia));
  if (on_bus == 0 && management.gpus.empty() && node.gpus.empty()) {
    has_answers(node, management, list);
    return;
  }
  const std::string loaded = node.driver.empty() ? management.driver : node.driver;
  for (const PciPath& gpu : node.gpus) {
    look_at_bound_driver(gpu.device(), list);
  }
  if (management.is_broken && on_bus > 0) {
    list.bad({.found = management.missing,
              .wrong = "programs on this node cannot use the GPUs",
              .remedy = "reload the kernel module or reboot (needed after a driver update), and look at dmesg"});
  }
  if (!node.driver.empty() && !management.driver.empty() && node.driver != management.driver) {
    list.bad({.found = fmt::format("kernel module {}, library {}", node.driver, management.driver),
              .wrong = "the kernel module and the library have different versions",
              .remedy = "reload the kernel module or reboot (needed after a driver update)"});
  }
  if (management.missing.empty() && on_bus > management.gpus.size()) {
    list.warn({.found = fmt::format("{} on the PCI bus, {} shown by the driver", counted(on_bus, "GPU"),
                                    management.gpus.size()),
               .wrong = "a GPU does not answer, or this container has only some of the GPUs",
               .remedy = "compare with nvidia-smi on the host; look for Xid 79 in dmesg, and reboot"});
  }
  if (on_bus == 0 && management.gpus.empty()) {
    list.otherwise_ok(fmt::format("amdgpu, {}", counted(node.gpus.size(), "AMD GPU")));
    return;
  }
  list.otherwise_ok(fmt::format("NVIDIA {}{}, {}", loaded.empty() ? "of unknown version" : loaded,
                                node.driver_is_open ? " (open kernel modules)" : "",
                                management.gpus.empty() ? counted(on_bus, "GPU") : gpus_in_words(management)));
}

void look_at_peers(const NodeFacts& node, const ManagementFacts& management, CheckList& list) {
  if (!has_answers(node, management, list)) {
    return;
  }
  look_at_links(management, list);
  bool has_links = false;
  for (const GpuFacts& gpu : management.gpus) {
    has_links = has_links || gpu.links_up > 0;
  }
  for (const PeerFacts& pair : management.peers) {
    const int status = pair.read != 0 ? pair.read : pair.write;
    if (status == 0) {
      continue;
    }
    CheckList::Finding finding{
        .subject = fmt::format("GPU {} to {}", pair.from, pair.to),
        .found = fmt::format("peer access is {}", peer_status_in_words(status)),
        .wrong = "messages between these GPUs go through host memory",
        .remedy = "see the checks fabric, acs and iommu; without NVLink, some CPUs do not support peer access"};
    has_links ? list.bad(std::move(finding)) : list.warn(std::move(finding));
  }
  list.otherwise_ok(management.gpus.size() == 1 ? "one GPU, no peers"
                    : management.peers.empty()
                        ? counted(management.gpus.size(), "GPU")
                        : fmt::format("{} with {} up per GPU; all {} ordered pairs have peer access",
                                      counted(management.gpus.size(), "GPU"), links_up_in_words(management),
                                      management.peers.size()));
}

void look_at_fabric(const NodeFacts& node, const ManagementFacts& management, CheckList& list) {
  if (!has_answers(node, management, list)) {
    return;
  }
  std::size_t completed = 0;
  for (const GpuFacts& gpu : management.gpus) {
    if (gpu.fabric == FabricState::completed && gpu.fabric_error == 0) {
      ++completed;
    } else if (gpu.fabric != FabricState::not_supported) {
      const bool is_completed = gpu.fabric == FabricState::completed;
      const char* const state = gpu.fabric == FabricState::not_started   ? "has not started"
                                : gpu.fabric == FabricState::in_progress ? "is in progress"
                                                                         : "failed";
      list.bad({.subject = subject_of(gpu),
                .found = fmt::format("the GPU's registration with the NVSwitches {}{}", state,
                                     is_completed ? fmt::format(" with error {}", gpu.fabric_error) : ""),
                .wrong = "CUDA does not start on it, or runs without NVLink",
                .remedy =
                    "start the nvidia-fabricmanager whose version matches the driver (check with systemctl status "
                    "nvidia-fabricmanager); on racks, also start nvidia-imex"});
    }
  }
  if (completed == 0 && !node.switches.empty() && list.empty()) {
    list.unknown({.found = fmt::format("{}, whose state this driver does not report",
                                       counted(node.switches.size(), "NVSwitch function")),
                  .wrong = "the fabric was not checked",
                  .remedy = "look at systemctl status nvidia-fabricmanager"});
  }
  list.otherwise_ok(completed == 0 ? "no NVSwitch" : fmt::format("completed on {}", counted(completed, "GPU")));
}

void look_at_ecc(const NodeFacts& node, const ManagementFacts& management, CheckList& list) {
  if (management.gpus.empty() && !node.amd_errors.empty()) {
    look_at_amd_errors(node, list);
    list.otherwise_ok(fmt::format("no uncorrected error on {}", counted(node.amd_errors.size(), "AMD GPU")));
    return;
  }
  if (!has_answers(node, management, list)) {
    return;
  }
  std::size_t reporting_gpus = 0;
  for (const GpuFacts& gpu : management.gpus) {
    reporting_gpus += gpu.has_ecc || gpu.uncorrected || gpu.remap_pending ? 1 : 0;
    look_at_ecc_of(gpu, list);
  }
  if (reporting_gpus == 0) {
    list.unknown({.found = "these GPUs do not count memory errors",
                  .wrong = "memory errors were not checked",
                  .remedy = "none; use GPUs with ECC where results matter"});
  }
  list.otherwise_ok(fmt::format("no uncorrected memory error, no row to remap on {}", counted(reporting_gpus, "GPU")));
}

void look_at_xids(const NodeFacts& node, const ManagementFacts& management, CheckList& list) {
  if (management.gpus.empty() && std::none_of(node.gpus.begin(), node.gpus.end(), is_nvidia)) {
    has_answers(node, management, list);
  } else if (!node.xids) {
    list.unknown({.found = "the kernel's log (/dev/kmsg) is not readable",
                  .wrong = "errors that the driver reported were not checked",
                  .remedy = "run this as root, or with kernel.dmesg_restrict=0 (sysctl); a container needs /dev/kmsg "
                            "of its host"});
  } else {
    for (const XidEvent& event : *node.xids) {
      add_xid(event, list);
    }
    list.otherwise_ok("no Xid or SXid in the kernel's log");
  }
}

void look_at_clocks(const NodeFacts& node, const ManagementFacts& management, CheckList& list) {
  if (!has_answers(node, management, list)) {
    return;
  }
  const std::optional<int> usual = usual_loaded_clock(management);
  std::set<std::string> clocks;
  std::size_t loaded = 0;
  for (const GpuFacts& gpu : management.gpus) {
    look_at_clocks_of(gpu, usual, list);
    loaded += is_loaded(gpu) ? 1 : 0;
    if (gpu.clock_mhz) {
      clocks.insert(
          fmt::format("{}{} MHz", *gpu.clock_mhz, gpu.max_clock_mhz ? fmt::format(" of {}", *gpu.max_clock_mhz) : ""));
    }
  }
  const bool is_known =
      std::ranges::any_of(management.gpus, [](const GpuFacts& gpu) { return gpu.busy_percent.has_value(); });
  const std::string load = !is_known     ? ""
                           : loaded == 0 ? "; idle, so check again during a job for clocks under load"
                                         : fmt::format("; {} under load", counted(loaded, "GPU"));
  const bool has_reasons =
      std::ranges::any_of(management.gpus, [](const GpuFacts& gpu) { return gpu.throttled_by.has_value(); });
  list.otherwise_ok(fmt::format("{}{}{}{}", fmt::join(clocks, "; "), clocks.empty() ? "" : ", ",
                                has_reasons ? "not throttled" : "throttling not reported", load));
}

}  // namespace commfuse::validate
