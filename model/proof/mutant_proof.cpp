// SPDX-License-Identifier: Apache-2.0
#include "model/proof/mutant_proof.h"

#include <algorithm>

#include "model/proof/bounds.h"
#include "model/proof/check_program.h"
#include "model/proof/deadlock.h"
#include "model/proof/effort.h"
#include "model/proof/remote_hazards.h"

namespace commfuse {

namespace {

constexpr bool worded = false;  // only the kinds of findings are needed

std::vector<Event> events_of(const Program& program, const Matching& matching, std::vector<Post>& posts) {
  Findings findings(worded);
  return run_abstractly(program, matching, findings, Ranks::all, &posts);
}

std::optional<FindingKind> first_of(const Findings& findings) {
  return findings.empty() ? std::nullopt : std::optional(findings.first_kind());
}

/// Returns true if all ranks run all ops and every exchange has both halves.
bool meets_itself(const Program& program, const Matching& matching) {
  return matching.uniform && std::all_of(program.ops.begin(), program.ops.end(), [&](const Op& op) {
           const auto* exchange = std::get_if<ExchangeShape>(&program.shapes[op.shape]);
           return exchange == nullptr || (exchange->sends && exchange->receives);
         });
}

std::optional<FindingKind> checked_whole(const Program& program) {
  const CheckReport report = check_program(program);
  return report.ok() ? std::nullopt : std::optional(report.findings.front().kind);
}

}  // namespace

MutantProof::MutantProof(const Program& original, Sums& sums)
    : original_(original),
      cells_(original),
      matching_(match(original)),
      baseline_(original, cells_, events_of(original, matching_, posts_), sums),
      hazards_(original, cells_),
      remote_(accesses_remotely(original)),
      self_meets_(meets_itself(original, matching_)),
      // One more input, or one more sum, at most doubles the effort of an op.
      fits_effort_(all_ranks_within(original, max_effort / 2)) {}

std::optional<FindingKind> MutantProof::first_finding(const Mutation& mutation) {
  const bool is_exchange = original_.ops[position(mutation.op)].kind == OpKind::exchange;
  if (!fits_effort_) {
    return checked_whole(mutation.program);
  }
  switch (mutation.kind) {
    case MutationKind::offset:
    case MutationKind::position:
    case MutationKind::buffer:
    case MutationKind::accumulate:
    case MutationKind::add_input: return other_accesses(mutation);
    case MutationKind::shift: return self_meets_ && !remote_ ? other_shift(mutation) : checked_whole(mutation.program);
    // With one wait fewer, every order of the original is still possible, so without hazards the values are the same.
    case MutationKind::wait: return remote_ ? checked_whole(mutation.program) : hazard_in(mutation.program, {});
    case MutationKind::lane:
      return remote_ || (is_exchange && !self_meets_) ? checked_whole(mutation.program) : other_lane(mutation);
    case MutationKind::order: return other_order(mutation);
    case MutationKind::removal:
      return remote_ || (is_exchange && !self_meets_) ? checked_whole(mutation.program) : removed(mutation);
  }
  return checked_whole(mutation.program);
}

/// Matching, order and deadlock do not depend on regions, on the number of inputs, or on whether a GEMM adds to its
/// output.
MutantProof::Verdict MutantProof::other_accesses(const Mutation& mutation) {
  Findings findings(worded);
  check_places(mutation.program, mutation.op, findings);
  if (!findings.empty()) {
    return first_of(findings);
  }
  if (hazards_.has_hazard(mutation.program, mutation.op)) {
    return FindingKind::hazard;
  }
  if (remote_) {
    check_remote_hazards(mutation.program, matching_, cells_, posts_, findings, Ranks::all);
    if (!findings.empty()) {
      return first_of(findings);
    }
  }
  return contents_of({.program = mutation.program, .op = mutation.op});
}

MutantProof::Verdict MutantProof::contents_of(const Change& change) {
  Findings findings(worded);
  check_change(baseline_, change, findings);
  return first_of(findings);
}

MutantProof::Verdict MutantProof::deadlock_in(const Program& program, const Matching& matching) {
  Findings findings(worded);
  events_ = run_abstractly(program, matching, findings);
  return first_of(findings);
}

MutantProof::Verdict MutantProof::hazard_in(const Program& program, std::span<const OpId> now) const {
  return hazards_.has_hazard(program, now) ? std::optional(FindingKind::hazard) : std::nullopt;
}

/// Every exchange still meets itself, and no access changes.
MutantProof::Verdict MutantProof::other_shift(const Mutation& mutation) {
  if (const Verdict deadlock = deadlock_in(mutation.program, matching_)) {
    return deadlock;
  }
  return contents_of({.program = mutation.program, .op = mutation.op, .events = &events_});
}

/// On every rank the ops stay in program order. So without hazards every op reads the results of the same ops as in the
/// original.
MutantProof::Verdict MutantProof::other_lane(const Mutation& mutation) {
  if (const Verdict deadlock = deadlock_in(mutation.program, matching_)) {
    return deadlock;
  }
  return hazard_in(mutation.program, {});
}

MutantProof::Verdict MutantProof::other_order(const Mutation& mutation) {
  const OpId first = mutation.op;
  const OpId second{static_cast<std::int32_t>(first) + 1};
  const Op& a = original_.ops[position(first)];
  const Op& b = original_.ops[position(second)];
  if (a.lane != b.lane) {
    // Neither op waits for the other in either program, and since the original has no hazard they share no cell: waits,
    // lanes and values are the same.
    return std::nullopt;
  }
  const bool both_exchange = a.kind == OpKind::exchange && b.kind == OpKind::exchange;
  if (remote_ || (both_exchange && !self_meets_) || hazards_.conflict(first, second)) {
    return checked_whole(mutation.program);
  }
  if (const Verdict deadlock = deadlock_in(mutation.program, match(mutation.program))) {
    return deadlock;
  }
  return hazard_in(mutation.program, mutation.now);
}

/// The remaining ops wait for no additional ops, so nothing deadlocks, and the events of the original can happen in the
/// same order.
MutantProof::Verdict MutantProof::removed(const Mutation& mutation) {
  std::vector<OpId> now(original_.ops.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    const OpId op{static_cast<std::int32_t>(i)};
    now[i] = op < mutation.op ? op : op == mutation.op ? HazardTable::omitted : OpId{static_cast<std::int32_t>(op) - 1};
  }
  if (const Verdict hazard = hazard_in(mutation.program, now)) {
    return hazard;
  }
  return contents_of({.program = original_, .op = mutation.op, .omitted = true});
}

}  // namespace commfuse
