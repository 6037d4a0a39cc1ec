// SPDX-License-Identifier: Apache-2.0
#include "model/cost/costs.h"

#include <algorithm>
#include <utility>

namespace commfuse {

namespace {

/// Changes the time of all ops for which `chosen` is true.
template <class Chosen, class Change>
Costs changed(const Program& program, Costs costs, const Chosen& chosen, const Change& change) {
  const std::size_t ops = program.ops.size();
  for (std::size_t op = 0; op < ops; ++op) {
    if (chosen(program.ops[op])) {
      costs.duration[op] = change(costs.duration[op]);
      for (std::size_t i = op; i < costs.by_rank.size(); i += ops) {
        costs.by_rank[i] = change(costs.by_rank[i]);
      }
    }
  }
  return costs;
}

bool is_communication(const Op& op) { return op.purpose == Purpose::communication; }
bool is_compute(const Op& op) { return !is_communication(op); }
Duration no_time(Duration) { return Duration::zero(); }

}  // namespace

bool belongs(const Costs& costs, const Program& program, std::size_t ranks) {
  const std::size_t ops = program.ops.size();
  return costs.duration.size() == ops && costs.issue.size() == ops &&
         (costs.by_rank.empty() || ops * ranks % costs.by_rank.size() == 0);
}

Rank rows_of(const Costs& costs) {
  const std::size_t entries = std::max(costs.by_rank.size(), costs.undisturbed_by_rank.size());
  return entries == 0 ? 1 : static_cast<Rank>(entries / costs.duration.size());
}

void spread_rows(Costs& costs, std::size_t ranks) {
  const std::size_t entries = costs.duration.size() * ranks;
  costs.by_rank.reserve(entries);
  if (costs.by_rank.empty()) {
    costs.by_rank = costs.duration;
  }
  for (std::size_t next = 0; costs.by_rank.size() < entries; ++next) {
    costs.by_rank.push_back(costs.by_rank[next]);
  }
}

Costs with_free_communication(const Program& program, Costs costs) {
  return changed(program, std::move(costs), is_communication, no_time);
}

Costs with_free_compute(const Program& program, Costs costs) {
  return changed(program, std::move(costs), is_compute, no_time);
}

Costs slowed_down(const Program& program, Costs costs, const Slowdown& slowdown) {
  const auto times = [](double factor) {
    return [factor](Duration time) { return from_seconds(factor * to_seconds(time)); };
  };
  costs = changed(program, std::move(costs), is_compute, times(slowdown.kernels));
  costs = changed(
      program, std::move(costs), [](const Op& op) { return op.kind == OpKind::collective; },
      times(slowdown.collectives));
  return changed(
      program, std::move(costs), [](const Op& op) { return op.kind == OpKind::exchange; }, times(slowdown.exchanges));
}

Costs with_slow_rank(const Program& program, Costs costs, Rank rank, double factor) {
  const std::size_t ops = program.ops.size();
  spread_rows(costs, static_cast<std::size_t>(program.mesh.ranks()));
  for (std::size_t op = 0; op < ops; ++op) {
    Duration& time = costs.by_rank[static_cast<std::size_t>(rank) * ops + op];
    if (is_compute(program.ops[op])) {
      time = from_seconds(factor * to_seconds(time));
    }
  }
  return costs;
}

Duration essential_time(const Program& program, const Costs& costs, Rank rank) {
  const Coordinates coordinates = program.mesh.coordinates(rank);
  Duration total{};
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const Op& of_op = program.ops[op];
    const bool takes_part = of_op.where.relation == Relation::always || of_op.where.holds(coordinates);
    if (of_op.purpose == Purpose::essential && takes_part) {
      total += costs.undisturbed_of(rank, op);
    }
  }
  return total;
}

}  // namespace commfuse
