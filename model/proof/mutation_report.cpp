// SPDX-License-Identifier: Apache-2.0
#include "model/proof/mutation_report.h"

#include <iterator>

#include "model/proof/check_program.h"
#include "model/proof/mutant_proof.h"

namespace commfuse {

std::string_view name_of(Fate fate) {
  switch (fate) {
    case Fate::caught: return "caught";
    case Fate::equivalent: return "equivalent";
    case Fate::survived: return "survived";
  }
  return "";
}

std::int64_t MutationReport::count(Fate fate) const {
  std::int64_t total = 0;
  for (const MutationKind kind : all_mutation_kinds) {
    total += count(kind, fate);
  }
  return total;
}

std::int64_t MutationReport::count(MutationKind kind, Fate fate) const {
  const auto outcomes = counts.find(kind);
  std::int64_t total = 0;
  if (outcomes != counts.end()) {
    for (const auto& [outcome, number] : outcomes->second) {
      total += outcome.first == fate ? number : 0;
    }
  }
  return total;
}

MutationReport& MutationReport::operator+=(MutationReport&& other) {
  schedules += other.schedules;
  for (const auto& [kind, outcomes] : other.counts) {
    for (const auto& [outcome, number] : outcomes) {
      counts[kind][outcome] += number;
    }
  }
  listed.insert(listed.end(), std::make_move_iterator(other.listed.begin()),
                std::make_move_iterator(other.listed.end()));
  return *this;
}

MutationReport mutate(const Program& program, const std::function<bool(Fate)>& list) {
  MutationReport report{.schedules = 1};
  Sums sums;
  MutantProof proof(program, sums);
  const Equivalences equivalences(program, proof.trace(), sums);
  for_each_mutation(program, [&](const Mutation& mutation) {
    MutantResult result{.kind = mutation.kind};
    if (const std::optional<FindingKind> finding = proof.first_finding(mutation)) {
      result.fate = Fate::caught;
      result.why = name_of(*finding);
    } else if (const auto equivalence = equivalences.with(mutation.program, mutation.now)) {
      result.fate = Fate::equivalent;
      result.why = name_of(*equivalence);
    }
    ++report.counts[result.kind][{result.fate, result.why}];
    if (list(result.fate)) {
      result.schedule = program.name;
      result.ranks = program.mesh.ranks();
      result.mutation = mutation.description;
      result.finding = result.fate == Fate::caught ? check_program(mutation.program).findings.front().sentence : "";
      report.listed.push_back(std::move(result));
    }
  });
  return report;
}

}  // namespace commfuse
