// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/point/grid.h"

namespace commfuse {

/// SHA-256 over a sweep in full and over every file that it names, and what those name: equal digests, equal results of
/// one model version. Throws ConfigError where a file cannot be read.
std::string digest_of(const std::string& sweep_in_full, const Grid& grid);

}  // namespace commfuse
