// SPDX-License-Identifier: Apache-2.0
#include "model/proof/check_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "model/config_error.h"
#include "model/program/matching.h"
#include "model/proof/bounds.h"
#include "model/proof/cells.h"
#include "model/proof/contents.h"
#include "model/proof/deadlock.h"
#include "model/proof/effort.h"
#include "model/proof/hazards.h"
#include "model/proof/remote_hazards.h"
#include "model/proof/sums.h"
#include "model/proof/symmetry.h"

namespace commfuse {

std::string_view name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::bounds: return "bounds";
    case FindingKind::unmatched: return "unmatched";
    case FindingKind::collective_order: return "collective_order";
    case FindingKind::deadlock: return "deadlock";
    case FindingKind::hazard: return "hazard";
    case FindingKind::contents: return "contents";
  }
  return "";
}

namespace {

/// Counts the collectives whose predicate splits their group: match() lists one problem for each, after all others.
std::size_t split_collectives(const Program& program) {
  return static_cast<std::size_t>(std::count_if(program.ops.begin(), program.ops.end(), [&](const Op& op) {
    const auto* collective = std::get_if<CollectiveShape>(&program.shapes[op.shape]);
    return collective != nullptr && splits_groups(program, op, *collective);
  }));
}

void check_matching(const Program& program, const Matching& matching, Findings& findings) {
  const std::size_t unmatched = matching.problems.size() - split_collectives(program);
  for (std::size_t i = 0; i < matching.problems.size(); ++i) {
    findings.add(i < unmatched ? FindingKind::unmatched : FindingKind::collective_order, static_cast<std::int32_t>(i),
                 [&] { return matching.problems[i]; });
  }
}

/// Checks for deadlocks and hazards, and returns the events. `first` is null for all ranks, or has the cells of rank 0,
/// which then represents all ranks.
std::vector<Event> check_order(const Program& program, const Matching& matching, const CellMap& cells,
                               const RankCells* first, Findings& findings) {
  const Ranks ranks = first == nullptr ? Ranks::all : Ranks::first;
  const bool remote = accesses_remotely(program);
  std::vector<Post> posts;
  std::vector<Event> events = run_abstractly(program, matching, findings, ranks, remote ? &posts : nullptr);
  if (!findings.empty()) {
    return events;
  }
  if (first == nullptr) {
    check_hazards(program, cells, findings);
  } else {
    check_hazards(program, cells, *first, findings);
  }
  if (findings.empty() && remote) {
    check_remote_hazards(program, matching, cells, posts, findings, ranks);
  }
  return events;
}

Matching check_all(const Program& program, Findings& findings) {
  check_bounds(program, findings);
  if (!findings.empty()) {
    return {};
  }
  Matching matching = match(program);
  check_matching(program, matching, findings);
  if (!findings.empty()) {
    return matching;
  }
  const CellMap cells(program);
  const std::vector<Event> events = check_order(program, matching, cells, nullptr, findings);
  if (findings.empty()) {
    Sums sums;
    check_contents(program, cells, events, sums, findings, nullptr);
  }
  return matching;
}

/// Runs the checks starting with deadlock, given that the symmetry implies bounds and matching. Returns false when rank
/// 0 cannot represent all ranks.
bool check_first(const Program& program, const Matching& matching, const Symmetry& symmetry, Findings& findings) {
  const CellMap cells(program);
  const RankCells first(program, cells, program.mesh.coordinates(0));
  const std::vector<Event> events = check_order(program, matching, cells, &first, findings);
  Sums sums;
  return !findings.empty() || check_contents(program, cells, first, events, symmetry, sums, findings);
}

std::optional<Proof> prove_first(const Program& program) {
  Findings findings;
  check_references(program, Ranks::first, findings);
  if (!findings.empty() || !same_on_all_ranks(program)) {
    return std::nullopt;
  }
  Matching matching = match(program);
  if (!matching.problems.empty()) {
    return std::nullopt;
  }
  const std::optional<Symmetry> symmetry = symmetry_of(program, matching);
  if (!symmetry || !check_first(program, matching, *symmetry, findings)) {
    return std::nullopt;
  }
  return Proof{std::move(findings).report(), std::move(matching)};
}

}  // namespace

CheckReport check_every_rank(const Program& program) {
  Findings findings;
  check_all(program, findings);
  return std::move(findings).report();
}

std::optional<CheckReport> check_one_rank(const Program& program) {
  std::optional<Proof> proof = prove_first(program);
  return proof ? std::optional(std::move(proof->report)) : std::nullopt;
}

Proof prove(const Program& program) {
  std::optional<Proof> proof = prove_first(program);
  if (proof && (proof->report.ok() || !all_ranks_fit(program))) {
    return *std::move(proof);
  }
  Findings findings;
  Matching matching = check_all(program, findings);
  return {std::move(findings).report(), std::move(matching)};
}

namespace {

/// Returns true if the program is only too large: rank 0 cannot represent all ranks, and all ranks together are too
/// large to prove. The report then has only findings of kind `bounds`.
bool is_only_too_large(const Program& program, const CheckReport& report) {
  return std::all_of(report.findings.begin(), report.findings.end(),
                     [](const Finding& finding) { return finding.kind == FindingKind::bounds; }) &&
         !all_ranks_fit(program);
}

}  // namespace

Proof prove_generated(const Program& program) {
  const bool small = effort_of(program, Ranks::first) <= max_effort_generated;
  std::optional<Proof> proof = small ? std::optional(prove(program)) : std::nullopt;
  if (!proof || (!proof->report.ok() && is_only_too_large(program, proof->report))) {
    throw ConfigError(fmt::format("{} on {} ranks is too large to prove: more than {} blocks; choose fewer ranks",
                                  program.name, program.mesh.ranks(), small ? max_effort : max_effort_generated));
  }
  return *std::move(proof);
}

CheckReport check_program(const Program& program) { return prove(program).report; }

}  // namespace commfuse
