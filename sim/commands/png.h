// SPDX-License-Identifier: Apache-2.0
// Converts SVG to pixels with a program that the machine may have.
#pragma once

#include <string>
#include <string_view>

namespace commfuse::sim {

/// Returns the PNG that rsvg-convert makes, at twice the size. Throws HardwareAbsent if that program is not installed,
/// and std::runtime_error if it fails.
std::string png_of(std::string_view svg);

}  // namespace commfuse::sim
