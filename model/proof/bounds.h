// SPDX-License-Identifier: Apache-2.0
// Checks that a program is well-formed. Later stages rely on it and check nothing twice.
#pragma once

#include <cstdint>

#include "model/program/program.h"
#include "model/proof/findings.h"
#include "model/proof/symmetry.h"

namespace commfuse {

/// Number of blocks that a check can hold in memory.
inline constexpr std::int64_t most_cells = std::int64_t{1} << 27U;

/// Checks that ids and pools, shapes and operands fit each other, that waits are for earlier ops only, and that on
/// every rank every region lies inside its buffer and every content inside its tensor. Also checks that all ranks
/// together are not too much to look at (effort.h).
void check_bounds(const Program& program, Findings& findings);

/// Makes the part of these checks that concerns the regions and positions of one op. Requires that the op passed
/// check_references().
void check_places(const Program& program, OpId op, Findings& findings);

/// Makes the checks that need no index, and checks that the memory of these ranks is not too large to look at.
void check_references(const Program& program, Ranks ranks, Findings& findings);

/// Returns true if all ranks together are small enough for check_bounds(). Requires a program that passed
/// check_references().
bool all_ranks_fit(const Program& program);

}  // namespace commfuse
