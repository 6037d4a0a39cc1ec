// SPDX-License-Identifier: Apache-2.0
// Computes the contents of every cell, from the first op to the end of a second iteration, and checks them.
#pragma once

#include <vector>

#include "model/program/program.h"
#include "model/proof/cells.h"
#include "model/proof/deadlock.h"
#include "model/proof/findings.h"
#include "model/proof/symmetry.h"
#include "model/proof/value.h"

namespace commfuse {

/// Inputs and output of one op on one rank.
struct OpValues {
  std::vector<CellValues> inputs;  // by operand; for an accumulating GEMM also the values to which it adds
  CellValues output;
  friend bool operator==(const OpValues&, const OpValues&) = default;
};

/// Values of every op, by iteration (two), rank and op. Traces made with the same Sums can be compared.
struct Trace {
  std::size_t ops = 0;
  std::size_t ranks = 0;
  std::vector<OpValues> values;

  [[nodiscard]] const OpValues& at(std::size_t iteration, Rank rank, OpId op) const {
    return values[(iteration * ranks + static_cast<std::size_t>(rank)) * ops + position(op)];
  }
  friend bool operator==(const Trace&, const Trace&) = default;
};

/// Runs the events twice, the second time on the memory that the first run left (unless it is clear that nothing would
/// change), and compares the memory at the end of each run with the final contents. GEMMs require complete factors of a
/// GEMM of the operation; nonlinear functions require complete sums; adds require disjoint contributions, which they
/// unite. A wrong value is reported once; its consequences are not. Requires `program` to have no other findings: then
/// every order of events leads to the same values. `trace` may be null.
void check_contents(const Program& program, const CellMap& cells, const std::vector<Event>& events, Sums& sums,
                    Findings& findings, Trace* trace);

/// Checks all ranks of a rotation-symmetric program through rank 0, whose cells are `first`. The events are from a run
/// with Ranks::first, and data from another rank are derived from what rank 0 holds, moved to that rank. Returns false
/// when rank 0 cannot represent all ranks, because a causal mask lets other ranks see other keys.
bool check_contents(const Program& program, const CellMap& cells, const RankCells& first,
                    const std::vector<Event>& events, const Symmetry& symmetry, Sums& sums, Findings& findings);

}  // namespace commfuse
