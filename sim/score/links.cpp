// SPDX-License-Identifier: Apache-2.0
// Tables of collectives and of single exchanges, in one node and over several.
#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "model/cost/communication.h"
#include "model/fit/holdout.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"

namespace commfuse::score {

namespace {

enum class LinkOp : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all, send_recv };

constexpr std::string_view name_of(LinkOp op) {
  switch (op) {
    case LinkOp::all_gather: return "all_gather";
    case LinkOp::reduce_scatter: return "reduce_scatter";
    case LinkOp::all_reduce: return "all_reduce";
    case LinkOp::all_to_all: return "all_to_all";
    case LinkOp::send_recv: return "send_recv";
  }
  return "";
}

std::optional<LinkOp> op_in_table(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, LinkOp>, 9> words{{{"all_gather", LinkOp::all_gather},
                                                                      {"allgather", LinkOp::all_gather},
                                                                      {"reduce_scatter", LinkOp::reduce_scatter},
                                                                      {"reducescatter", LinkOp::reduce_scatter},
                                                                      {"all_reduce", LinkOp::all_reduce},
                                                                      {"allreduce", LinkOp::all_reduce},
                                                                      {"all_to_all", LinkOp::all_to_all},
                                                                      {"alltoall", LinkOp::all_to_all},
                                                                      {"send_recv", LinkOp::send_recv}}};
  for (const auto& [known, op] : words) {
    if (known == word) {
      return op;
    }
  }
  return std::nullopt;
}

/// Who takes part and how much is sent.
struct Message {
  LinkOp op = LinkOp::all_gather;
  std::int64_t gpus = 1;
  std::int64_t nodes = 1;
  Bytes bytes;
};

/// Of a group that is smaller than its node, where such groups are faster (machine.h).
const CollectiveParameters& collective_of(const Machine& machine, const Message& message) {
  if (message.nodes > 1) {
    return machine.network->collective;
  }
  const bool fits = message.gpus <= machine.gpus_per_node;
  return fits ? collective_over(machine, 0, static_cast<int>(message.gpus)) : machine.link.collective;
}

/// `machine` has all the nodes of the message.
Duration predicted(const Machine& machine, const Message& message) {
  const int gpus = static_cast<int>(message.gpus);
  if (message.op == LinkOp::send_recv) {
    return p2p_time(message.nodes == 1 ? machine.link.peer : machine.network->peer, message.bytes);
  }
  const CollectiveParameters& collective = collective_of(machine, message);
  switch (message.op) {
    case LinkOp::all_gather: return all_gather_time(collective, gpus, message.bytes);
    case LinkOp::reduce_scatter: return reduce_scatter_time(collective, gpus, message.bytes);
    case LinkOp::all_reduce: return all_reduce_time(collective, gpus, message.bytes, static_cast<int>(message.nodes));
    default: return all_to_all_time(collective, gpus, message.bytes);
  }
}

/// From where on bandwidth counts: collectives across nodes wait for the network longer.
std::int64_t large_from(const Message& message) {
  return message.nodes == 1 || message.op == LinkOp::send_recv ? 64 << 10 : 1 << 20;
}

/// Nobody measured what joins the nodes.
bool rests_on_priors(const Machine& machine, const Message& message) {
  if (message.nodes == 1) {
    return false;
  }
  const CollectiveParameters& collective = machine.network->collective;
  const bool climbs = message.op == LinkOp::all_reduce && collective.tree != nullptr;
  const Provenance of_collective = (climbs ? collective.tree->two_nodes_rate : collective.rate).provenance;
  const Provenance source = message.op == LinkOp::send_recv ? machine.network->peer.rate.provenance : of_collective;
  return source == Provenance::prior || source == Provenance::published;
}

/// "all_gather, one node, >= 64 KiB"; "all_reduce, 4 nodes, >= 1 MiB, from priors".
class PartNames {
 public:
  std::string_view of(const Machine& machine, const Message& message) {
    const std::int64_t from = large_from(message);
    const bool large = message.bytes.count >= from;
    const bool priors = rests_on_priors(machine, message);
    const auto [place, added] = names_.try_emplace({message.op, message.nodes, large, priors});
    if (added) {
      place->second =
          fmt::format("{}, {}, {} {}{}", name_of(message.op),
                      message.nodes == 1 ? "one node" : fmt::format("{} nodes", message.nodes), large ? ">=" : "<",
                      from == 64 << 10 ? "64 KiB" : "1 MiB", priors ? ", from priors" : "");
    }
    return place->second;
  }

