// SPDX-License-Identifier: Apache-2.0
#include "model/cost/wire_loads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "model/check.h"
#include "model/program/matching.h"

namespace commfuse {

namespace {

/// Returns true if the ranks of every node repeat the transfers of the first node's ranks, relative to their own node.
bool repeats_every(const Program& program, int gpus_per_node) {
  return program.mesh.ranks() % gpus_per_node == 0 && folded(program.mesh, gpus_per_node) && same_on_all_ranks(program);
}

std::string_view word_for(VertexKind kind) {
  switch (kind) {
    case VertexKind::gpu: return "GPU";
    case VertexKind::crossbar: return "switch";
    case VertexKind::bridge: return "bridge";
    case VertexKind::root: return "root";
    case VertexKind::nic: return "NIC";
    case VertexKind::fabric: return "fabric";
    case VertexKind::leaf: return "leaf";
    case VertexKind::spine: return "spine";
  }
  return "";
}

bool is_of_network(VertexKind kind) {
  return kind == VertexKind::nic || kind == VertexKind::fabric || kind == VertexKind::leaf || kind == VertexKind::spine;
}

}  // namespace

CountedWires::CountedWires(const Program& program, const Machine& machine)
    : segments_(segments_of(machine)), topology_(*machine.topology), gpus_per_node_(machine.gpus_per_node) {
  const Rank ranks = program.mesh.ranks();
  counted_ranks_ = ranks;
  if (repeats_every(program, gpus_per_node_)) {
    counted_ranks_ = gpus_per_node_;
    times_on_fabric_ = ranks / gpus_per_node_;
  }
  gpus_ = static_cast<std::size_t>(counted_ranks_);
  nodes_ = static_cast<std::size_t>((counted_ranks_ + gpus_per_node_ - 1) / gpus_per_node_);
  first_port_ =
      static_cast<std::size_t>(segments_->of_fabric) + nodes_ * static_cast<std::size_t>(segments_->links_of_a_node);
}

void CountedWires::way(Rank from, Rank to, std::vector<Crossed>& crossed) const {
  crossed.assign(1, {port(from, false), from});
  if (from / gpus_per_node_ != to / gpus_per_node_) {
    crossed.push_back({nics(from, false), from});
    crossed.push_back({nics(to, true), to});
  }
  for (const Segments::Crossing& crossing : segments_->way(from, to)) {
    const Rank end = crossing.side == Segments::Side::receiver ? to : from;
    if (crossing.side == Segments::Side::fabric) {
      crossed.push_back({static_cast<std::size_t>(crossing.place), end});
    } else if (crossing.place < segments_->links_of_a_node) {
      const auto before = segments_->of_fabric + node_of(end) * segments_->links_of_a_node;
      crossed.push_back({static_cast<std::size_t>(before + crossing.place), end});
    }
  }
  crossed.push_back({port(to, true), to});
}

std::optional<std::size_t> CountedWires::edge_of(std::size_t wire) const {
  if (wire >= first_port_) {
    return std::nullopt;
  }
  const auto of_fabric = static_cast<std::size_t>(segments_->of_fabric);
  const std::size_t kind =
      wire < of_fabric ? wire : of_fabric + (wire - of_fabric) % static_cast<std::size_t>(segments_->links_of_a_node);
  return static_cast<std::size_t>(segments_->edges[kind]);
}

bool CountedWires::touches_network(const Edge& edge) const {
  return commfuse::is_of_network(topology_.vertices[static_cast<std::size_t>(edge.a)].kind) ||
         commfuse::is_of_network(topology_.vertices[static_cast<std::size_t>(edge.b)].kind);
}

bool CountedWires::is_of_network(std::size_t wire) const {
  const std::optional<std::size_t> edge = edge_of(wire);
  return edge && touches_network(topology_.edges[*edge]);
}

/// Returns the rate of a wire, or its capacity. For a port, sums over the links of its GPU; for the NICs of a node,
/// over the node's links to the fabric.
double CountedWires::rate_or_capacity(std::size_t wire, bool is_capacity) const {
  const auto rate_of = [&](const Edge& edge) { return is_capacity ? edge.capacity.value : edge.rate.value; };
  if (const std::optional<std::size_t> edge = edge_of(wire)) {
    return rate_of(topology_.edges[*edge]);
  }
  const bool is_port = wire < first_port_ + 2 * gpus_;
  const auto gpu = static_cast<int>((wire - first_port_) / 2) % gpus_per_node_;
  double sum = 0.0;
  for (const Edge& edge : topology_.edges) {
    const Vertex& a = topology_.vertices[static_cast<std::size_t>(edge.a)];
    const Vertex& b = topology_.vertices[static_cast<std::size_t>(edge.b)];
    const bool leaves_node = (a.kind == VertexKind::nic && a.node == 0 && b.node < 0) ||
                             (b.kind == VertexKind::nic && b.node == 0 && a.node < 0);
    const bool counts = is_port ? edge.a == gpu || edge.b == gpu : leaves_node;
    sum += counts ? rate_of(edge) : 0.0;
  }
  return sum;
}

std::string CountedWires::name(std::size_t wire) const {
  if (const std::optional<std::size_t> index = edge_of(wire)) {
    const Edge& edge = topology_.edges[*index];
    const auto in_words = [&](int vertex) {
      const VertexKind kind = topology_.vertices[static_cast<std::size_t>(vertex)].kind;
      return kind == VertexKind::gpu ? fmt::format("GPU {}", vertex) : fmt::format("a {}", word_for(kind));
    };
    return fmt::format("the link between {} and {}", in_words(edge.a), in_words(edge.b));
  }
  const char* direction = wire % 2 == first_port_ % 2 ? "out of" : "into";
  return wire < first_port_ + 2 * gpus_
             ? fmt::format("the port {} GPU {}", direction, (wire - first_port_) / 2)
             : fmt::format("the NICs {} node {}", direction, (wire - first_port_ - 2 * gpus_) / 2);
}

namespace {

/// Fields of a sent region by which ops are sorted before their regions are compared.
using BlockKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>;

/// Sorts transfers into sets. Transfers that send the same block form one set (a gather). A transfer whose block no
/// other transfer sends carries a term of a sum; such transfers go into sets that each have at most one transfer per
/// axis and shift.
class SetMaker {
 public:
  explicit SetMaker(const Program& program) : program_(program) {
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      const ExchangeShape* exchange = in_kernel(op);
      if (exchange != nullptr && exchange->sends && exchange->shift != 0 && !is_credit(*exchange)) {
        add_to_equals(op);
      }
    }
  }

