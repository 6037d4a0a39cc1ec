// SPDX-License-Identifier: Apache-2.0
// Device health from NVIDIA's management library, because the CUDA runtime does not report it. The library is loaded on
// demand and never linked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace commfuse::validate {

/// State at one moment; values that the library did not report are missing.
struct DeviceState {
  std::optional<int> clock_mhz{};  ///< Clock of the multiprocessors.
  std::optional<int> memory_clock_mhz{};
  std::optional<double> watts{};
  std::optional<int> celsius{};
  std::optional<int> nvlinks{};                 ///< Number of links that are up.
  std::optional<std::uint64_t> throttled_by{};  ///< Reasons for reduced clocks, as bits.
};

/// Returns the state of the device with this UUID, "GPU-..."; nothing if the library is absent or does not list the
/// device.
std::optional<DeviceState> device_state(const std::string& uuid);

/// Returns a string such as "idling, the power cap", or "nothing".
std::string reasons_in_words(std::uint64_t throttled_by);
/// Returns a string such as "1980 MHz, memory 3201 MHz, 112 W, 41 C, 18 NVLinks up, not throttled".
std::string in_words(const DeviceState& state);

}  // namespace commfuse::validate
