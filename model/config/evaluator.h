// SPDX-License-Identifier: Apache-2.0
// Ways to simulate a schedule. When their assumptions hold, all return the same times to the picosecond.
#pragma once

#include <cstdint>

namespace commfuse {

enum class Evaluator : std::uint8_t {
  automatic,  ///< the cheapest exact evaluator
  replay,     ///< one pass over a static recurrence: exact when no rate changes during the run
  engine,     ///< discrete events
};

}  // namespace commfuse
