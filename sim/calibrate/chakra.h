// SPDX-License-Identifier: Apache-2.0
// Chakra execution traces, as chakra_converter makes them from a PyTorch run: operators with their shapes, and the
// kernels that they launched with times in whole microseconds.
#pragma once

#include <filesystem>

#include "sim/calibrate/profile.h"

namespace commfuse::calibrate {

/// Returns whether the file is Chakra's protobuf (.et), recognized by its first message. is_chakra_json() recognizes
/// JSON of PyTorch's execution traces or of chakra_trace_link by its beginning.
bool is_chakra_trace(const std::filesystem::path& path);
bool is_chakra_json(const std::filesystem::path& path);

/// Throws ConfigError if the file is larger than 512 MiB, truncated, JSON, or a schedule that commfuse exported,
/// whose times are predictions.
Profile read_chakra(const std::filesystem::path& path);

}  // namespace commfuse::calibrate
