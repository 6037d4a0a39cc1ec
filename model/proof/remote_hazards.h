// SPDX-License-Identifier: Apache-2.0
// Hazards of pushes and pulls, which reach into another rank's memory while no op of that rank holds it.
#pragma once

#include <span>

#include "model/program/matching.h"
#include "model/program/program.h"
#include "model/proof/cells.h"
#include "model/proof/deadlock.h"
#include "model/proof/findings.h"

namespace commfuse {

/// Whether a push or a pull moves data in it: then hazards.h does not see all.
bool accesses_remotely(const Program& program);

/// A push writes into its receiver's memory from when its sender is posted, a pull reads its sender's memory until its
/// receiver ends. Finds such accesses and others of the same cell, at least one of the two a write, that no waits,
/// lanes and messages put in order (RemoteOrder): in one iteration, and the first iteration's before the second's.
/// Credits are there to give that order. Also finds a program too large to look at.
///
/// Requires a program in which check_hazards() found nothing, and the posts of its abstract run.
void check_remote_hazards(const Program& program, const Matching& matching, const CellMap& cells,
                          std::span<const Post> posts, Findings& findings, Ranks ranks = Ranks::all);

}  // namespace commfuse
