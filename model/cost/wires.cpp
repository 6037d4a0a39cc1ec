// SPDX-License-Identifier: Apache-2.0
#include "model/cost/wires.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "model/cost/communication.h"
#include "model/hardware/segments.h"
#include "model/program/matching.h"

namespace commfuse {

namespace {

/// Returns true if the op is an exchange that holds wires; an exchange within a rank or inside a kernel holds none.
bool holds_wires(const Program& program, std::size_t op) {
  const ExchangeShape* exchange = exchange_of(program, program.ops[op]);
  return exchange != nullptr && exchange->shift != 0 && program.lanes[program.ops[op].lane].kind != LaneKind::kernel;
}

Bytes bytes_of(const Sizes& sizes, const ExchangeShape& exchange) {
  return Bytes{sizes.elements(exchange.rows) * sizes.elements(exchange.columns) * bytes_of(exchange.wire)};
}

/// Returns the rate if all pairs are equal: exchanges with one peer share its wire, and exchanges with all peers share
/// the port.
BytesPerSecond share_of_port(const PeerParameters& peer, const SharedPort& shared) {
  const double rate = peer.rate.value.value;
  return {std::min(rate / shared.wire, std::max(rate, peer.aggregate_rate.value.value) / shared.port)};
}

/// Returns true if every node repeats the first node's exchanging pairs: nodes are equal, and a rank represents the
/// ranks at its position on other nodes.
bool nodes_repeat(const Program& program, const Machine& machine) {
  return folded(program.mesh, machine.gpus_per_node).has_value();
}

/// Shares of exchanges in the segments that they cross: an equal part for each exchange at the same position on all
/// lanes, while all ranks run these exchanges.
class Shares {
 public:
  Shares(const Program& program, const std::vector<Meetings>& meetings, const Machine& machine)
      : program_(program),
        machine_(machine),
        segments_(segments_of(machine)),
        rates_(segment_rates(*segments_, machine)) {
    number_moves();
    const Rank ranks = program.mesh.ranks();
    rows_ = repeats() ? machine.gpus_per_node : ranks;
    nodes_ = (ranks + machine.gpus_per_node - 1) / machine.gpus_per_node;
    loads_.assign(static_cast<std::size_t>(segments_->of_fabric + nodes_ * segments_->of_a_node), 0);
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      company_.push_back(holds_wires(program, op) && exchange_of(program, program.ops[op])->sends
                             ? company_of(op, meetings[op].rivals)
                             : none);
    }
  }

  /// Returns the number of ranks after which shares repeat.
  [[nodiscard]] Rank rows() const { return rows_; }

  [[nodiscard]] BytesPerSecond limit_of(Rank rank, std::size_t op) const {
    return {company_[op] == none ? std::numeric_limits<double>::infinity()
                                 : limits_[company_[op] + static_cast<std::size_t>(rank % rows_)]};
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  /// Transfers from every rank that satisfies `where` to the rank `shift` ahead on the axis.
  struct Move {
    std::int8_t axis = 0;
    std::int32_t shift = 0;
    Predicate where{};
    friend bool operator==(const Move&, const Move&) = default;
  };
  using Company = std::vector<std::size_t>;  // the move of the op, then the concurrent moves in order

  void number_moves() {
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      move_of_op_.push_back(none);
      if (!holds_wires(program_, op) || !exchange_of(program_, program_.ops[op])->sends) {
        continue;
      }
      const ExchangeShape& exchange = *exchange_of(program_, program_.ops[op]);
      const Move move{exchange.axis, exchange.shift, program_.ops[op].where};
      const auto [entry, is_new] = numbers_.try_emplace({move.axis, move.shift}, moves_.size());
      auto known = entry->second;
      while (known < moves_.size() && !(moves_[known] == move)) {
        ++known;
      }
      if (known == moves_.size()) {
        moves_.push_back(move);
      }
      move_of_op_.back() = known;
    }
  }

  /// Returns true if the ranks of the first node represent all ranks.
  [[nodiscard]] bool repeats() const {
    return nodes_repeat(program_, machine_) &&
           std::ranges::all_of(moves_, [](const Move& move) { return move.where.relation == Relation::always; });
  }

  [[nodiscard]] Rank target(const Move& move, Rank rank) const {
    return program_.mesh.shifted(rank, move.axis, move.shift);
  }

