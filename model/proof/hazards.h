// SPDX-License-Identifier: Apache-2.0
// Does every read find what it is meant to find, whatever the durations?
#pragma once

#include "model/program/program.h"
#include "model/proof/cells.h"
#include "model/proof/findings.h"

namespace commfuse {

/// Finds cells read before anything wrote them, read while being written, overwritten while being read, written by two
/// ops at once, and ops whose own reads and writes collide. Only waits and lanes of one rank order its ops (Order).
/// That is enough for other ranks' accesses too: by rendezvous they happen inside an op of the owner (what does not is
/// left to remote_hazards.h). And one iteration is enough: between iterations a rank joins its lanes.
///
/// An op reads and writes its operands from start to end. Allowed are: a product that accumulates (it reads its
/// output); an elementwise op or an all-reduce whose input is exactly its output; an all-gather whose input is exactly
/// its own part of its output, and a reduce-scatter whose output is exactly its own part of its input (in place).
/// Requires a program that passed check_bounds().
void check_hazards(const Program& program, const CellMap& cells, Findings& findings);

/// The same, of rank 0 alone; `first` are its cells.
void check_hazards(const Program& program, const CellMap& cells, const RankCells& first, Findings& findings);

}  // namespace commfuse
