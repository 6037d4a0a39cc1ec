// SPDX-License-Identifier: Apache-2.0
// Proves a program correct before anything runs it.
#pragma once

#include <optional>

#include "model/program/matching.h"
#include "model/program/program.h"
#include "model/proof/findings.h"

namespace commfuse {

/// Proves the following in this order, and stops after the first stage that fails, because later stages depend on it:
///   bounds      the program is well-formed; on every rank every region lies inside its buffer; an op waits only for
///               earlier ops
///   matching    every send meets a receive of the same extents and protocol; every collective is joined by its whole
///               group
///   deadlock    with in-order lanes and rendezvous every op completes
///   hazards     no cell is read before it is written, overwritten while in use, or written twice concurrently; only
///               the waits and lanes of its own rank count as order; a push or a pull accesses another rank's memory,
///               so for these the order that messages create counts too (remote_hazards.h)
///   contents    every rank ends with exactly the result of the unfused operation, each contribution counted once, in
///               the first iteration and in a second iteration that starts from the memory of the first
/// Deterministic. Needs O(ops) cells, one per block, if the program is rotation-symmetric and correct; otherwise O(ops
/// x ranks), so that findings can name ranks.
CheckReport check_program(const Program& program);

/// Findings of check_program(), and the program's matching, which later steps can reuse.
struct Proof {
  CheckReport report;
  Matching matching;  // set if there are no findings
};
Proof prove(const Program& program);

/// Proves a program that is correct by construction, so that only its size can be wrong. Throws ConfigError if it is
/// too large to prove.
Proof prove_generated(const Program& program);

/// Runs the same proof on every rank, even if all ranks are equivalent.
CheckReport check_every_rank(const Program& program);

/// Runs the same proof on rank 0 only, which represents all ranks; returns nullopt unless the program is recognized as
/// rotation-symmetric. Has findings exactly when check_every_rank() does.
std::optional<CheckReport> check_one_rank(const Program& program);

}  // namespace commfuse