  /// Returns the index in limits_ at which the rows of the op's company begin.
  std::size_t company_of(std::size_t op, const std::vector<OpId>& rivals) {
    requested_.assign(1, move_of_op_[op]);
    for (const OpId rival : rivals) {
      if (move_of_op_[position(rival)] != none) {
        requested_.push_back(move_of_op_[position(rival)]);
      }
    }
    std::sort(requested_.begin() + 1, requested_.end());
    if (last_ != nullptr && last_->first == requested_) {  // true in a ring, whose steps are equal
      return last_->second;
    }
    const auto [known, is_new] = companies_.try_emplace(requested_, limits_.size());
    last_ = &*known;
    if (is_new) {
      add_shares(known->first);
    }
    return known->second;
  }

  /// Calls `visit` with each segment that a transfer crosses, and the segment's kind.
  template <class Visit>
  void each_segment(const Move& move, Rank rank, const Visit& visit) const {
    const Rank to = target(move, rank);
    const int step = machine_.gpus_per_node;
    const bool folded = rows_ == step && nodes_ > 1;
    for (const Segments::Crossing& crossing : segments_->way(rank, to)) {
      visit(segments_->number(crossing, folded ? 0 : rank / step, folded ? 0 : to / step), segments_->kind(crossing));
    }
  }

  /// Adds `times` to the load of each segment that the moves cross.
  void load(const Company& company, int times) {
    for (const std::size_t move_index : company) {
      const Move& move = moves_[move_index];
      for (Rank rank = 0; rank < rows_; ++rank) {
        if (move.where.relation == Relation::always || move.where.holds(program_.mesh.coordinates(rank))) {
          each_segment(move, rank, [&](std::size_t segment, std::size_t) { loads_[segment] += times; });
        }
      }
    }
  }

  void add_shares(const Company& company) {
    load(company, 1);
    const int times_on_fabric = program_.mesh.ranks() / rows_;  // ranks that each counted rank represents
    for (Rank rank = 0; rank < rows_; ++rank) {
      double limit = std::numeric_limits<double>::infinity();
      each_segment(moves_[company.front()], rank, [&](std::size_t segment, std::size_t kind) {
        const int times = segment < static_cast<std::size_t>(segments_->of_fabric) ? times_on_fabric : 1;
        limit = std::min(limit, rates_[kind] / std::max(1, times * loads_[segment]));
      });
      limits_.push_back(limit);
    }
    load(company, -1);
  }

  const Program& program_;
  const Machine& machine_;
  std::shared_ptr<const Segments> segments_;
  std::vector<double> rates_;  // by kind of segment
  Rank rows_ = 1;
  int nodes_ = 1;
  std::vector<Move> moves_;
  std::map<std::pair<std::int8_t, std::int32_t>, std::size_t> numbers_;  // by axis and shift: first move
  std::vector<std::size_t> move_of_op_;
  std::vector<int> loads_;  // by segment: concurrent transfers
  std::map<Company, std::size_t> companies_;
  Company requested_;                                            // scratch
  const std::pair<const Company, std::size_t>* last_ = nullptr;  // entry of companies_ requested last
  std::vector<std::size_t> company_;                             // by op
  std::vector<double> limits_;                                   // by company and rank
};

/// All inputs to the time of an exchange of one rank.
struct PricedExchange {
  std::uint32_t shape = 0;
  double limit = 0.0;
  friend bool operator==(const PricedExchange&, const PricedExchange&) = default;
};

/// `shares` is null for exchanges that have the wires to themselves.
void price_pairs(const Program& program, const Sizes& sizes, const Machine& machine, const Shares* shares,
                 Costs& costs) {
  const std::size_t ops = program.ops.size();
  const Rank rows = shares != nullptr                ? shares->rows()
                    : nodes_repeat(program, machine) ? machine.gpus_per_node
                                                     : program.mesh.ranks();
  costs.by_rank.reserve(ops * static_cast<std::size_t>(rows));
  for (Rank rank = 0; rank < rows; ++rank) {
    std::optional<PricedExchange> last;
    Duration time{};  // time of `last`
    for (std::size_t op = 0; op < ops; ++op) {
      costs.by_rank.push_back(costs.duration[op]);
      if (!holds_wires(program, op)) {
        continue;
      }
      const double limit = shares != nullptr ? shares->limit_of(rank, op).value : 0.0;
      if (const PricedExchange now{program.ops[op].shape, limit}; !last || *last != now) {  // steps are often equal
        const ExchangeShape& exchange = *exchange_of(program, program.ops[op]);
        const PeerParameters& peer = peer_between(machine, rank, target_of(program, exchange, rank));
        const Bytes bytes = bytes_of(sizes, exchange);
        last = now;
        time = shares != nullptr ? p2p_time(peer, bytes, {limit}) : p2p_time(peer, bytes);
      }
      costs.by_rank.back() = time;
    }
  }
}

/// Returns the number of lanes with rivals that `counts` accepts. Requires rivals sorted by lane.
template <class Counts>
int lanes_of_rivals(const Program& program, const std::vector<OpId>& rivals, const Counts& counts) {
  int lanes = 0;
  const Op* last = nullptr;
  for (const OpId rival : rivals) {
    const Op& op = program.ops[position(rival)];
    if (counts(op)) {
      lanes += last == nullptr || last->lane != op.lane ? 1 : 0;
      last = &op;
    }
  }
  return lanes;
}

bool pairs_differ(const Program& program, const Machine& machine) {
  return program.mesh.ranks() > machine.gpus_per_node || machine.pair_peers != nullptr;
}

}  // namespace

