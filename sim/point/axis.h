// SPDX-License-Identifier: Apache-2.0
// One axis of a grid: a setting, or several that vary together, and the values they take.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/config/settings.h"

namespace commfuse {

struct GridAxis {
  std::vector<const Field*> fields;         ///< several: varied together
  std::vector<std::vector<Setting>> steps;  ///< one setting a field
  Origin origin;
};

/// The values that one piece of an axis means: `1K..128K` (as the field grows), `4K..16K+4K` (adds), `1K..64K*4`
/// (multiplies), `x0.25..x4` of a bandwidth (doubles), or the text itself. The upper end is included where the steps
/// meet it. At most 10,000 values. Throws ConfigError, `sentence; remedy`, for a wrong range; the values are not looked
/// at.
std::vector<std::string> axis_values(const Field& field, std::string_view text);

/// The setting that an axis varies. Throws ConfigError for an unknown key and for settings that change no result.
const Field& axis_field(std::string_view key);

/// Reads an --axis: `seq=1K..128K` or `ranks=2,4,8`. Throws ConfigError that begins with "--axis TEXT: ".
GridAxis parse_axis(std::string_view text);

}  // namespace commfuse
