// SPDX-License-Identifier: Apache-2.0
// What a schedule from a file has to be so that the reference can run it, and at which sizes it is run.
#pragma once

#include <cstdint>
#include <vector>

#include "model/program/sizes.h"
#include "model/program_text/load_schedule.h"

namespace commfuse::validate {

/// Throws ConfigError for what the reference does not run: nothing to compare, more than most_ranks ranks, dtypes it
/// does not store or whose error bound is not derived, attention of some of the queries, matrices that do not fit a
/// desk.
void require_runnable(const ScheduleFile& file);

/// As checked_sizes, and contracted dimensions are shortened until integer data stays exact. Throws ConfigError when it
/// never does, or when heads cannot come out whole. Requires require_runnable() and a program that passed
/// check_program().
std::vector<Sizes> sizes_for(const ScheduleFile& file, std::uint64_t seed);

}  // namespace commfuse::validate