std::vector<SharedPort> shared_ports(const Program& program, const std::vector<Meetings>& meetings) {
  std::vector<SharedPort> shared;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (meetings[op].rivals.empty()) {
      continue;
    }
    const ExchangeShape& exchange = *exchange_of(program, program.ops[op]);
    const auto has_same_peer = [&](const Op& rival) {
      const ExchangeShape& other = *exchange_of(program, rival);
      return other.axis == exchange.axis && other.shift == exchange.shift;
    };
    SharedPort& port = shared.emplace_back(SharedPort{.op = op});
    port.port += lanes_of_rivals(program, meetings[op].rivals, [](const Op&) { return true; });
    port.wire += lanes_of_rivals(program, meetings[op].rivals, has_same_peer);
  }
  std::ranges::sort(shared, std::less{}, [&](const SharedPort& port) {  // equal prices follow each other
    return std::tuple(program.ops[port.op].shape, port.port, port.wire, port.op);
  });
  return shared;
}

void price_exchanges(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes,
                     const Machine& machine, Costs& costs) {
  price_exchanges(program, meetings, shared_ports(program, meetings), sizes, machine, costs);
}

void price_exchanges(const Program& program, const std::vector<Meetings>& meetings,
                     const std::vector<SharedPort>& shared, const Sizes& sizes, const Machine& machine, Costs& costs) {
  const PeerParameters& peer = machine.link.peer;
  std::optional<std::size_t> last;  // index in `shared`
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const std::size_t op = shared[i].op;
    const bool is_equal = last && program.ops[shared[*last].op].shape == program.ops[op].shape &&
                          shared[*last].port == shared[i].port && shared[*last].wire == shared[i].wire;
    costs.duration[op] = is_equal ? costs.duration[shared[*last].op]
                                  : p2p_time(peer, bytes_of(sizes, *exchange_of(program, program.ops[op])),
                                             share_of_port(peer, shared[i]));
    costs.undisturbed[op] = costs.duration[op];
    last = i;
  }
  if (pairs_differ(program, machine)) {
    const Shares shares(program, meetings, machine);
    price_pairs(program, sizes, machine, &shares, costs);
  }
}

void price_exchanges_alone(const Program& program, const Sizes& sizes, const Machine& machine, Costs& costs) {
  if (pairs_differ(program, machine)) {
    price_pairs(program, sizes, machine, nullptr, costs);
  }
}

std::vector<Duration> latencies_by_rank(const Program& program, const Machine& machine,
                                        const std::vector<Duration>& by_op, const Costs& costs) {
  const std::size_t ops = program.ops.size();
  std::vector<Duration> latencies;
  latencies.reserve(costs.by_rank.size());
  for (Rank rank = 0; latencies.size() < costs.by_rank.size(); ++rank) {
    for (std::size_t op = 0; op < ops; ++op) {
      latencies.push_back(by_op[op]);
      if (holds_wires(program, op)) {
        const Rank peer = target_of(program, *exchange_of(program, program.ops[op]), rank);
        latencies.back() = p2p_time(peer_between(machine, rank, peer), Bytes{});
      }
    }
  }
  return latencies;
}

bool shares_wires(const Program& program) {
  std::vector<std::uint16_t> lanes;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::exchange && std::find(lanes.begin(), lanes.end(), op.lane) == lanes.end()) {
      lanes.push_back(op.lane);
    }
  }
  return lanes.size() > 1;
}

}  // namespace commfuse
