// SPDX-License-Identifier: Apache-2.0
// Faults of a run from a file: a name in configs/faults, or a path.
#pragma once

#include <memory>
#include <string_view>

#include "sim/engine/faults.h"

namespace commfuse {

/// Returns the faults; null if the file has none. Throws ConfigError with every mistake in the file. The start of a run
/// checks whether the ranks exist.
std::shared_ptr<const Faults> load_faults(std::string_view name_or_path);

}  // namespace commfuse
