// SPDX-License-Identifier: Apache-2.0
#include "sim/point/structure.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/check.h"
#include "model/program_text/text.h"
#include "model/proof/check_program.h"

namespace commfuse {

namespace {

/// Adds the ops that an op meets on another rank. Both lists are sorted by lane, then by id, and so is the result.
void add_met(const Program& program, const std::vector<OpId>& on_rank, std::vector<OpId>& met) {
  if (on_rank == met) {
    return;
  }
  const auto place = [&](OpId op) { return std::pair(program.ops[position(op)].lane, op); };
  std::vector<OpId> both;
  std::set_union(met.begin(), met.end(), on_rank.begin(), on_rank.end(), std::back_inserter(both),
                 [&](OpId a, OpId b) { return place(a) < place(b); });
  met = std::move(both);
}

/// Adds the ranges of ops that an op meets on another rank. Both lists are sorted by lane, and so is the result.
void add_sm_holders(const std::vector<LaneRange>& on_rank, std::vector<LaneRange>& met) {
  for (const LaneRange& range : on_rank) {
    const auto place = std::lower_bound(met.begin(), met.end(), range.lane,
                                        [](const LaneRange& before, std::size_t lane) { return before.lane < lane; });
    if (place == met.end() || place->lane != range.lane) {
      met.insert(place, range);
    } else {
      place->first = std::min(place->first, range.first);
      place->last = std::max(place->last, range.last);
    }
  }
}

/// Returns the meetings of each op on all ranks together. Ranks differ only if ops have predicates.
std::vector<Meetings> meetings_on_all_ranks(const Program& program) {
  std::vector<Meetings> meetings = meetings_of(program, Order(program, 0));
  const bool are_all_equal = std::all_of(program.ops.begin(), program.ops.end(),
                                         [](const Op& op) { return op.where.relation == Relation::always; });
  for (Rank rank = 1; rank < program.mesh.ranks() && !are_all_equal; ++rank) {
    const std::vector<Meetings> on_rank = meetings_of(program, Order(program, rank));
    for (std::size_t op = 0; op < meetings.size(); ++op) {
      meetings[op].exchange = meetings[op].exchange || on_rank[op].exchange;
      meetings[op].collective = meetings[op].collective || on_rank[op].collective;
      add_sm_holders(on_rank[op].sm_holders, meetings[op].sm_holders);
      add_met(program, on_rank[op].rivals, meetings[op].rivals);
      add_met(program, on_rank[op].contenders, meetings[op].contenders);
    }
  }
  return meetings;
}

}  // namespace

Structure structure_of(Program program) {
  Proof proof = prove_generated(program);
  check(proof.report.ok(), "a generated program passes its proof");
  Structure structure;
  structure.digest = digest_of(program);
  structure.meetings = meetings_on_all_ranks(program);
  structure.prices = price_plan(program, structure.meetings);
  structure.plan = plan_of(lower(std::make_shared<const Program>(std::move(program)), std::move(proof.matching)));
  structure.tape = tape_of(structure.plan.lowered);
  structure.draw_keys = draw_keys(structure.program());
  return structure;
}

const Structure& StructureCache::get(const StructureKey& key) {
  const Place place{key.scope, key.gated_mlp, key.ranks, key.strategy->name, key.options};
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const Structure>& slot = structures_[place];
  if (!slot) {
    slot = std::make_unique<const Structure>(
        structure_of(generate(operation_of(key.scope, key.gated_mlp), key.ranks, *key.strategy, key.options)));
  }
  return *slot;
}

}  // namespace commfuse