  std::vector<KernelSet> sets() {
    std::vector<std::size_t> summed;
    for (const auto& [key, groups] : senders_) {
      for (const std::vector<std::size_t>& ops : groups) {
        if (ops.size() > 1) {
          sets_.push_back({ops, true});
        } else {
          summed.push_back(ops.front());
        }
      }
    }
    std::ranges::sort(summed);
    const std::size_t first = sets_.size();
    for (const std::size_t op : summed) {
      add_summed(op, first);
    }
    return std::move(sets_);
  }

 private:
  [[nodiscard]] const ExchangeShape* in_kernel(std::size_t op) const {
    const bool runs_in_kernel = program_.lanes[program_.ops[op].lane].kind == LaneKind::kernel;
    return runs_in_kernel ? exchange_of(program_, program_.ops[op]) : nullptr;
  }

  [[nodiscard]] const Region& sent(std::size_t op) const {
    return program_.regions_of(program_.inputs_of(program_.ops[op]).front()).front();
  }

  /// Adds the op to the ops that send the same region.
  void add_to_equals(std::size_t op) {
    const Region& region = sent(op);
    auto& groups =
        senders_[{static_cast<std::int32_t>(region.buffer), region.row.constant, region.column.constant, region.rows}];
    const auto equal =
        std::ranges::find_if(groups, [&](const std::vector<std::size_t>& ops) { return sent(ops.front()) == region; });
    if (equal == groups.end()) {
      groups.push_back({op});
    } else {
      equal->push_back(op);
    }
  }

  /// Adds the op to the first set without an op of the same axis and shift: the n-th op of an axis and shift goes to
  /// the n-th set.
  void add_summed(std::size_t op, std::size_t first) {
    const ExchangeShape& exchange = *in_kernel(op);
    const std::size_t set = first + placed_by_shift_[{exchange.axis, exchange.shift}]++;
    if (set == sets_.size()) {
      sets_.push_back({{}, false});
    }
    sets_[set].ops.push_back(op);
  }

  const Program& program_;
  std::map<BlockKey, std::vector<std::vector<std::size_t>>> senders_;
  /// Number of ops that are already in sets, by axis and shift.
  std::map<std::pair<std::int8_t, std::int32_t>, std::size_t> placed_by_shift_;
  std::vector<KernelSet> sets_;
};

}  // namespace

std::vector<KernelSet> kernel_sets_of(const Program& program) { return SetMaker(program).sets(); }

std::vector<double> crossings_of(const Program& program, const CountedWires& wires, const KernelSet& set) {
  const Rank ranks = program.mesh.ranks();
  std::vector<double> crossings(wires.count(), 0.0);
  std::vector<bool> seen(wires.count() *
                         static_cast<std::size_t>(ranks));  // by wire and the owner of the block that it carries
  std::vector<bool> is_of_network;
  for (std::size_t wire = 0; wire < wires.count(); ++wire) {
    is_of_network.push_back(wires.is_of_network(wire));
  }
  std::vector<CountedWires::Crossed> way;
  for (const std::size_t op : set.ops) {
    const auto& exchange = std::get<ExchangeShape>(program.shapes[program.ops[op].shape]);
    for (Rank from = 0; from < wires.counted_ranks(); ++from) {
      const Rank to = target_of(program, exchange, from);
      wires.way(from, to, way);
      for (const auto& [wire, end] : way) {
        // If one node represents all, a block is identified by its owner's rank relative to the node of the wire.
        const Rank whose = (set.gathers ? from : to) - end / wires.counted_ranks() * wires.counted_ranks();
        const std::size_t block =
            wire * static_cast<std::size_t>(ranks) + static_cast<std::size_t>((whose + ranks) % ranks);
        if (!is_of_network[wire] && !seen[block]) {
          seen[block] = true;
          crossings[wire] += 1.0;
        }
      }
    }
  }
  return crossings;
}

}  // namespace commfuse
