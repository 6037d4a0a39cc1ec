// SPDX-License-Identifier: Apache-2.0
// Modes of issuing commands to a device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace commfuse::validate {

enum class LaunchMode : std::uint8_t {
  stream,  ///< Commands are issued while the device works, as in normal use: the times include issue costs.
  gated,   ///< All commands are issued while a gate holds the device back: the times are those of the device alone.
  graph,   ///< Commands are captured once and launched as a whole.
};

/// A stream accepts about 1,000 commands before the host has to wait; behind a closed gate, the host would wait until
/// the gate gives up.
inline constexpr std::size_t max_behind_gate = 900;

/// Throws std::runtime_error if `commands`, the number on one stream, exceeds max_behind_gate.
void require_room_behind_gate(std::size_t commands);

}  // namespace commfuse::validate
