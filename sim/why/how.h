// SPDX-License-Identifier: Apache-2.0
// Describes the cost model's choices for an op in words.
#pragma once

#include <cstddef>
#include <string>

#include "sim/point/predict.h"

namespace commfuse {

/// Returns the choices for op `op`, for example "tile 128 x 256, 26 waves, the last 48% full; power sets the time", or
/// "NCCL's ring with LL128".
std::string how(const Point& point, const Structure& structure, const Sizes& sizes, std::size_t op);

}  // namespace commfuse
