// SPDX-License-Identifier: Apache-2.0
// Chakra execution traces, as chakra_converter makes them of a PyTorch run: operators with their shapes, and the
// kernels that they launched with times in whole microseconds.
#pragma once

#include <filesystem>

#include "sim/calibrate/profile.h"

namespace commfuse::calibrate {

/// Chakra's protobuf (.et), by its first message; of the JSON of PyTorch's execution traces and of chakra_trace_link,
/// by how it begins.
bool is_chakra_trace(const std::filesystem::path& path);
bool is_chakra_json(const std::filesystem::path& path);

/// Throws ConfigError where the file is larger than 512 MiB, cut off, JSON, or a schedule that commfuse exported: its
/// times are predictions.
Profile read_chakra(const std::filesystem::path& path);

}  // namespace commfuse::calibrate
