// SPDX-License-Identifier: Apache-2.0
// Finds the verdict of check_program() on programs that differ from a proved one by one mutation, from the difference.
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

/// Keeps what the proof of one program found out: its order, its accesses and its values. A mutation leaves most of
/// that as it is, and only the rest is proved again.
class MutantProof {
 public:
  /// Keeps references. Requires a program that passed check_program(), whose values go to `sums`.
  MutantProof(const Program& original, Sums& sums);

  /// Returns the kind of the first finding of check_program() in a mutant of the original; nullopt if it passes.
  [[nodiscard]] std::optional<FindingKind> first_finding(const Mutation& mutation);

  /// Returns the values of the original.
  [[nodiscard]] const Trace& trace() const { return baseline_.trace(); }

 private:
  using Verdict = std::optional<FindingKind>;

  /// Changes of what one op reads and writes.
  Verdict other_accesses(const Mutation& mutation);
  Verdict other_shift(const Mutation& mutation);
  Verdict other_lane(const Mutation& mutation);
  Verdict other_order(const Mutation& mutation);
  Verdict removed(const Mutation& mutation);
  /// Changes of waits, lanes and ids alone; `now` as in HazardTable.
  Verdict hazard_in(const Program& program, std::span<const OpId> now) const;
  /// Returns a deadlock; otherwise the events are in events_.
  Verdict deadlock_in(const Program& program, const Matching& matching);
  Verdict contents_of(const Change& change);

  const Program& original_;
  CellMap cells_;
  Matching matching_;
  std::vector<Post> posts_;  // by rank
  Baseline baseline_;
  HazardTable hazards_;
  bool remote_;      // data of other ranks are accessed in their memory
  bool self_meets_;  // every exchange sends and receives on every rank, so that it meets itself whatever its shift
  bool roomy_;       // no mutant takes more effort than a proof may
  std::vector<Event> events_;
};

}  // namespace commfuse
