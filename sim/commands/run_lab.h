// SPDX-License-Identifier: Apache-2.0
// run FILE, where the file is a workload of configs/lab: no model and no machine, every cost is given.
#pragma once

#include <string>
#include <string_view>

#include "sim/commands/answer.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

/// Whether a file says of itself that it is one. Throws ConfigError when it cannot be read.
bool is_lab(const std::string& path);

/// Simulates it and returns what came out. Of the settings it takes ranks, evaluator, symmetry, jitter, samples, seed
/// and faults. Throws ConfigError for the others, where they are set by --set, --config or a flag, and for formats
/// other than table and json.
Answer run_lab_file(const std::string& path, const SettingArguments& arguments, std::string_view format);

}  // namespace commfuse::sim
