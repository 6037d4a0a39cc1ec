// SPDX-License-Identifier: Apache-2.0
#include "validate/health/management.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <map>

namespace commfuse::validate {

namespace {

// Declarations of nvml.h, which not every toolkit contains.
using Device = ManagementLibrary::Device;
constexpr unsigned clock_of_multiprocessors = 1;
constexpr unsigned sensor_of_the_die = 0;
constexpr unsigned uncorrected_errors = 1;
constexpr unsigned since_the_driver_was_loaded = 0;
constexpr unsigned read_capability = 0;
constexpr unsigned write_capability = 1;
constexpr unsigned max_links = 18;
constexpr unsigned max_gpus = 64;

struct PciInfo {
  std::array<char, 16> legacy_address{};
  std::array<unsigned, 5> numbers{};
  std::array<char, 32> address{};
};

/// Version 2 of nvmlGpuFabricInfoV_t.
struct FabricInfo {
  static constexpr unsigned size_and_version = 36U | (2U << 24U);
  unsigned version = size_and_version;
  std::array<unsigned char, 16> cluster{};
  int status = 0;
  unsigned clique = 0;
  unsigned char state = 0;
  unsigned health = 0;
};
static_assert(sizeof(FabricInfo) == 36);

/// `error` is an error code of nvml.h.
std::string start_error_in_words(std::optional<int> error) {
  switch (error.value_or(-1)) {
    case -1: return "it has no nvmlInit_v2";
    case 4: return "no permission";
    case 9: return "the driver is not loaded";
    case 15: return "a GPU is lost";
    case 18: return "the kernel module is of another version";
    default: return fmt::format("error {}", *error);
  }
}

std::optional<int> as_int(std::optional<unsigned> value) {
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

/// Returns "0000:1b:00.0" for "00000000:1B:00.0".
std::string address_of(const PciInfo& info) {
  constexpr std::size_t domain = 4;
  std::string address(info.address.begin(), std::find(info.address.begin(), info.address.end(), '\0'));
  const std::size_t colon = address.find(':');
  if (colon != std::string::npos && colon > domain) {
    address.erase(0, colon - domain);
  }
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return address;
}

void add_memory(const ManagementLibrary& library, Device device, GpuFacts& gpu) {
  unsigned is_on = 0;
  unsigned will_be_on = 0;
  if (library.call("nvmlDeviceGetEccMode", device, &is_on, &will_be_on)) {
    gpu.has_ecc = is_on != 0;
  }
  using Count = unsigned long long;
  if (const auto errors = library.query<Count>("nvmlDeviceGetTotalEccErrors", device, uncorrected_errors,
                                               since_the_driver_was_loaded)) {
    gpu.uncorrected = *errors;
  }
  // Rows remapped after corrected errors and after uncorrected ones; whether a remapping is pending; whether one
  // failed.
  std::array<unsigned, 4> rows{};
  if (library.call("nvmlDeviceGetRemappedRows", device, &rows[0], &rows[1], &rows[2], &rows[3])) {
    gpu.remap_pending = rows[2] != 0;
    gpu.remap_failed = rows[3] != 0;
  }
}

void add_links(const ManagementLibrary& library, Device device, GpuFacts& gpu) {
  for (unsigned link = 0; link < max_links; ++link) {
    if (const std::optional<unsigned> up = library.query<unsigned>("nvmlDeviceGetNvLinkState", device, link)) {
      ++gpu.links;
      gpu.links_up += *up != 0 ? 1 : 0;
    }
  }
  FabricInfo fabric;
  if (library.call("nvmlDeviceGetGpuFabricInfoV", device, &fabric) &&
      fabric.state <= static_cast<unsigned char>(FabricState::completed)) {
    gpu.fabric = static_cast<FabricState>(fabric.state);
    gpu.fabric_error = fabric.status;
  }
}

/// nvmlUtilization_t, in percent.
struct Utilization {
  unsigned gpu = 0;
  unsigned memory = 0;
};

void add_load(const ManagementLibrary& library, Device device, GpuFacts& gpu) {
  constexpr unsigned max_percent = 100;
  if (const auto busy = library.query<Utilization>("nvmlDeviceGetUtilizationRates", device);
      busy && busy->gpu <= max_percent) {
    gpu.busy_percent = static_cast<int>(busy->gpu);
  }
  const auto watts = [&](const char* name) -> std::optional<double> {
    constexpr double milliwatts = 1e3;
    const std::optional<unsigned> value = library.query<unsigned>(name, device);
    return value ? std::optional(*value / milliwatts) : std::nullopt;
  };
  gpu.watts = watts("nvmlDeviceGetPowerUsage");
  gpu.limit_watts = watts("nvmlDeviceGetEnforcedPowerLimit");
  gpu.default_watts = watts("nvmlDeviceGetPowerManagementDefaultLimit");
}

GpuFacts gpu_facts(const ManagementLibrary& library, Device device) {
  GpuFacts gpu{
      .name = library.text("nvmlDeviceGetName", device),
      .address = address_of(library.query<PciInfo>("nvmlDeviceGetPciInfo_v3", device).value_or(PciInfo{})),
      .clock_mhz = as_int(library.query<unsigned>("nvmlDeviceGetClockInfo", device, clock_of_multiprocessors)),
      .max_clock_mhz = as_int(library.query<unsigned>("nvmlDeviceGetMaxClockInfo", device, clock_of_multiprocessors)),
      .celsius = as_int(library.query<unsigned>("nvmlDeviceGetTemperature", device, sensor_of_the_die))};
  using Bits = unsigned long long;
  std::optional<Bits> throttled_by = library.query<Bits>("nvmlDeviceGetCurrentClocksEventReasons", device);
  if (!throttled_by) {  // the function's name until CUDA 12.2
    throttled_by = library.query<Bits>("nvmlDeviceGetCurrentClocksThrottleReasons", device);
  }
  gpu.throttled_by = throttled_by ? std::optional(std::uint64_t{*throttled_by}) : std::nullopt;
  add_load(library, device, gpu);
  add_memory(library, device, gpu);
  add_links(library, device, gpu);
  return gpu;
}

/// The devices that answer, by the index that nvidia-smi shows.
using Devices = std::map<int, Device>;

std::vector<PeerFacts> peers_of(const ManagementLibrary& library, const Devices& devices) {
  std::vector<PeerFacts> peers;
  for (const auto& [from, source] : devices) {
    for (const auto& [to, target] : devices) {
      const auto status = [&library, source = source, target = target](unsigned capability) {
        return library.query<unsigned>("nvmlDeviceGetP2PStatus", source, target, capability);
      };
      const std::optional<unsigned> read_status = from == to ? std::nullopt : status(read_capability);
      const std::optional<unsigned> write_status = from == to ? std::nullopt : status(write_capability);
      if (read_status && write_status) {
        peers.push_back({from, to, static_cast<int>(*read_status), static_cast<int>(*write_status)});
      }
    }
  }
  return peers;
}

ManagementFacts facts_of(const ManagementLibrary& library) {
  ManagementFacts facts;
  if (const std::optional<int> error = library.error_of("nvmlInit_v2"); error != ManagementLibrary::success) {
    facts.missing = fmt::format("NVIDIA's management library does not start: {}", start_error_in_words(error));
    facts.is_broken = true;
    return facts;
  }
  facts.driver = library.text("nvmlSystemGetDriverVersion");
  const unsigned count = std::min(max_gpus, library.query<unsigned>("nvmlDeviceGetCount_v2").value_or(0));
  Devices devices;
  for (unsigned index = 0; index < count; ++index) {
    if (const std::optional<Device> device = library.query<Device>("nvmlDeviceGetHandleByIndex_v2", index)) {
      devices.emplace(static_cast<int>(index), *device);
      facts.gpus.push_back(gpu_facts(library, *device));
    }
  }
  facts.peers = peers_of(library, devices);
  static_cast<void>(library.call("nvmlShutdown"));
  return facts;
}

}  // namespace

ManagementFacts management_facts(const FindFunction& find) { return facts_of(ManagementLibrary(find)); }

ManagementFacts management_facts() {
  const ManagementLibrary library;
  if (!library.is_here()) {
    return {.missing = "NVIDIA's management library (libnvidia-ml.so.1) was not found"};
  }
  return facts_of(library);
}

}  // namespace commfuse::validate
