// SPDX-License-Identifier: Apache-2.0
// Checks that a program is well-formed. Later stages rely on these checks and do not repeat them.
#pragma once

#include <cstdint>

#include "model/program/program.h"
#include "model/proof/findings.h"
#include "model/proof/symmetry.h"

namespace commfuse {

/// Largest number of blocks that a check can hold in memory.
inline constexpr std::int64_t max_cells = std::int64_t{1} << 27U;

/// Checks that ids and pools, shapes and operands fit each other, that ops wait only for earlier ops, and that on every
/// rank every region lies inside its buffer and every content inside its tensor. Also checks that the proof of all
/// ranks is within the limits of effort.h.
void check_bounds(const Program& program, Findings& findings);

/// Runs the part of check_bounds() that concerns the regions and positions of one op. Requires `program` to have passed
/// check_references().
void check_places(const Program& program, OpId op, Findings& findings);

/// Runs the part of check_bounds() that evaluates no index, and checks that the memory of these ranks is not too large
/// to prove.
void check_references(const Program& program, Ranks ranks, Findings& findings);

/// Returns true if all ranks together are small enough for check_bounds(). Requires `program` to have passed
/// check_references().
bool all_ranks_fit(const Program& program);

}  // namespace commfuse
