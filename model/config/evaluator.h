// SPDX-License-Identifier: Apache-2.0
// Ways to simulate a schedule. Where their assumptions hold, all give the same picosecond.
#pragma once

#include <cstdint>

namespace commfuse {

enum class Evaluator : std::uint8_t {
  automatic,  ///< the cheapest exact evaluator
  replay,     ///< one pass over a static recurrence: exact when no rate changes during the run
  engine,     ///< discrete events
};

}  // namespace commfuse
