// SPDX-License-Identifier: Apache-2.0
// A collective, or an exchange with one peer, as tables of measurements, logs of nccl-tests and expectations describe
// it, and the time that it takes on a machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/cost/priced_shape.h"
#include "model/hardware/machine.h"
#include "model/units.h"

namespace commfuse {

enum class LinkOp : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all, send_recv };

inline constexpr std::array all_link_ops{LinkOp::all_gather, LinkOp::reduce_scatter, LinkOp::all_reduce,
                                         LinkOp::all_to_all, LinkOp::send_recv};

std::string_view name_of(LinkOp op);

/// Returns nullopt for send_recv, which is not a collective.
std::optional<CollectiveKind> collective_kind(LinkOp op);

/// Returns this project's op for allgather, alltoall, sendrecv and other names that tables and nccl-tests use; nullopt
/// for other operations.
std::optional<LinkOp> link_op_named(std::string_view word);

/// Participants and amount of data of a collective or an exchange.
struct Message {
  LinkOp op = LinkOp::all_gather;
  std::int64_t gpus = 1;
  std::int64_t nodes = 1;
  Bytes bytes;  ///< the nccl-tests size
};

/// Returns the parameters of a collective over the message's GPUs: in one node, for a group of `gpus`, or
/// `link.collective` if the machine's nodes are smaller; across nodes, for `gpus / nodes` GPUs on each node, a group
/// that may reach only some of the NICs (machine.h). Requires `machine` to have a network if the message has several
/// nodes.
const CollectiveParameters& collective_of(const Machine& machine, const Message& message);

/// Returns the time as nccl-tests measures it. Requires that the machine has at least `nodes` nodes, and that `gpus` is
/// divisible by `nodes`.
Duration message_time(const Machine& machine, const Message& message);

/// Returns the bus bandwidth of nccl-tests divided by its algorithm bandwidth (NVIDIA/nccl-tests, doc/PERFORMANCE.md).
/// Requires gpus >= 2.
double bus_factor(LinkOp op, std::int64_t gpus);

PricedShape shape_of(const Message& message);

}  // namespace commfuse
