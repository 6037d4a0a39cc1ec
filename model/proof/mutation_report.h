// SPDX-License-Identifier: Apache-2.0
// Fates of a schedule's mutants. Mutants test the proof: each has exactly one mutation, and has survived if it passes
// check_program() and is not provably equivalent to the original. No mutant may survive.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/proof/mutate.h"

namespace commfuse {

enum class Fate : std::uint8_t {
  caught,      // by check_program()
  equivalent,  // provably equivalent to the original
  survived,
};

std::string_view name_of(Fate fate);

struct MutantResult {
  std::string schedule;  // name of the program
  std::int32_t ranks = 0;
  MutationKind kind = MutationKind::shift;
  std::string mutation;  // "op 3 (exchange): shift 2 instead of 1"
  Fate fate = Fate::survived;
  std::string_view why;  // caught: the kind of finding; equivalent: the kind of proof; survived: empty
  std::string finding;   // caught: the first sentence
};

struct MutationReport {
  using Outcome = std::pair<Fate, std::string_view>;  // fate and reason

  std::int64_t schedules = 0;
  std::map<MutationKind, std::map<Outcome, std::int64_t>> counts;
  std::vector<MutantResult> listed;  // in the order of schedules and ops

  /// Return the number of mutants with this fate, of all kinds of mutation or of one kind.
  [[nodiscard]] std::int64_t count(Fate fate) const;
  [[nodiscard]] std::int64_t count(MutationKind kind, Fate fate) const;
  MutationReport& operator+=(MutationReport&& other);
};

/// Judges every mutant of one schedule. `list` returns true for the fates whose mutants are listed. Requires `program`
/// to have passed check_program().
MutationReport mutate(const Program& program, const std::function<bool(Fate)>& list);

}  // namespace commfuse
