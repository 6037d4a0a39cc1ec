// SPDX-License-Identifier: Apache-2.0
#include "model/cost/fluid.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "model/check.h"
#include "model/cost/contention.h"
#include "model/cost/op_time.h"
#include "model/cost/wires.h"
#include "model/program/matching.h"

namespace commfuse {

namespace {

/// A move: axis and shift that any number of exchanges share. A shift of 0 moves nothing and has no number.
using AxisShift = std::pair<std::int8_t, std::int32_t>;

class WiringMaker {
 public:
  /// `routes` may be null; then the maker computes them itself.
  WiringMaker(const Program& program, const Machine& machine, Forwarding forwarding, KnownRoutes* routes)
      : program_(program),
        machine_(machine),
        topology_(machine.topology.get()),
        forwarding_(forwarding),
        known_routes_(routes) {
    wiring_.ranks = static_cast<std::size_t>(program.mesh.ranks());
    first_port_ = topology_ == nullptr ? 0 : 2 * topology_->edges.size();
    wiring_.capacity.assign(first_port_ + 4 * wiring_.ranks, 0.0);
  }

  Wiring make() {
    number_moves();
    if (moves_.size() < 2) {
      known_routes_ = nullptr;  // for so few routes, a search is faster than a cache
    } else if (topology_ != nullptr && known_routes_ == nullptr) {
      known_routes_ = &own_routes_.emplace(machine_.topology);
    }
    wiring_.paths.resize(moves_.size() * wiring_.ranks);
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      for (std::size_t move = 0; move < moves_.size(); ++move) {
        const Rank target = program_.mesh.shifted(rank, moves_[move].first, moves_[move].second);
        wiring_.paths[move * wiring_.ranks + static_cast<std::size_t>(rank)] = path_of(rank, target);
      }
    }
    return std::move(wiring_);
  }

 private:
  void number_moves() {
    std::map<AxisShift, std::int32_t> known;
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      const ExchangeShape* exchange = exchange_of(program_, program_.ops[op]);
      wiring_.move_of_op.push_back(-1);
      if (exchange == nullptr || !exchange->sends || exchange->shift == 0 ||
          program_.lanes[program_.ops[op].lane].kind == LaneKind::kernel) {
        continue;
      }
      const AxisShift move{exchange->axis, exchange->shift};
      const auto [entry, added] = known.try_emplace(move, static_cast<std::int32_t>(moves_.size()));
      if (added) {
        moves_.push_back(move);
      }
      wiring_.move_of_op.back() = entry->second;
    }
  }

  /// Returns the links between two ranks.
  std::span<const int> route(Rank from, Rank to) {
    if (topology_ == nullptr) {
      return {};
    }
    if (known_routes_ != nullptr) {
      return known_routes_->links(from, to);
    }
    std::optional<Route> route = route_between(*topology_, from, to);
    check(route.has_value(), "the GPUs of a machine reach each other");
    links_ = std::move(route->links);
    return links_;
  }

  [[nodiscard]] double rate_of(int link) const {
    return topology_->edges[static_cast<std::size_t>(link / 2)].rate.value;
  }

  WirePath path_of(Rank from, Rank to) {
    const PeerParameters& peer = peer_between(machine_, from, to);
    const double rate = peer.rate.value.value;
    const bool across = from / machine_.gpus_per_node != to / machine_.gpus_per_node;
    WirePath path{peer.latency.value, static_cast<std::uint32_t>(wiring_.stages.size())};
    open_stage(rate);
    add_link(port(from, across, 0), std::max(rate, peer.aggregate_rate.value.value));
    const std::span<const int> links = route(from, to);
    double slowest = std::numeric_limits<double>::infinity();
    for (const int link : links) {
      slowest = std::min(slowest, rate_of(link));
    }
    for (std::size_t hop = 0; hop < links.size(); ++hop) {
      const double wire = std::max(rate, rate * (rate_of(links[hop]) / slowest));
      if (forwarding_ == Forwarding::store_and_forward) {
        if (hop > 0) {
          open_stage(wire);
        }
        set_cap(wire);
      }
      add_link(static_cast<std::size_t>(links[hop]), wire);
    }
    add_link(port(to, across, 1), std::max(rate, peer.aggregate_rate.value.value));
    path.stages = static_cast<std::uint32_t>(wiring_.stages.size()) - path.first_stage;
    set_shares(path);
    return path;
  }

  [[nodiscard]] std::size_t port(Rank rank, bool across, std::size_t inwards) const {
    return first_port_ + 4 * static_cast<std::size_t>(rank) + (across ? 2 : 0) + inwards;
  }

  void open_stage(double cap) {
    wiring_.stages.push_back({.cap = cap, .first_link = static_cast<std::uint32_t>(wiring_.links.size())});
  }

  void add_link(std::size_t link, double capacity) {
    WireStage& stage = wiring_.stages.back();
    wiring_.links.push_back(static_cast<std::int32_t>(link));
    ++stage.links;
    wiring_.capacity[link] = std::max({wiring_.capacity[link], capacity, stage.cap});
  }

