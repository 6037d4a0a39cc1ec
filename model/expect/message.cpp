// SPDX-License-Identifier: Apache-2.0
#include "model/expect/message.h"

#include <algorithm>
#include <utility>

#include "model/check.h"
#include "model/cost/communication.h"

namespace commfuse {

namespace {

PricedKind priced_kind(LinkOp op) {
  switch (op) {
    case LinkOp::all_gather: return PricedKind::all_gather;
    case LinkOp::reduce_scatter: return PricedKind::reduce_scatter;
    case LinkOp::all_reduce: return PricedKind::all_reduce;
    case LinkOp::all_to_all: return PricedKind::all_to_all;
    case LinkOp::send_recv: return PricedKind::exchange;
  }
  return PricedKind::exchange;
}

/// Returns the time of an all-to-all over the first GPUs of every node while no other group uses the network.
Duration all_to_all_across(const Machine& machine, const Message& message) {
  const int of_a_node = static_cast<int>(message.gpus / message.nodes);
  const Spread spread{.gpus_of_a_node = of_a_node,
                      .inside = of_a_node == 1 ? nullptr : &collective_over(machine, 0, of_a_node),
                      .rate_out = rate_across(machine, {.of_group = of_a_node, .of_node = of_a_node})};
  return all_to_all_time(collective_across(machine, of_a_node), static_cast<int>(message.gpus), message.bytes, spread);
}

}  // namespace

std::string_view name_of(LinkOp op) {
  switch (op) {
    case LinkOp::all_gather: return "all_gather";
    case LinkOp::reduce_scatter: return "reduce_scatter";
    case LinkOp::all_reduce: return "all_reduce";
    case LinkOp::all_to_all: return "all_to_all";
    case LinkOp::send_recv: return "send_recv";
  }
  return "";
}

std::optional<CollectiveKind> collective_kind(LinkOp op) {
  switch (op) {
    case LinkOp::all_gather: return CollectiveKind::all_gather;
    case LinkOp::reduce_scatter: return CollectiveKind::reduce_scatter;
    case LinkOp::all_reduce: return CollectiveKind::all_reduce;
    case LinkOp::all_to_all: return CollectiveKind::all_to_all;
    case LinkOp::send_recv: return std::nullopt;
  }
  return std::nullopt;
}

std::optional<LinkOp> link_op_named(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, LinkOp>, 10> words{{{"all_gather", LinkOp::all_gather},
                                                                       {"allgather", LinkOp::all_gather},
                                                                       {"reduce_scatter", LinkOp::reduce_scatter},
                                                                       {"reducescatter", LinkOp::reduce_scatter},
                                                                       {"all_reduce", LinkOp::all_reduce},
                                                                       {"allreduce", LinkOp::all_reduce},
                                                                       {"all_to_all", LinkOp::all_to_all},
                                                                       {"alltoall", LinkOp::all_to_all},
                                                                       {"send_recv", LinkOp::send_recv},
                                                                       {"sendrecv", LinkOp::send_recv}}};
  const auto* const entry =
      std::find_if(words.begin(), words.end(), [&](const auto& known) { return known.first == word; });
  return entry == words.end() ? std::nullopt : std::optional(entry->second);
}

const CollectiveParameters& collective_of(const Machine& machine, const Message& message) {
  if (message.nodes > 1) {
    return collective_across(machine, static_cast<int>(message.gpus / message.nodes));
  }
  const bool fits = message.gpus <= machine.gpus_per_node;
  return fits ? collective_over(machine, 0, static_cast<int>(message.gpus)) : machine.link.collective;
}

Duration message_time(const Machine& machine, const Message& message) {
  const int gpus = static_cast<int>(message.gpus);
  if (message.op == LinkOp::send_recv) {
    return p2p_time(message.nodes == 1 ? machine.link.peer : machine.network->peer, message.bytes);
  }
  const CollectiveParameters& collective = collective_of(machine, message);
  const int nodes = static_cast<int>(message.nodes);
  switch (message.op) {
    case LinkOp::all_gather: return all_gather_time(collective, gpus, message.bytes, nodes);
    case LinkOp::reduce_scatter: return reduce_scatter_time(collective, gpus, message.bytes, nodes);
    case LinkOp::all_reduce: return all_reduce_time(collective, gpus, message.bytes, nodes);
    default: return nodes == 1 ? all_to_all_time(collective, gpus, message.bytes) : all_to_all_across(machine, message);
  }
}

double bus_factor(LinkOp op, std::int64_t gpus) {
  check(gpus >= 2, "a message joins two GPUs");
  const auto ranks = static_cast<double>(gpus);
  return op == LinkOp::send_recv ? 1.0 : (op == LinkOp::all_reduce ? 2.0 : 1.0) * (ranks - 1.0) / ranks;
}

PricedShape shape_of(const Message& message) {
  PricedShape shape{.kind = priced_kind(message.op), .nodes = static_cast<int>(message.nodes)};
  shape.size[static_cast<std::size_t>(FitSize::bytes)] = message.bytes.count;
  shape.size[static_cast<std::size_t>(FitSize::ranks)] = message.op == LinkOp::send_recv ? 0 : message.gpus;
  return shape;
}

}  // namespace commfuse
