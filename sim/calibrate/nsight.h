// SPDX-License-Identifier: Apache-2.0
// Exports of Nsight Systems: the database of `nsys export --type sqlite`, and the table of `nsys stats --report
// cuda_gpu_trace --format csv`. Names of kernels never contain the sizes of a GEMM. Ranges of PyTorch's
// emit_nvtx(record_shapes=True) contain them, but only the database has these ranges.
#pragma once

#include <filesystem>

#include "sim/calibrate/profile.h"

namespace commfuse::calibrate {

/// Returns whether the file is a SQLite database of any program.
bool is_sqlite(const std::filesystem::path& path);
/// Returns whether the file is a CSV of `nsys stats`, perhaps after other output.
bool is_nsight_table(const std::filesystem::path& path);

/// Assigns each kernel to the innermost operator's range with sizes around its launch, or to the innermost range if
/// none has sizes. Throws ConfigError if the database is damaged, too large or not from Nsight Systems.
Profile read_nsight_database(const std::filesystem::path& path);

/// Kernels in the table have no sizes, so no fit can use them; the profile only states why (Profile::skipped). Throws
/// ConfigError for summaries and broken rows.
Profile read_nsight_table(const std::filesystem::path& path);

}  // namespace commfuse::calibrate
