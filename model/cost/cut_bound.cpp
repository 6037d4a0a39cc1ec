// SPDX-License-Identifier: Apache-2.0
#include "model/cost/cut_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "model/check.h"
#include "model/cost/implemented.h"
#include "model/cost/shape_sizes.h"
#include "model/cost/wire_loads.h"
#include "model/program/matching.h"
#include "model/program/work.h"

namespace commfuse {

namespace {

constexpr double rounding = 1e-6;  // Relative: the engine rounds its events, and sums of doubles are rounded too.

bool has_wires(const Machine& machine) { return machine.topology != nullptr && !machine.topology->edges.empty(); }

/// Returns true if only ports can limit transfers.
bool is_on_a_switch(const Program& program, const Machine& machine) {
  return program.mesh.ranks() <= machine.gpus_per_node && machine.pair_peers == nullptr &&
         machine.group_collectives == nullptr;
}

/// Returns how often a transfer inside a kernel crosses the wires of its node: less than once if the node's switch can
/// add and spread the sums of an all-reduce with less traffic.
double crossings_in_kernel(const Program& program, const Machine& machine) {
  const int ranks_of_node = std::min(program.mesh.ranks(), machine.gpus_per_node);
  return sums_in_switch(machine) && ranks_of_node > 1 && reduces_all(program)
             ? std::min(1.0, crossings_with_switch_sums(ranks_of_node))
             : 1.0;
}

/// Returns the number of blocks of a set that cross each wire.
std::vector<double> blocks_on_wires(const Program& program, const CountedWires& wires, const KernelSet& set,
                                    double in_node) {
  std::vector<double> blocks = crossings_of(program, wires, set);
  for (std::size_t wire = 0; wire < blocks.size(); ++wire) {
    blocks[wire] *= wires.is_inside_node(wire) ? in_node : 1.0;
  }
  return blocks;
}

bool is_in_kernel(const Program& program, const Op& op) { return program.lanes[op.lane].kind == LaneKind::kernel; }

Bytes load_of(const Shape& shape, const Sizes& sizes) {
  const auto* exchange = std::get_if<ExchangeShape>(&shape);
  return exchange != nullptr ? load_of(*exchange, sizes) : load_of(std::get<CollectiveShape>(shape), sizes);
}

/// Load of one rank's part in a collective, relative to the collective's nccl-tests size.
struct Part {
  double port = 0.0;
  double nics = 0.0;
  bool out = true;
  bool in = true;
};

Part part_of(const Program& program, const CollectiveShape& shape, Rank rank, int gpus_per_node) {
  const std::int32_t ranks = program.mesh.axes[static_cast<std::size_t>(shape.axis)].extent;
  std::int32_t members = 0;  // members on the rank's node
  for (std::int32_t other = 0; other < ranks; ++other) {
    members += program.mesh.member(rank, shape.axis, other) / gpus_per_node == rank / gpus_per_node ? 1 : 0;
  }
  const double n = ranks;
  Part part{.port = (n - 1.0) / n,
            .nics = (n - members) / n,
            .out = shape.kind != CollectiveKind::all_gather,
            .in = shape.kind != CollectiveKind::reduce_scatter};
  if (shape.kind != CollectiveKind::all_to_all) {
    part.nics /= members;  // each byte crosses a node's NICs once, whichever member moves it
  }
  return part;
}

/// For every op that transfers bytes, calls `exchange` or `collective` with the op, its shape and the rank, for each
/// rank among the first `rows` that takes part.
template <class OnExchange, class OnCollective>
void each_transfer(const Program& program, Rank rows, const OnExchange& exchange, const OnCollective& collective) {
  for (const Op& op : program.ops) {
    const auto* sent = std::get_if<ExchangeShape>(&program.shapes[op.shape]);
    const auto* shared = std::get_if<CollectiveShape>(&program.shapes[op.shape]);
    const bool sends = sent != nullptr && sent->sends && sent->shift != 0 && !is_credit(*sent);
    for (Rank rank = 0; rank < rows && (sends || shared != nullptr); ++rank) {
      if (!op.where.holds(program.mesh.coordinates(rank))) {
        continue;
      }
      sends ? exchange(op, *sent, rank) : collective(op, *shared, rank);
    }
  }
}

/// Computes loads by wire and shape.
class LoadsMaker {
 public:
  LoadsMaker(const Program& program, const Machine& machine)
      : program_(program),
        gpus_per_node_(machine.gpus_per_node),
        in_node_(crossings_in_kernel(program, machine)),
        wires_(program, machine),
        loads_(wires_.count() * program.shapes.size(), 0.0) {}