 private:
  std::map<std::tuple<LinkOp, std::int64_t, bool, bool>, std::string> names_;
};

/// Scores one row whose machine is known; counts it where it cannot be expressed.
void score_message(const Row& row, const Message& message, double measured_us, const FoundMachine& node, bool back,
                   std::string_view prose, Context& context, PartNames& parts, Tally& tally) {
  if (node.machine == nullptr) {
    tally.skip(node.why_not);
    return;
  }
  const FoundMachine found = context.machines.over_nodes(*node.machine, static_cast<int>(message.nodes), prose);
  if (found.machine == nullptr) {
    tally.skip(found.why_not);
  } else if (message.gpus > message.nodes * node.machine->gpus_per_node) {
    tally.skip(fmt::format("{} has fewer GPUs than take part", found.machine->name));
  } else if (message.gpus % message.nodes != 0) {
    tally.skip("the nodes have different numbers of GPUs");
  } else if (message.bytes.count == 0 || message.gpus == 1) {
    tally.skip("nothing is sent");
  } else if (message.op == LinkOp::send_recv && message.gpus != 2) {
    tally.skip("more than two GPUs exchange messages, and the table does not say how");
  } else {
    const std::string_view part = parts.of(*found.machine, message);
    tally.score(row, *found.machine, back,
                {{measured_us, to_microseconds(predicted(*found.machine, message)), std::span(&part, 1)}});
  }
}

}  // namespace

void score_collectives(const Table& table, Context& context, Tally& tally) {
  const Column op = table.column("op");
  const Column gpus = table.column("ngpus");
  const Column bytes = table.column("bytes");
  const Column time = table.column("time_us");
  const Column nodes = table.column("nodes");
  const Column hw = table.column("hw");
  const FoundMachine whole_table = hw.exists() ? FoundMachine{} : machine_of_table(table, context);
  MachineColumn machines(context.machines);
  PartNames parts;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    Message message{.gpus = row.count(gpus, most_gpus), .bytes = {row.size(bytes)}};
    const double measured = row.amount(time);
    const FoundMachine& node = hw.exists() ? machines.of(row.text(hw)) : whole_table;
    const std::int64_t in_one = node.machine == nullptr ? message.gpus : node.machine->gpus_per_node;
    message.nodes = row.has(nodes) ? row.count(nodes, most_gpus) : (message.gpus + in_one - 1) / in_one;
    const std::string said(hw.exists()               ? row.text(hw)
                           : node.machine == nullptr ? std::string_view()
                                                     : node.machine->name);
    const bool back = held_back(link_group("collective", said, row.text(op), message.bytes.count));
    if (!tally.takes(row, back)) {
      continue;
    }
    if (const std::optional<LinkOp> known = op_in_table(row.text(op))) {
      message.op = *known;
      score_message(row, message, measured, node, back, table.comment("hardware"), context, parts, tally);
    } else {
      tally.skip(fmt::format("the model has no {}", row.text(op)));
    }
  }
}

void score_bus_rates(const Table& table, Context& context, Tally& tally) {
  const Column hw = table.column("hw");
  const Column op = table.column("op");
  const Column gpus = table.column("ngpus");
  const Column bytes = table.column("bytes");
  const Column rate = table.column("busbw_GBs");
  MachineColumn machines(context.machines);
  PartNames parts;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    Message message{.gpus = row.count(gpus, most_gpus), .bytes = {row.size(bytes)}};
    const double gigabytes_per_second = row.amount(rate);
    const bool back = held_back(link_group("collective_rate", row.text(hw), row.text(op), message.bytes.count));
    if (!tally.takes(row, back)) {
      continue;
    }
    const std::optional<LinkOp> known = op_in_table(row.text(op));
    if (!known) {
      tally.skip(fmt::format("the model has no {}", row.text(op)));
      continue;
    }
    message.op = *known;
    // What nccl-tests calls bus bandwidth: doc/PERFORMANCE.md there.
    const double ranks = static_cast<double>(message.gpus);
    const double wire = static_cast<double>(message.bytes.count) * (ranks - 1.0) / ranks *
                        (message.op == LinkOp::all_reduce ? 2.0 : 1.0);
    score_message(row, message, wire / gigabytes_per_second / 1e3, machines.of(row.text(hw)), back, {}, context, parts,
                  tally);
  }
}

void score_exchanges(const Table& table, Context& context, Tally& tally) {
  const Column device = table.column("device");
  const Column op = table.column("op");
  const Column gpus = table.column("ngpus");
  const Column in_a_node = table.column("devices_per_node");
  const Column bytes = table.column("bytes");
  const Column time = table.column("median_us");
  MachineColumn machines(context.machines);
  PartNames parts;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    Message message{.gpus = row.count(gpus, most_gpus), .bytes = {row.size(bytes)}};
    const std::int64_t share = row.count(in_a_node, most_gpus);
    message.nodes = (message.gpus + share - 1) / share;
    const double measured = row.amount(time);
    const bool back = held_back(link_group("p2p", row.text(device), row.text(op), message.bytes.count));
    if (!tally.takes(row, back)) {
      continue;
    }
    if (const std::optional<LinkOp> known = op_in_table(row.text(op))) {
      message.op = *known;
      score_message(row, message, measured, machines.of(row.text(device)), back, row.text(device), context, parts,
                    tally);
    } else {
      tally.skip(fmt::format("the model has no {}", row.text(op)));
    }
  }
}

}  // namespace commfuse::score
