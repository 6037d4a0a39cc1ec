// SPDX-License-Identifier: Apache-2.0
// Hazards of pushes and pulls, which access another rank's memory while no op of that rank holds it.
#pragma once

#include <span>

#include "model/program/matching.h"
#include "model/program/program.h"
#include "model/proof/cells.h"
#include "model/proof/deadlock.h"
#include "model/proof/findings.h"

namespace commfuse {

/// Returns true if a push or a pull moves data in the program; hazards.h then does not cover every access.
bool accesses_remotely(const Program& program);

/// Finds pairs of accesses of one cell that waits, lanes and messages do not order (RemoteOrder), within one iteration
/// and between the first iteration and the second. At least one access of each pair is by a push or a pull, and at
/// least one is a write. A push writes to its receiver's memory from the moment when its sender is posted; a pull reads
/// its sender's memory until its receiver ends. Credits exist to create this order. Also reports a program that is too
/// large to prove.
///
/// Requires that check_hazards() found nothing in `program`, and that `posts` are the posts of its abstract run.
void check_remote_hazards(const Program& program, const Matching& matching, const CellMap& cells,
                          std::span<const Post> posts, Findings& findings, Ranks ranks = Ranks::all);

}  // namespace commfuse
