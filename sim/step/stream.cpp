// SPDX-License-Identifier: Apache-2.0
#include "sim/step/stream.h"

#include <fmt/format.h>

#include "model/config_error.h"

namespace commfuse {

void refuse_length() {
  throw ConfigError(
      fmt::format("the whole model would take more than {:.0e} s; choose a smaller batch or sequence, or more GPUs",
                  to_seconds(longest_stream)));
}

Duration stream_time(double seconds) {
  if (seconds > to_seconds(longest_stream)) [[unlikely]] {
    refuse_length();
  }
  return from_seconds(seconds);
}

}  // namespace commfuse
