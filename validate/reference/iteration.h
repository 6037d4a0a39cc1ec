// SPDX-License-Identifier: Apache-2.0
// One pass through the command lists of all ranks, one op at a time, in an order that lanes, dependencies and exchanges
// allow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/lower.h"
#include "model/program/sizes.h"
#include "validate/executor.h"
#include "validate/reference/memory.h"

namespace commfuse::validate {

/// Runs one iteration; `commands` has a list for every rank. Throws Stuck.
void run_iteration(const Program& program, const Sizes& sizes, std::span<const std::vector<Command>> commands,
                   const RunOptions& options, Memory& memory);

}  // namespace commfuse::validate
