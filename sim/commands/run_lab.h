// SPDX-License-Identifier: Apache-2.0
// run FILE, where the file is a workload of configs/lab: no model and no machine, every cost is given.
#pragma once

#include <string>
#include <string_view>

#include "sim/commands/answer.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

/// True if a file says that it is a lab workload. Throws ConfigError if it cannot be read.
bool is_lab(const std::string& path);

/// Simulates a lab workload and returns the result. Uses ranks, evaluator, symmetry, jitter, samples, seed and faults
/// of the settings. Throws ConfigError for other settings that --set, --config or a flag set, and for formats other
/// than table and json.
Answer run_lab_file(const std::string& path, const SettingArguments& arguments, std::string_view format);

}  // namespace commfuse::sim
