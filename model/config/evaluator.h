// SPDX-License-Identifier: Apache-2.0
// Who plays a schedule. Where their assumptions hold, all give the same picosecond.
#pragma once

#include <cstdint>

namespace commfuse {

enum class Evaluator : std::uint8_t {
  automatic,  ///< the cheapest that is exact
  replay,     ///< one pass over a static recurrence: exact where no rate changes at run time
  engine,     ///< events
};

}  // namespace commfuse
