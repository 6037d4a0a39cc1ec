// SPDX-License-Identifier: Apache-2.0
// Exports of Nsight Systems: the database of `nsys export --type sqlite`, and the table of
// `nsys stats --report cuda_gpu_trace --format csv`. No kernel's name tells the size of a product; ranges of PyTorch's
// emit_nvtx(record_shapes=True) do, and only the database has them.
#pragma once

#include <filesystem>

#include "sim/calibrate/profile.h"

namespace commfuse::calibrate {

/// A database of SQLite, whoever made it.
bool is_sqlite(const std::filesystem::path& path);
/// A CSV of `nsys stats`, behind what it may print before.
bool is_nsight_table(const std::filesystem::path& path);

/// A kernel belongs to the innermost operator's range around its launch. Throws ConfigError where the database is
/// damaged, too large or not of Nsight Systems.
Profile read_nsight_database(const std::filesystem::path& path);

/// Kernels without sizes, as sentences alone. Throws ConfigError for summaries and broken rows.
Profile read_nsight_table(const std::filesystem::path& path);

}  // namespace commfuse::calibrate
