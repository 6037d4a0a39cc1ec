// SPDX-License-Identifier: Apache-2.0
// What every cell holds, from the first op to the end of a second iteration, and whether that is what belongs there.
#pragma once

#include <vector>

#include "model/program/program.h"
#include "model/proof/cells.h"
#include "model/proof/deadlock.h"
#include "model/proof/findings.h"
#include "model/proof/symmetry.h"
#include "model/proof/value.h"

namespace commfuse {

/// What one op on one rank took in and put out.
struct OpValues {
  std::vector<Values> inputs;  // by operand; of an accumulating product also what it adds to
  Values output;
  friend bool operator==(const OpValues&, const OpValues&) = default;
};

/// Every op's values, by iteration (two), rank and op. Traces made with the same Sums can be compared.
struct Trace {
  std::size_t ops = 0;
  std::size_t ranks = 0;
  std::vector<OpValues> values;

  [[nodiscard]] const OpValues& at(std::size_t iteration, Rank rank, OpId op) const {
    return values[(iteration * ranks + static_cast<std::size_t>(rank)) * ops + position(op)];
  }
  friend bool operator==(const Trace&, const Trace&) = default;
};

/// Runs the events twice over, the second time on the memory the first left (unless that shows that nothing would
/// change), and compares the end of each with the final contents. Products demand complete factors that meet in a
/// product of the operation; nonlinear functions demand complete sums; adding unites disjoint contributions. A wrong
/// value is reported once and not followed further. Requires a program without other findings: then every order of
/// events gives these values. `trace` may be null.
void check_contents(const Program& program, const CellMap& cells, const std::vector<Event>& events, Sums& sums,
                    Findings& findings, Trace* trace);

/// The same, by rank 0, whose cells are `first`, for all ranks of a rotation-symmetric program: events are those of
/// Ranks::first, and what comes from another rank is what rank 0 holds, moved. False when that cannot be said after
/// all: a causal mask shows other ranks other keys.
bool check_contents(const Program& program, const CellMap& cells, const RankCells& first,
                    const std::vector<Event>& events, const Symmetry& symmetry, Sums& sums, Findings& findings);

}  // namespace commfuse
