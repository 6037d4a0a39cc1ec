// SPDX-License-Identifier: Apache-2.0
// Faults of a run from a file: a name in configs/faults, or a path.
#pragma once

#include <memory>
#include <string_view>

#include "sim/engine/faults.h"

namespace commfuse {

/// Null where nothing goes wrong. Throws ConfigError with every mistake of the file. Whether the ranks are there is
/// asked when it runs.
std::shared_ptr<const Faults> load_faults(std::string_view name_or_path);

}  // namespace commfuse
