// SPDX-License-Identifier: Apache-2.0
// Finds the verdict of check_program() on a mutant: a proved program with a single mutation. Checks only what the
// mutation changes, where this is enough.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/program/matching.h"
#include "model/program/program.h"
#include "model/proof/baseline.h"
#include "model/proof/findings.h"
#include "model/proof/hazard_table.h"
#include "model/proof/mutate.h"

namespace commfuse {

/// Keeps the results of the proof of one program: its order, its accesses and its values. A mutation leaves most of
/// these results unchanged, and only the rest is proved again.
class MutantProof {
 public:
  /// Keeps references to both arguments, which must outlive this object. Requires `original` to have passed
  /// check_program(). Stores the values of `original` in `sums`.
  MutantProof(const Program& original, Sums& sums);

  /// Returns the kind of the first finding of check_program() in a mutant of the original; nullopt if it passes.
  [[nodiscard]] std::optional<FindingKind> first_finding(const Mutation& mutation);

  /// Returns the values of the original.
  [[nodiscard]] const Trace& trace() const { return baseline_.trace(); }

 private:
  using Verdict = std::optional<FindingKind>;

  /// Judges a mutation that changes what one op reads or writes.
  Verdict other_accesses(const Mutation& mutation);
  Verdict other_shift(const Mutation& mutation);
  Verdict other_lane(const Mutation& mutation);
  Verdict other_order(const Mutation& mutation);
  Verdict removed(const Mutation& mutation);
  /// Judges a mutation that changes only waits, lanes or ids; `now` maps ids as in HazardTable.
  Verdict hazard_in(const Program& program, std::span<const OpId> now) const;
  /// Stores the events of a program in events_, and returns FindingKind::deadlock if ranks are stuck.
  Verdict deadlock_in(const Program& program, const Matching& matching);
  Verdict contents_of(const Change& change);

  const Program& original_;
  CellMap cells_;
  Matching matching_;
  std::vector<Post> posts_;  // posts of the original, in the order of posting
  Baseline baseline_;
  HazardTable hazards_;
  bool remote_;       // pushes or pulls access the memory of other ranks
  bool self_meets_;   // every exchange matches itself for any shift, because all ranks run all ops, with both halves
  bool fits_effort_;  // no mutant exceeds the effort limit of a proof
  std::vector<Event> events_;
};

}  // namespace commfuse
