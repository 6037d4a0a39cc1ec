// SPDX-License-Identifier: Apache-2.0
// Requirements for a schedule from a file to run in the reference, and the sizes at which it runs.
#pragma once

#include <cstdint>
#include <vector>

#include "model/program/sizes.h"
#include "model/program_text/load_schedule.h"

namespace commfuse::validate {

/// Throws ConfigError for a schedule that the reference cannot run: without anything to compare, with more than
/// most_ranks ranks, with dtypes that it does not store or whose error bound is not derived, with attention of some of
/// the queries only, or with matrices that are too large.
void require_runnable(const ScheduleFile& file);

/// Returns sizes as checked_sizes does, with contracted dimensions shortened until integer data stays exact. Throws
/// ConfigError when it never does, or when heads cannot come out whole. Requires require_runnable() and a program that
/// passed check_program().
std::vector<Sizes> sizes_for(const ScheduleFile& file, std::uint64_t seed);

}  // namespace commfuse::validate
