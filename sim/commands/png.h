// SPDX-License-Identifier: Apache-2.0
// Pictures of pixels from SVG, by a program that the machine may have.
#pragma once

#include <string>
#include <string_view>

namespace commfuse::sim {

/// What rsvg-convert makes of it, at twice its size. Throws HardwareAbsent where that program is not installed, and
/// std::runtime_error where it fails.
std::string png_of(std::string_view svg);

}  // namespace commfuse::sim