  void add_all() {
    const auto add_exchange = [this](const Op& op, const ExchangeShape& exchange, Rank rank) {
      if (!is_in_kernel(program_, op)) {
        add(op, exchange, rank);
      }
    };
    const auto add_collective = [this](const Op& op, const CollectiveShape& shape, Rank rank) { add(op, shape, rank); };
    each_transfer(program_, wires_.counted_ranks(), add_exchange, add_collective);
    for (const KernelSet& set : kernel_sets_of(program_)) {
      const std::vector<double> crossings = blocks_on_wires(program_, wires_, set, in_node_);
      for (std::size_t wire = 0; wire < crossings.size(); ++wire) {
        load(wire, program_.ops[set.ops.front()].shape) += crossings[wire];
      }
    }
  }

  [[nodiscard]] const CountedWires& wires() const { return wires_; }
  double& load(std::size_t wire, std::uint32_t shape) { return loads_[wire * program_.shapes.size() + shape]; }

 private:
  void add(const Op& op, const ExchangeShape& exchange, Rank rank) {
    wires_.way(rank, target_of(program_, exchange, rank), way_);
    for (const auto& [wire, end] : way_) {
      load(wire, op.shape) += wires_.is_of_fabric(wire) ? wires_.times_on_fabric() : 1.0;
    }
  }

  void add(const Op& op, const CollectiveShape& collective, Rank rank) {
    const Part part = part_of(program_, collective, rank, gpus_per_node_);
    for (const bool inwards : {false, true}) {
      if (inwards ? part.in : part.out) {
        load(wires_.port(rank, inwards), op.shape) += part.port;
        load(wires_.nics(rank, inwards), op.shape) += part.nics;
      }
    }
  }

  const Program& program_;
  int gpus_per_node_;
  double in_node_;
  CountedWires wires_;
  std::vector<double> loads_;
  std::vector<CountedWires::Crossed> way_;
};

}  // namespace

Duration least_time(const Cut& cut) {
  return Duration{static_cast<std::int64_t>(std::floor(1e12 * std::max(0.0, cut.seconds - cut.rounding)))};
}

void require_above_cut(Duration time, const Cut& cut) {
  if (to_seconds(time) + cut.rounding >= cut.seconds * (1.0 - rounding)) {
    return;
  }
  check(false,
        fmt::format("nothing is faster than its wires: {:.9g} us, where the bytes over {} take {:.9g} us at least",
                    to_microseconds(time), cut.wire, 1e6 * cut.seconds)
            .c_str());
}

CutBound::CutBound(const Program& program, const Machine& machine) : ops_(program.ops.size()) {
  if (!has_wires(machine)) {
    return;
  }
  if (is_on_a_switch(program, machine)) {
    add_ports(program, machine);
    return;
  }
  LoadsMaker loads(program, machine);
  loads.add_all();
  std::map<std::vector<double>, std::size_t> known;  // seconds per byte by shape, and the first wire with them
  for (std::size_t wire = 0; wire < loads.wires().count(); ++wire) {
    const double capacity = loads.wires().capacity(wire);
    std::vector<double> seconds;
    for (std::uint32_t shape = 0; shape < program.shapes.size(); ++shape) {
      const double load = loads.load(wire, shape);
      seconds.push_back(load > 0.0 ? load / capacity : 0.0);
    }
    known.try_emplace(std::move(seconds), wire);
  }
  const auto is_below = [](const std::vector<double>& lesser, const std::vector<double>& other) {
    return &lesser != &other && std::ranges::equal(lesser, other, [](double a, double b) { return a <= b; });
  };
  for (const auto& entry : known) {  // no structured binding, because clang 14 cannot use it in a lambda
    if (std::ranges::any_of(known, [&](const auto& other) { return is_below(entry.first, other.first); })) {
      continue;
    }
    add_wire(entry.first, loads.wires().name(entry.second));
  }
}

void CutBound::add_ports(const Program& program, const Machine& machine) {
  const auto ranks = static_cast<std::size_t>(program.mesh.ranks());
  const std::size_t shapes = program.shapes.size();
  std::array<std::vector<double>, 2> loads{std::vector<double>(ranks * shapes), std::vector<double>(ranks * shapes)};
  const auto add = [&](bool inwards, const Op& op, Rank rank, double load) {
    loads[inwards ? 1 : 0][static_cast<std::size_t>(rank) * shapes + op.shape] += load;
  };
  const double in_kernel = crossings_in_kernel(program, machine);
  const auto add_exchange = [&](const Op& op, const ExchangeShape& exchange, Rank rank) {
    // Exchanges in a kernel load both ports, too: even if a block left its sender only once, its receiver would receive
    // a block from every other rank.
    const double crossings = is_in_kernel(program, op) ? in_kernel : 1.0;
    add(false, op, rank, crossings);
    add(true, op, target_of(program, exchange, rank), crossings);
  };
  const auto add_collective = [&](const Op& op, const CollectiveShape& collective, Rank rank) {
    const Part part = part_of(program, collective, rank, machine.gpus_per_node);
    add(false, op, rank, part.out ? part.port : 0.0);
    add(true, op, rank, part.in ? part.port : 0.0);
  };
  each_transfer(program, program.mesh.ranks(), add_exchange, add_collective);
  const double capacity = machine.link.capacity.value;
  for (const bool inwards : {false, true}) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::vector<double> seconds;
      for (std::size_t shape = 0; shape < shapes; ++shape) {
        seconds.push_back(loads[inwards ? 1 : 0][rank * shapes + shape] / capacity);
      }
      add_wire(seconds, fmt::format("the port {} GPU {}", inwards ? "into" : "out of", rank));
    }
  }
}

