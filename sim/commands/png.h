// SPDX-License-Identifier: Apache-2.0
// Converts SVG to PNG with rsvg-convert, if it is installed.
#pragma once

#include <string>
#include <string_view>

namespace commfuse::sim {

/// Returns the PNG at twice the size of the SVG. Throws HardwareAbsent if rsvg-convert is not installed, and
/// std::runtime_error if it fails.
std::string png_of(std::string_view svg);

}  // namespace commfuse::sim
