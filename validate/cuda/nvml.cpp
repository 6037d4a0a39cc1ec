// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/nvml.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "validate/cuda/management_library.h"

namespace commfuse::validate {

namespace {

// Declarations of nvml.h, which not every toolkit has.
constexpr int clock_of_multiprocessors = 1;
constexpr int clock_of_memory = 2;
constexpr int sensor_of_the_die = 0;
constexpr unsigned max_links = 18;

/// The library, initialized during the object's lifetime.
class Library {
 public:
  Library() : started_(library_.call("nvmlInit_v2")) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (started_) {
      static_cast<void>(library_.call("nvmlShutdown"));
    }
  }

  [[nodiscard]] std::optional<ManagementLibrary::Device> device(const std::string& uuid) const {
    return started_ ? library_.query<ManagementLibrary::Device>("nvmlDeviceGetHandleByUUID", uuid.c_str())
                    : std::nullopt;
  }
  /// Returns the value that a function writes. The function takes the device and other arguments.
  template <class Value, class... Arguments>
  [[nodiscard]] std::optional<Value> query(const char* name, ManagementLibrary::Device device,
                                           Arguments... arguments) const {
    return library_.query<Value>(name, device, arguments...);
  }

 private:
  ManagementLibrary library_;
  bool started_ = false;
};

std::optional<int> as_int(std::optional<unsigned> value) {
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

std::optional<int> links_of(const Library& library, ManagementLibrary::Device device) {
  std::optional<int> links;
  for (unsigned link = 0; link < max_links; ++link) {
    if (const std::optional<unsigned> up = library.query<unsigned>("nvmlDeviceGetNvLinkState", device, link)) {
      links = links.value_or(0) + (*up != 0 ? 1 : 0);
    }
  }
  return links;
}

struct Reason {
  std::uint64_t bit;
  const char* words;
};
constexpr std::array reasons{Reason{0x1, "idling"},
                             Reason{0x2, "application clock settings"},
                             Reason{0x4, "the power cap"},
                             Reason{0x8, "the hardware"},
                             Reason{0x10, "sync boost"},
                             Reason{0x20, "heat"},
                             Reason{0x40, "hardware thermal slowdown"},
                             Reason{0x80, "the power brake"},
                             Reason{0x100, "the display"}};

}  // namespace

std::optional<DeviceState> device_state(const std::string& uuid) {
  const Library library;
  const std::optional<ManagementLibrary::Device> device = library.device(uuid);
  if (!device) {
    return std::nullopt;
  }
  using Bits = unsigned long long;
  std::optional<Bits> throttled_by = library.query<Bits>("nvmlDeviceGetCurrentClocksEventReasons", *device);
  if (!throttled_by) {  // the function's name until CUDA 12.2
    throttled_by = library.query<Bits>("nvmlDeviceGetCurrentClocksThrottleReasons", *device);
  }
  const std::optional<unsigned> milliwatts = library.query<unsigned>("nvmlDeviceGetPowerUsage", *device);
  return DeviceState{
      .clock_mhz = as_int(library.query<unsigned>("nvmlDeviceGetClockInfo", *device, clock_of_multiprocessors)),
      .memory_clock_mhz = as_int(library.query<unsigned>("nvmlDeviceGetClockInfo", *device, clock_of_memory)),
      .watts = milliwatts ? std::optional(*milliwatts / 1e3) : std::nullopt,
      .celsius = as_int(library.query<unsigned>("nvmlDeviceGetTemperature", *device, sensor_of_the_die)),
      .nvlinks = links_of(library, *device),
      .throttled_by = throttled_by ? std::optional(std::uint64_t{*throttled_by}) : std::nullopt};
}

std::string reasons_in_words(std::uint64_t throttled_by) {
  std::vector<std::string> words;
  for (const Reason& reason : reasons) {
    if ((throttled_by & reason.bit) != 0) {
      words.emplace_back(reason.words);
      throttled_by &= ~reason.bit;
    }
  }
  if (throttled_by != 0) {
    words.push_back(fmt::format("reasons {:#x}", throttled_by));
  }
  return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", "));
}

std::string in_words(const DeviceState& state) {
  std::vector<std::string> words;
  if (state.clock_mhz) {
    words.push_back(fmt::format("{} MHz", *state.clock_mhz));
  }
  if (state.memory_clock_mhz) {
    words.push_back(fmt::format("memory {} MHz", *state.memory_clock_mhz));
  }
  if (state.watts) {
    words.push_back(fmt::format("{:.0f} W", *state.watts));
  }
  if (state.celsius) {
    words.push_back(fmt::format("{} C", *state.celsius));
  }
  if (state.nvlinks) {
    words.push_back(fmt::format("{} NVLinks up", *state.nvlinks));
  }
  if (state.throttled_by) {
    words.push_back(*state.throttled_by == 0 ? "not throttled"
                                             : fmt::format("throttled by {}", reasons_in_words(*state.throttled_by)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace commfuse::validate
