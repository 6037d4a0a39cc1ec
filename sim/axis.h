// SPDX-License-Identifier: Apache-2.0
// One axis of a grid: a setting and the values it takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace commfuse {

struct GridAxis {
  std::string key;
  std::vector<std::string> values;
};

/// Reads `seq=1K..128K` (doubles), `ranks=1..8` (counts by one), `seq=4K..16K+4K` (adds), `seq=1K..64K*4`
/// (multiplies), or a list `ranks=2,4,8`. The upper end is included where the steps meet it. At most 10,000 values.
/// Throws ConfigError with the remedy. Whether the key exists is not looked at.
GridAxis parse_axis(std::string_view text);

}  // namespace commfuse
