// SPDX-License-Identifier: Apache-2.0
// Proves a program right before anything runs it.
#pragma once

#include <optional>

#include "model/program/matching.h"
#include "model/program/program.h"
#include "model/proof/findings.h"

namespace commfuse {

/// Proves, in this order, and stops after the first stage that fails, since the next ones build on it:
///   bounds      the program holds together; on every rank every region lies inside its buffer; waits are for earlier
///   ops matching    every send meets a receive of the same extents; collectives are joined by their whole group
///   deadlock    with in-order lanes and rendezvous every op ends
///   hazards     no cell is read before it is written, overwritten while in use, or written twice at once, where only
///               the waits and lanes of its own rank count as order; a push or a pull reaches into another rank's
///               memory, so there also the order that messages give counts (remote_hazards.h)
///   contents    every rank ends with exactly what the unfused operation gives, each contribution counted once, in the
///               first iteration and in a second one that starts from the memory the first left
/// Deterministic. O(ops) where the program is rotation-symmetric and right, in cells: one cell a block. O(ops x ranks)
/// otherwise, so that findings name ranks.
CheckReport check_program(const Program& program);

/// What check_program() finds, and the matching it went by, for who runs the program next.
struct Proof {
  CheckReport report;
  Matching matching;  // where nothing was found
};
Proof prove(const Program& program);

/// The same of a program that is right by construction, whose size is all that can be wrong with it. Throws ConfigError
/// where it is too much to look at.
Proof prove_generated(const Program& program);

/// The same proof on every rank, whether they are alike or not.
CheckReport check_every_rank(const Program& program);

/// The same proof on rank 0 only, which stands for all; nothing unless the program is seen to be rotation-symmetric.
/// Finds something exactly when check_every_rank() does.
std::optional<CheckReport> check_one_rank(const Program& program);

}  // namespace commfuse
