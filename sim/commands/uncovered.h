// SPDX-License-Identifier: Apache-2.0
// Names the scopes and machines for which `--as all` has no implementation to compare with.
#pragma once

#include <string>

#include "sim/point/point_list.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// Returns a line for each scope of the points that no implementation covers under `--as all`, and for each scope,
/// number of ranks and machine for which all implementations are refused. Empty without such points, and without
/// `--as all`. Requires points of layers.
std::string uncovered_in_words(const PointList& points, const Library& library);

/// Returns the line for one point, or an empty text.
std::string uncovered_in_words(const Settings& settings, const Library& library);

}  // namespace commfuse::sim
