// SPDX-License-Identifier: Apache-2.0
// Traces of PyTorch's profiler (Kineto), of 2022 to 2026, on CUDA and ROCm: operators with the sizes that the trace
// records, and NCCL collectives. The trace may be gzipped, and is read in one pass, however large.
#pragma once

#include <filesystem>

#include "sim/calibrate/profile.h"

namespace commfuse::calibrate {

/// Assigns each kernel to the innermost operator with recorded shapes around its launch (the event with the kernel's
/// correlation), or to the innermost operator if none has shapes. A kernel without such a launch or operator belongs to
/// the operator with its external id. Throws ConfigError if the file cannot be read, is truncated, or is not a trace of
/// Kineto.
Profile read_kineto(const std::filesystem::path& path);

}  // namespace commfuse::calibrate
