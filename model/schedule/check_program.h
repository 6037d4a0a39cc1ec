// SPDX-License-Identifier: Apache-2.0
// Proves a program right before anything runs it.
#pragma once

#include "model/schedule/findings.h"
#include "model/schedule/program.h"

namespace commfuse {

/// Proves, in this order, and stops after the first stage that fails, since the next ones build on it:
///   bounds      the program holds together; on every rank every region lies inside its buffer; waits are for earlier
///   ops matching    every send meets a receive of the same extents; collectives are joined by their whole group
///   deadlock    with in-order lanes and rendezvous every op ends
///   hazards     no cell is read before it is written, overwritten while in use, or written twice at once, where only
///               the waits and lanes of its own rank count as order
///   contents    every rank ends with exactly what the unfused operation gives, each contribution counted once, in the
///               first iteration and in a second one that starts from the memory the first left
/// Deterministic. O(ops x ranks), in cells: one cell a block.
CheckReport check_program(const Program& program);

}  // namespace commfuse
