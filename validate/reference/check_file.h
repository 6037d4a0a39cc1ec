// SPDX-License-Identifier: Apache-2.0
// Requirements for a schedule from a file to run in the reference, and the sizes at which it runs.
#pragma once

#include <cstdint>
#include <vector>

#include "model/program/sizes.h"
#include "model/program_text/load_schedule.h"

namespace commfuse::validate {

/// Throws ConfigError for a schedule that the reference cannot run: one that has nothing to compare, more than
/// max_ranks ranks, dtypes that the reference does not store or that no error bound covers, attention of only some of
/// the queries or that 'unfused' does not list, or matrices that are too large.
void require_runnable(const ScheduleFile& file);

/// Returns sizes as checked_sizes() does, with contracted dimensions shortened until integer data stays exact. Throws
/// ConfigError if it never stays exact, or if heads cannot be whole. Requires `file` to have passed require_runnable(),
/// and its program to have passed check_program().
std::vector<Sizes> sizes_for(const ScheduleFile& file, std::uint64_t seed);

}  // namespace commfuse::validate
