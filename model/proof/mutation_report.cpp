// SPDX-License-Identifier: Apache-2.0
#include "model/proof/mutation_report.h"

#include <iterator>

#include "model/proof/check_program.h"

namespace commfuse {

namespace {

/// Returns fate, reason and finding of one mutant.
MutantResult judged(const Program& original, const Mutation& mutation) {
  MutantResult result{.kind = mutation.kind};
  const CheckReport report = check_program(mutation.program);
  if (!report.ok()) {
    result.fate = Fate::caught;
    result.why = name_of(report.findings.front().kind);
    result.finding = report.findings.front().sentence;
  } else if (const auto proof = equivalence_of(original, mutation.program, mutation.now)) {
    result.fate = Fate::equivalent;
    result.why = name_of(*proof);
  }
  return result;
}

}  // namespace

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
  for_each_mutation(program, [&](const Mutation& mutation) {
    MutantResult result = judged(program, mutation);
    ++report.counts[result.kind][{result.fate, result.why}];
    if (list(result.fate)) {
      result.schedule = program.name;
      result.ranks = program.mesh.ranks();
      result.mutation = mutation.description;
      report.listed.push_back(std::move(result));
    }
  });
  return report;
}

}  // namespace commfuse