  /// Sets the rate of the open stage to that of its wire, and raises the capacity of its links to at least this rate.
  void set_cap(double cap) {
    WireStage& stage = wiring_.stages.back();
    stage.cap = cap;
    for (std::uint32_t i = 0; i < stage.links; ++i) {
      double& capacity = wiring_.capacity[static_cast<std::size_t>(wiring_.links[stage.first_link + i])];
      capacity = std::max(capacity, cap);
    }
  }

  void set_shares(const WirePath& path) {
    const auto stages = std::span(wiring_.stages).subspan(path.first_stage, path.stages);
    double total = 0.0;
    for (const WireStage& stage : stages) {
      total += 1.0 / stage.cap;
    }
    double before = 0.0;
    for (WireStage& stage : stages) {
      before += 1.0 / stage.cap;
      stage.until = before / total;
    }
    stages.back().until = 1.0;
  }

  const Program& program_;
  const Machine& machine_;
  const Topology* topology_;
  Forwarding forwarding_;
  KnownRoutes* known_routes_;
  std::optional<KnownRoutes> own_routes_;
  std::vector<int> links_;      // links of the last requested route
  std::size_t first_port_ = 0;  // first link that is a port
  std::vector<AxisShift> moves_;
  Wiring wiring_;
};

/// Prices store-and-forward: the bytes cross every hop, one after another.
void price_stages(const Program& program, const Sizes& sizes, const Wiring& wiring, Costs& costs) {
  const std::size_t ops = program.ops.size();
  if (std::none_of(wiring.paths.begin(), wiring.paths.end(), [](const WirePath& path) { return path.stages > 1; })) {
    return;
  }
  spread_rows(costs, wiring.ranks);
  for (std::size_t i = 0; i < costs.by_rank.size(); ++i) {
    const auto rank = static_cast<Rank>(i / ops);
    const WirePath* path = wiring.path_of(rank, i % ops);
    if (path == nullptr || path->stages < 2) {
      continue;
    }
    const ExchangeShape& exchange = *exchange_of(program, program.ops[i % ops]);
    const double bytes =
        static_cast<double>(sizes.elements(exchange.rows) * sizes.elements(exchange.columns) * bytes_of(exchange.wire));
    double seconds = 0.0;
    double cut_through = 0.0;
    for (std::uint32_t stage = 0; stage < path->stages; ++stage) {
      const double stage_seconds = bytes / wiring.stages[path->first_stage + stage].cap;
      seconds += stage_seconds;
      cut_through = std::max(cut_through, stage_seconds);
    }
    costs.by_rank[i] +=
        op_time(seconds, "an exchange over several hops") - op_time(cut_through, "an exchange with one peer");
  }
}

/// Returns time alone / time during communication, by op, or in the layout of by_rank if costs differ by rank.
std::vector<double> ratios(const Costs& alone, const Costs& during) {
  const std::size_t ops = alone.duration.size();
  const std::size_t entries = std::max(ops, alone.by_rank.size());
  std::vector<double> result;
  result.reserve(entries);
  for (std::size_t i = 0; i < entries; ++i) {
    const auto rank = static_cast<Rank>(i / ops);
    const Duration undisturbed = alone.of(rank, i % ops);
    const Duration disturbed = during.of(rank, i % ops);
    result.push_back(disturbed > undisturbed
                         ? static_cast<double>(undisturbed.count()) / static_cast<double>(disturbed.count())
                         : 1.0);
  }
  return result;
}

}  // namespace

Wiring wiring_of(const Program& program, const Machine& machine, Forwarding forwarding) {
  return WiringMaker(program, machine, forwarding, nullptr).make();
}

Wiring wiring_of(const Program& program, const Machine& machine, KnownRoutes& routes) {
  check(&routes.topology() == machine.topology.get(), "the routes belong to the machine");
  return WiringMaker(program, machine, Forwarding::cut_through, &routes).make();
}

Fluid price_fluid(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes,
                  const Machine& machine, PriceOptions options, std::shared_ptr<const Wiring> wiring) {
  check(wiring->move_of_op.size() == program.ops.size(), "wiring belongs to the program");
  Fluid fluid;
  std::vector<Meetings> concurrent = contenders_of(meetings);
  options.interference = Interference::constant;
  fluid.costs = price_alone(program, concurrent, sizes, machine, options);
  bool has_exchanges = false;
  bool has_collectives = false;
  for (const Op& op : program.ops) {
    const bool holds_sms = communication_holds_sms(program.lanes[op.lane].kind);
    has_exchanges = has_exchanges || (op.kind == OpKind::exchange && holds_sms);
    has_collectives = has_collectives || (op.kind == OpKind::collective && holds_sms);
  }
  for (const unsigned communication : {1U, 2U, 3U}) {
    const bool exchange = (communication & 1U) != 0;
    const bool collective = (communication & 2U) != 0;
    if ((exchange && !has_exchanges) || (collective && !has_collectives)) {
      continue;
    }
    for (Meetings& met : concurrent) {
      met.exchange = exchange;
      met.collective = collective;
    }
    fluid.speeds[communication] = ratios(fluid.costs, price_alone(program, concurrent, sizes, machine, options));
  }
  price_stages(program, sizes, *wiring, fluid.costs);
  fluid.wiring = std::move(wiring);
  return fluid;
}

}  // namespace commfuse
