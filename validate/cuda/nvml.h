// SPDX-License-Identifier: Apache-2.0
// How a GPU feels, as NVIDIA's management library says: what the CUDA runtime does not tell. It is looked for when
// asked, and nothing is linked with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace commfuse::validate {

/// At one moment; what the library did not tell is missing.
struct DeviceState {
  std::optional<int> clock_mhz{};  ///< Of the multiprocessors.
  std::optional<int> memory_clock_mhz{};
  std::optional<double> watts{};
  std::optional<int> celsius{};
  std::optional<int> nvlinks{};              ///< Links that are up.
  std::optional<std::uint64_t> held_back{};  ///< Why clocks are lower than they could be, as bits.
};

/// Of the device of this UUID, "GPU-..."; nothing where there is no such library, or it does not know the device.
std::optional<DeviceState> device_state(const std::string& uuid);

/// "idling, the power cap"; "nothing".
std::string reasons_in_words(std::uint64_t held_back);
/// "1980 MHz, memory 3201 MHz, 112 W, 41 C, 18 NVLinks up, held back by nothing".
std::string in_words(const DeviceState& state);

}  // namespace commfuse::validate
