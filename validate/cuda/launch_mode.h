// SPDX-License-Identifier: Apache-2.0
// Modes of issuing commands to a device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace commfuse::validate {

enum class LaunchMode : std::uint8_t {
  stream,  ///< One after another while the device works, as users run it: the times include issue costs.
  gated,   ///< All while a gate holds the device back: the times are those of the device alone.
  graph,   ///< Captured once and launched as a whole.
};

/// A stream accepts some 1,000 commands before its host has to wait; behind a closed gate the host would wait for ever.
inline constexpr std::size_t max_behind_gate = 900;

/// Throws std::runtime_error if `commands` of one stream are more than may wait behind the gate.
void require_room_behind_gate(std::size_t commands);

}  // namespace commfuse::validate
