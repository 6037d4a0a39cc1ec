// SPDX-License-Identifier: Apache-2.0
// How commands get to a device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace commfuse::validate {

enum class LaunchMode : std::uint8_t {
  stream,  ///< One after another while it works already, as users run it: issue costs count.
  gated,   ///< All while a gate holds the device back: only what the device does counts.
  graph,   ///< Captured once, launched as a whole.
};

/// A stream takes some 1,000 commands before its host has to wait; behind a closed gate it would wait for ever.
inline constexpr std::size_t most_behind_gate = 900;

/// Throws std::runtime_error when so many commands of one stream are more than may wait behind the gate.
void require_room_behind_gate(std::size_t commands);

}  // namespace commfuse::validate
