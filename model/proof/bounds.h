// SPDX-License-Identifier: Apache-2.0
// Does a program hold together? Everything later relies on it and looks nothing up twice.
#pragma once

#include <cstdint>

#include "model/program/program.h"
#include "model/proof/findings.h"
#include "model/proof/symmetry.h"

namespace commfuse {

/// Blocks that a check can hold in memory.
inline constexpr std::int64_t most_cells = std::int64_t{1} << 27U;

/// Ids and pools, shapes and operands that fit each other, waits for earlier ops only, and on every rank every region
/// inside its buffer and every content inside its tensor; and that all ranks together are not too much to look at
/// (effort.h).
void check_bounds(const Program& program, Findings& findings);

/// The part of that which no index has a say in, and that the memory of these ranks is not too large to look at.
void check_references(const Program& program, Ranks ranks, Findings& findings);

/// Whether all ranks together are small enough for check_bounds(). Requires a program that passed check_references().
bool all_ranks_fit(const Program& program);

}  // namespace commfuse
