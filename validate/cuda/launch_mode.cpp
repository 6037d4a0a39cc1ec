// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/launch_mode.h"

#include <fmt/format.h>

#include <stdexcept>

namespace commfuse::validate {

void require_room_behind_gate(std::size_t commands) {
  if (commands > max_behind_gate) {
    throw std::runtime_error(
        fmt::format("{} commands of one stream would wait behind the gate, which holds {}; issue by stream or graph, "
                    "or run fewer iterations",
                    commands, max_behind_gate));
  }
}

}  // namespace commfuse::validate
