// SPDX-License-Identifier: Apache-2.0
// A parameter as a line of a hardware file. Times and rates have four significant digits; counts and sizes are whole.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "model/hardware/parameter.h"
#include "model/text/yaml_quotes.h"
#include "model/units.h"

namespace commfuse {

inline std::string parameter_text(double value) { return fmt::format("{:.4g}", value); }
inline std::string parameter_text(int count) { return fmt::format("{}", count); }
inline std::string parameter_text(Duration time) { return fmt::format("{:.4g} us", to_microseconds(time)); }
inline std::string parameter_text(FlopsPerSecond rate) { return fmt::format("{:.4g} TFLOP/s", rate.value / 1e12); }
inline std::string parameter_text(BytesPerSecond rate) { return fmt::format("{:.4g} GB/s", rate.value / 1e9); }
inline std::string parameter_text(Bytes size) { return fmt::format("{} B", size.count); }

/// Returns `rate: {value: 361 GB/s, error: 0.002, provenance: "fitted: table.csv"}` indented by `indent` spaces,
/// without error if it is 0. Ends with a line break.
template <class T>
std::string parameter_line(std::string_view key, const Parameter<T>& parameter, int indent) {
  const std::string error =
      parameter.standard_error > 0.0 ? fmt::format("error: {:.2g}, ", parameter.standard_error) : "";
  return fmt::format("{:{}}{}: {{value: {}, {}provenance: {}}}\n", "", indent, key, parameter_text(parameter.value),
                     error, yaml_quoted(fmt::format("{}: {}", name_of(parameter.provenance), parameter.source)));
}

}  // namespace commfuse
