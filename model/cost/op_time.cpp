// SPDX-License-Identifier: Apache-2.0
#include "model/cost/op_time.h"

#include <fmt/format.h>

#include "model/config_error.h"

namespace commfuse {

Duration op_time(double seconds, std::string_view what) {
  if (seconds > longest_op_seconds) [[unlikely]] {
    throw ConfigError(
        fmt::format("{} would take {:.3g} s, over the limit of {:.0e} s; choose a smaller batch or sequence, "
                    "or check the rates of the hardware file",
                    what, seconds, longest_op_seconds));
  }
  return from_seconds(seconds);
}

}  // namespace commfuse
