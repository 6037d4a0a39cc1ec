// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/plan.h"

#include <algorithm>
#include <map>
#include <utility>

namespace commfuse {

namespace {

class RankPlanner {
 public:
  RankPlanner(const Lowered& lowered, Rank rank) : program_(*lowered.program) {
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      takes_part_.push_back(lowered.takes_part(rank, OpId{static_cast<std::int32_t>(i)}));
    }
  }

  RankPlan plan() {
    assign_places();
    for (std::uint32_t lane = 0; lane < program_.lanes.size(); ++lane) {
      for (std::uint32_t place = plan_.first[lane]; place < plan_.first[lane + 1]; ++place) {
        add_waits(lane, plan_.ops[place]);
      }
    }
    add_watchers();
    return std::move(plan_);
  }

 private:
  void assign_places() {
    std::vector<std::vector<OpId>> lanes(program_.lanes.size());
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      if (takes_part_[i]) {
        lanes[program_.ops[i].lane].push_back(OpId{static_cast<std::int32_t>(i)});
      }
    }
    place_of_op_.resize(program_.ops.size());
    for (const std::vector<OpId>& lane : lanes) {
      plan_.first.push_back(static_cast<std::uint32_t>(plan_.ops.size()));
      for (const OpId op : lane) {
        place_of_op_[position(op)] = static_cast<std::uint32_t>(plan_.ops.size());
        plan_.ops.push_back(planned(op));
      }
    }
    plan_.first.push_back(static_cast<std::uint32_t>(plan_.ops.size()));
  }

  [[nodiscard]] PlannedOp planned(OpId id) const {
    const Op& op = program_.ops[position(id)];
    PlannedOp planned{.op = id, .kind = op.kind, .purpose = op.purpose};
    if (const auto* exchange = std::get_if<ExchangeShape>(&program_.shapes[op.shape])) {
      planned.sends = exchange->sends;
      planned.receives = exchange->receives;
      planned.protocol = exchange->protocol;
      planned.axis = int{exchange->axis};
      planned.shift = exchange->shift;
    } else if (const auto* collective = std::get_if<CollectiveShape>(&program_.shapes[op.shape])) {
      planned.axis = int{collective->axis};
    }
    return planned;
  }

  /// Lanes run in order, so waiting for the last of several ops on a lane covers all of them. Ops on the waiting op's
  /// own lane need no entry.
  void add_waits(std::uint32_t lane, PlannedOp& op) {
    op.waits.first = static_cast<std::uint32_t>(plan_.waits.size());
    for (const OpId wait : program_.waits_of(program_.ops[position(op.op)])) {
      const std::uint32_t other_lane = program_.ops[position(wait)].lane;
      if (other_lane == lane || !takes_part_[position(wait)]) {
        continue;
      }
      const auto earlier = std::find_if(plan_.waits.begin() + op.waits.first, plan_.waits.end(),
                                        [&](const PlannedWait& recorded) { return recorded.lane == other_lane; });
      const std::uint32_t place = place_of_op_[position(wait)];
      if (earlier == plan_.waits.end()) {
        plan_.waits.push_back({other_lane, place});
      } else {
        earlier->place = std::max(earlier->place, place);
      }
    }
    op.waits.count = static_cast<std::uint32_t>(plan_.waits.size()) - op.waits.first;
  }

  void add_watchers() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> watched;  // place of an op, and the lane that waits for it
    for (std::uint32_t lane = 0; lane < program_.lanes.size(); ++lane) {
      for (std::uint32_t place = plan_.first[lane]; place < plan_.first[lane + 1]; ++place) {
        for (const PlannedWait& wait : plan_.waits_of(plan_.ops[place])) {
          watched.emplace_back(wait.place, lane);
        }
      }
    }
    std::sort(watched.begin(), watched.end());
    watched.erase(std::unique(watched.begin(), watched.end()), watched.end());
    for (const auto& [place, lane] : watched) {
      PlannedRun& run = plan_.ops[place].watchers;
      run.first = run.count == 0 ? static_cast<std::uint32_t>(plan_.watchers.size()) : run.first;
      ++run.count;
      plan_.watchers.push_back(lane);
    }
  }

  const Program& program_;
  std::vector<bool> takes_part_;            // by op
  std::vector<std::uint32_t> place_of_op_;  // by op that takes part
  RankPlan plan_;
};

/// Determines which of the program's predicates hold on a rank.
class Predicates {
 public:
  explicit Predicates(const Program& program) {
    for (const Op& op : program.ops) {
      if (op.where.relation != Relation::always &&
          std::find(predicates_.begin(), predicates_.end(), op.where) == predicates_.end()) {
        predicates_.push_back(op.where);
      }
    }
  }
  [[nodiscard]] std::vector<bool> on(const Coordinates& coordinates) const {
    std::vector<bool> holds;
    for (const Predicate& predicate : predicates_) {
      holds.push_back(predicate.holds(coordinates));
    }
    return holds;
  }

 private:
  std::vector<Predicate> predicates_;
};

}  // namespace

Plan plan_of(Lowered lowered) {
  Plan plan;
  plan.lowered = std::move(lowered);
  const Program& program = *plan.lowered.program;
  const Predicates predicates(program);
  std::map<std::vector<bool>, std::uint32_t> kinds_by_predicates;
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    plan.coordinates.push_back(program.mesh.coordinates(rank));
    const auto [kind, added] = kinds_by_predicates.try_emplace(predicates.on(plan.coordinates.back()),
                                                               static_cast<std::uint32_t>(plan.kinds.size()));
    if (added) {
      plan.kinds.push_back(RankPlanner(plan.lowered, rank).plan());
    }
    plan.kind_of_rank.push_back(kind->second);
  }
  return plan;
}

}  // namespace commfuse
