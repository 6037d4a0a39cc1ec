// SPDX-License-Identifier: Apache-2.0
#include "model/cost/contention.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "model/check.h"
#include "model/hardware/segments.h"

namespace commfuse {

namespace {

/// Transfers from every rank that satisfies `where` to the rank `shift` ahead on the axis.
struct Move {
  std::int8_t axis = 0;
  std::int32_t shift = 0;
  Predicate where{};
  friend bool operator==(const Move&, const Move&) = default;
};

std::optional<Move> move_of(const Program& program, const Op& op) {
  const Shape& shape = program.shapes[op.shape];
  if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    return Move{exchange->axis, exchange->shift, op.where};
  }
  if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
    return Move{collective->axis, 1, op.where};
  }
  return std::nullopt;
}

/// Finds out which transfers of a program cross the same wires.
class SharedWires {
 public:
  SharedWires(const Program& program, const Machine& machine)
      : program_(program), machine_(machine), segments_(segments_of(machine)) {
    for (const Op& op : program.ops) {
      const std::optional<Move> move = move_of(program, op);
      const auto known = move ? std::ranges::find(moves_, *move) : moves_.end();
      move_of_op_.push_back(static_cast<std::size_t>(known - moves_.begin()));
      if (move && known == moves_.end()) {
        moves_.push_back(*move);
        crossed_.push_back(crossed_by(*move));
      }
    }
  }

  /// Returns true if two ops cross a common wire. Both must be transfers.
  [[nodiscard]] bool meet(std::size_t op, std::size_t other) const {
    const std::vector<bool>& by_op = crossed_[move_of_op_[op]];
    const std::vector<bool>& by_other = crossed_[move_of_op_[other]];
    for (std::size_t segment = 0; segment < by_op.size(); ++segment) {
      if (by_op[segment] && by_other[segment]) {
        return true;
      }
    }
    return false;
  }

 private:
  [[nodiscard]] std::vector<bool> crossed_by(const Move& move) const {
    const int step = machine_.gpus_per_node;
    const Rank ranks = program_.mesh.ranks();
    std::vector<bool> crossed(
        static_cast<std::size_t>(segments_->of_fabric + (ranks + step - 1) / step * segments_->of_a_node));
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Rank to = program_.mesh.shifted(rank, move.axis, move.shift);
      if (to == rank || !move.where.holds(program_.mesh.coordinates(rank))) {
        continue;
      }
      for (const Segments::Crossing& crossing : segments_->way(rank, to)) {
        crossed[segments_->number(crossing, rank / step, to / step)] = true;
      }
    }
    return crossed;
  }

  const Program& program_;
  const Machine& machine_;
  std::shared_ptr<const Segments> segments_;
  std::vector<Move> moves_;
  std::vector<std::size_t> move_of_op_;
  std::vector<std::vector<bool>> crossed_;  // by move and segment
};

/// Returns how long an op is delayed; `moving` returns the time during which an op needs its wires.
template <class Moving>
Duration delay_of(const Program& program, std::size_t op, const std::vector<OpId>& contenders, const Moving& moving) {
  Duration delay{};
  for (std::size_t first = 0; first < contenders.size();) {
    const std::uint16_t lane = program.ops[position(contenders[first])].lane;
    Duration lane_time{};
    std::size_t next = first;
    for (; next < contenders.size() && program.ops[position(contenders[next])].lane == lane; ++next) {
      lane_time += moving(position(contenders[next]));
    }
    delay += std::min(moving(op), lane_time);
    first = next;
  }
  return delay;
}

}  // namespace

bool contend(const std::vector<Meetings>& meetings) {
  return std::ranges::any_of(meetings, [](const Meetings& met) { return !met.contenders.empty(); });
}

std::vector<Meetings> contenders_of(const std::vector<Meetings>& meetings) {
  std::vector<Meetings> result(meetings.size());
  for (std::size_t op = 0; op < meetings.size(); ++op) {
    result[op].contenders = meetings[op].contenders;
  }
  return result;
}

void add_contention(const Program& program, const std::vector<Meetings>& meetings, const Machine& machine,
                    const Latencies& latencies, Costs& costs) {
  check(latencies.by_op.size() == costs.duration.size() && latencies.by_rank.size() == costs.by_rank.size(),
        "every duration of a transfer has its latency");
  const SharedWires wires(program, machine);
  const std::size_t ops = program.ops.size();
  const Costs undelayed = costs;
  for (std::size_t op = 0; op < ops; ++op) {
    std::vector<OpId> contenders;
    std::ranges::copy_if(meetings[op].contenders, std::back_inserter(contenders),
                         [&](OpId other) { return wires.meet(op, position(other)); });
    if (contenders.empty()) {
      continue;
    }
    const auto moving = [&](std::size_t transfer) {
      return std::max(Duration::zero(), undelayed.duration[transfer] - latencies.by_op[transfer]);
    };
    costs.duration[op] += delay_of(program, op, contenders, moving);
    costs.undisturbed[op] = costs.duration[op];
    for (std::size_t row = 0; row < costs.by_rank.size(); row += ops) {
      const auto moving_on_rank = [&](std::size_t transfer) {
        return std::max(Duration::zero(), undelayed.by_rank[row + transfer] - latencies.by_rank[row + transfer]);
      };
      costs.by_rank[row + op] += delay_of(program, op, contenders, moving_on_rank);
    }
  }
}

}  // namespace commfuse
