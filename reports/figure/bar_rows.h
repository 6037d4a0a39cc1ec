// SPDX-License-Identifier: Apache-2.0
// Sizes of figures with one bar in each row.
#pragma once

namespace commfuse::reports {

inline constexpr double row_height = 34.0;  // pixels
inline constexpr double bar_share = 0.7;    // share of a row's height that its bar fills

}  // namespace commfuse::reports
