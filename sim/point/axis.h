// SPDX-License-Identifier: Apache-2.0
// One axis of a grid: a setting, or several settings that vary together, and their values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/config/settings.h"

namespace commfuse {

struct GridAxis {
  std::vector<const Field*> fields;         ///< several fields vary together
  std::vector<std::vector<Setting>> steps;  ///< each step has one setting per field
  Origin origin;
};

/// Returns the values of one piece of an axis: `1K..128K` (steps by the field's rule), `4K..16K+4K` (adds), `1K..64K*4`
/// (multiplies), `x0.25..x4` of a bandwidth (doubles), or the text itself. The upper end is included if a step lands on
/// it. Does not check the values. Throws ConfigError (`sentence; remedy`) for an invalid range, and for more than
/// 10,000 values.
std::vector<std::string> axis_values(const Field& field, std::string_view text);

/// Returns the setting that an axis varies. Throws ConfigError for an unknown key and for settings that change no
/// result.
const Field& axis_field(std::string_view key);

/// Returns the values of the first step that an earlier step has too: "8K", or "8K, 4" of settings that vary together.
/// Returns an empty text if all steps differ. Values that differ only in spelling are equal: 8K is 8192.
std::string repeated_step(const GridAxis& axis);

/// Reads an --axis: `seq=1K..128K` or `ranks=2,4,8`. Throws a ConfigError that begins with "--axis TEXT: ".
GridAxis parse_axis(std::string_view text);

}  // namespace commfuse
