// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/point/grid.h"

namespace commfuse {

/// Returns the SHA-256 of the complete sweep, of every file that it names, directly or through other files, and of the
/// values for which "all" stands in the sweep. Equal digests mean equal results of one model version. Throws
/// ConfigError if a file cannot be read.
std::string digest_of(const std::string& sweep_in_full, const Grid& grid);

}  // namespace commfuse
