// SPDX-License-Identifier: Apache-2.0
// The time of P2P exchanges and of collectives. No host issue cost is in it: the host lane pays that.
#pragma once

#include <cstdint>

#include "model/hardware/link.h"
#include "model/units.h"

namespace commfuse {

/// One direction of an exchange with one peer: latency + bytes / rate. Requires bytes >= 0. Throws ConfigError for an
/// exchange over `longest_op_seconds`, as do the collectives below.
Duration p2p_time(const PeerParameters& peer, Bytes bytes);

/// How many exchanges of a rank may be under way at once, itself counted: on one port, and to the same peer.
struct WireShare {
  std::int32_t port = 1;
  std::int32_t peer = 1;
  friend bool operator==(const WireShare&, const WireShare&) = default;
};

/// The same beside others: at most an equal share of what the peer gets, and of what all peers get together.
Duration p2p_time(const PeerParameters& peer, Bytes bytes, const WireShare& share);

// Collectives run as their ring in one launch:
//
//   time = base + steps x step latency + (wire + sqrt(wire x ramp size)) / rate + own / own copy rate
//
// `wire` is what each rank sends and `own` its share, total / ranks, copied from input to output (out of place).
// `total` is the nccl-tests size: for all-gather what every rank ends with, for reduce-scatter and all-reduce what
// every rank starts with, for all-to-all one rank's whole buffer. 0 for one rank. Requires ranks >= 1 and total >= 0.
// Source: NVIDIA/nccl-tests doc/PERFORMANCE.md (wire bytes); NVIDIA/nccl src/graph/tuning.cc (base and latency per ring
// step). The root and the own copy are ours: bandwidth is reached slowly, and is lower the fewer the ranks.

/// ranks - 1 steps; wire = total x (ranks - 1) / ranks.
Duration all_gather_time(const CollectiveParameters& parameters, int ranks, Bytes total);
/// ranks - 1 steps; wire = total x (ranks - 1) / ranks.
Duration reduce_scatter_time(const CollectiveParameters& parameters, int ranks, Bytes total);
/// A reduce-scatter and an all-gather in one launch: 2 (ranks - 1) steps; wire = 2 x total x (ranks - 1) / ranks.
Duration all_reduce_time(const CollectiveParameters& parameters, int ranks, Bytes total);
/// ranks - 1 steps, each to another peer; wire = total x (ranks - 1) / ranks.
Duration all_to_all_time(const CollectiveParameters& parameters, int ranks, Bytes total);

// The same over the link inside a node; model/hardware/machine.h chooses between that and the network.

inline Duration p2p_time(const Link& link, Bytes bytes) { return p2p_time(link.peer, bytes); }
inline Duration all_gather_time(const Link& link, int ranks, Bytes total) {
  return all_gather_time(link.collective, ranks, total);
}
inline Duration reduce_scatter_time(const Link& link, int ranks, Bytes total) {
  return reduce_scatter_time(link.collective, ranks, total);
}
inline Duration all_reduce_time(const Link& link, int ranks, Bytes total) {
  return all_reduce_time(link.collective, ranks, total);
}
inline Duration all_to_all_time(const Link& link, int ranks, Bytes total) {
  return all_to_all_time(link.collective, ranks, total);
}

}  // namespace commfuse
