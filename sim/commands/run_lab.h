// SPDX-License-Identifier: Apache-2.0
// `run FILE` for a workload of configs/lab, which needs no model and no machine, because it states every cost itself.
#pragma once

#include <string>
#include <string_view>

#include "sim/commands/answer.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

/// Returns whether a file has the schema of a lab workload. Throws ConfigError if the file cannot be read.
bool is_lab(const std::string& path);

/// Simulates a lab workload and returns the result. Uses the settings ranks, evaluator, symmetry, jitter, samples, seed
/// and faults; notes other environment variables. Throws ConfigError if --set, --config or a flag sets any other
/// setting of a point, for --axis, and for formats other than table and json.
Answer run_lab_file(const std::string& path, const SettingArguments& arguments, std::string_view format,
                    Caller& caller);

}  // namespace commfuse::sim