void CutBound::add_wire(const std::vector<double>& seconds, std::string name) {
  Wire busy{.shapes = {}, .name = std::move(name)};
  for (std::uint32_t shape = 0; shape < seconds.size(); ++shape) {
    if (seconds[shape] > 0.0) {
      busy.shapes.emplace_back(shape, seconds[shape]);
    }
  }
  const bool is_known = std::ranges::any_of(wires_, [&](const Wire& wire) { return wire.shapes == busy.shapes; });
  if (!busy.shapes.empty() && !is_known) {
    wires_.push_back(std::move(busy));
  }
}

Cut CutBound::at(const Program& program, const Sizes& sizes) const {
  Cut largest{.seconds = 0.0, .rounding = 0.5e-12 * static_cast<double>(ops_), .wire = {}};
  for (const Wire& wire : wires_) {
    double seconds = 0.0;
    for (const auto& [shape, seconds_per_byte] : wire.shapes) {
      seconds += static_cast<double>(load_of(program.shapes[shape], sizes).count) * seconds_per_byte;
    }
    if (seconds > largest.seconds) {
      largest.seconds = seconds;
      largest.wire = wire.name;
    }
  }
  return largest;
}

namespace {

/// Returns the seconds per byte of each op of the set.
double seconds_of(const Program& program, const CountedWires& wires, const KernelSet& set, double in_node) {
  const std::vector<double> crossings = blocks_on_wires(program, wires, set, in_node);
  double longest = 0.0;
  for (std::size_t wire = 0; wire < crossings.size(); ++wire) {
    longest = std::max(longest, crossings[wire] > 0.0 ? crossings[wire] / wires.rate(wire) : 0.0);
  }
  return longest / static_cast<double>(set.ops.size());
}

}  // namespace

double crossings_with_switch_sums(int ranks) { return (ranks + 1.0) / (2.0 * (ranks - 1.0)); }

bool kernels_move(const Program& program) {
  return std::ranges::any_of(program.lanes, [](const Lane& lane) { return lane.kind == LaneKind::kernel; });
}

std::vector<double> seconds_per_byte_in_kernel(const Program& program, const Machine& machine) {
  const double in_node = crossings_in_kernel(program, machine);
  if (!has_wires(machine) || is_on_a_switch(program, machine)) {  // All transfers of a set pass one port.
    return std::vector<double>(program.ops.size(), in_node / machine.link.nominal_rate.value.value);
  }
  std::vector<double> by_op(program.ops.size(), 0.0);
  const CountedWires wires(program, machine);
  // The key states whether a set gathers, and the axes and shifts of its exchanges.
  std::map<std::vector<std::pair<std::int8_t, std::int32_t>>, double> known;
  for (const KernelSet& set : kernel_sets_of(program)) {
    std::vector<std::pair<std::int8_t, std::int32_t>> shifts{{0, set.gathers ? 1 : 0}};
    for (const std::size_t op : set.ops) {
      const auto& exchange = std::get<ExchangeShape>(program.shapes[program.ops[op].shape]);
      shifts.emplace_back(exchange.axis, exchange.shift);
    }
    const auto [entry, is_new] = known.try_emplace(std::move(shifts), 0.0);
    if (is_new) {
      entry->second = seconds_of(program, wires, set, in_node);
    }
    for (const std::size_t op : set.ops) {
      by_op[op] = entry->second;
    }
  }
  return by_op;
}

}  // namespace commfuse
