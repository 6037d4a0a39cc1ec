// SPDX-License-Identifier: Apache-2.0
// Converts SVG to PNG with rsvg-convert, if it is installed.
#pragma once

#include <string>
#include <string_view>

namespace commfuse::sim {

/// Returns the PNG at twice the size of the SVG. Throws HardwareAbsent if rsvg-convert is not installed,
/// ConfigError without a folder for temporary files, and std::runtime_error if the conversion fails.
std::string png_of(std::string_view svg);

}  // namespace commfuse::sim
