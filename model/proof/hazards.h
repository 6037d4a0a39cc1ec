// SPDX-License-Identifier: Apache-2.0
// Checks that every read sees the intended value, whatever the durations.
#pragma once

#include <vector>

#include "model/program/program.h"
#include "model/proof/cells.h"
#include "model/proof/findings.h"

namespace commfuse {

/// Last writer of a cell that no op has written, and of a cell whose value existed before the first op.
inline constexpr OpId no_writer{-1};
inline constexpr OpId existed_before{-2};

/// Finds cells read before they are written, read while being written, overwritten while being read, or written by two
/// ops concurrently, and ops whose own reads and writes collide. Only waits and lanes of one rank order its ops
/// (Order). The check also covers accesses by other ranks: with rendezvous, they happen during an op of the owner
/// (remote_hazards.h covers pushes and pulls). Checking one iteration is enough, because between iterations a rank
/// waits for all its lanes.
///
/// An op reads and writes its operands from start to end. An op may read what it writes in these cases: a GEMM that
/// accumulates (it reads its output); an elementwise op or an all-reduce whose input is exactly its output; an
/// all-gather whose input is exactly its own part of its output, and a reduce-scatter whose output is exactly its own
/// part of its input (in place). Requires `program` to have passed check_bounds().
void check_hazards(const Program& program, const CellMap& cells, Findings& findings);

/// Returns true if an op, elementwise or collective, may write the cells `written` in place of the cells `read` of an
/// operand, on the rank at these coordinates.
bool may_work_in_place(const Program& program, const Op& op, const Coordinates& coordinates,
                       const std::vector<Cell>& read, const std::vector<Cell>& written);

/// Checks rank 0 only; `first` has its cells.
void check_hazards(const Program& program, const CellMap& cells, const RankCells& first, Findings& findings);

}  // namespace commfuse
