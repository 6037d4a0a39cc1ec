// SPDX-License-Identifier: Apache-2.0
// The time of P2P exchanges and of collectives. No host issue cost is in it: the host lane pays that.
#pragma once

#include <cstdint>
#include <optional>

#include "model/hardware/link.h"
#include "model/units.h"

namespace commfuse {

/// One direction of an exchange with one peer: latency + bytes / rate, of the protocol for its size; a small message
/// that waits longer takes no longer than the least large one. Requires bytes >= 0. Throws ConfigError for an exchange
/// over `longest_op_seconds`, as do the collectives below.
Duration p2p_time(const PeerParameters& peer, Bytes bytes);

/// The same for an exchange that shares its wires and has at most the rate `most` there. Where small messages are
/// faster than large ones, `most` counts for large ones, and small ones may be faster by the same factor.
Duration p2p_time(const PeerParameters& peer, Bytes bytes, BytesPerSecond most);

// A ring by one protocol, in one launch:
//
//   time = base + steps x step latency + (wire + ramp) / rate + own / own copy rate
//   ramp = wire x ramp size / (wire + ramp size)
//
// `wire` is what each rank sends and `own` its share, total / ranks, copied from input to output (out of place).
// `total` is the nccl-tests size: for all-gather what every rank ends with, for reduce-scatter and all-reduce what
// every rank starts with, for all-to-all one rank's whole buffer. 0 for one rank. Requires ranks >= 1 and total >= 0.
// Source: NVIDIA/nccl-tests doc/PERFORMANCE.md (wire bytes); NVIDIA/nccl src/graph/tuning.cc (base and latency per ring
// step). Ours are the own copy, which makes few ranks slower, and the ramp: filling the pipeline costs more the larger
// its chunks, up to the largest.
//
// Where a link knows NCCL's kernels, NCCL's own estimates choose the one (model/hardware/nccl_tuning.h) and its
// parameters price it. LL counts a share below `ll_fill` as that much, down to a `ctas`-th of it: so long NCCL takes
// more channels for more bytes, and the time stays (src/enqueue.cc, thread thresholds). In the switch (NVLS), and
// across nodes by a tree:
//
//   time = base + (total + ramp) / rate
//   time = base + log2(nodes) x level latency + (total + ramp) / rate
//
// with a ramp as above, whose size is that of a rank's share times the ranks of a node: NCCL goes round in loops of
// channels x ranks x chunk (src/enqueue.cc, calcCollChunking).
//
// NCCL's estimates and our prices differ, so where NCCL changes kernels a larger message may be priced below a smaller
// one. A message counts at most `measured_step` times the cheapest price E of what NCCL would choose for messages of
// its size and larger ones. On hypothetical links
//
//   time = max(E on these links, time on the file's links / max(1, times as fast))
//
// where E on faster links takes in what NCCL would choose on its way from the file's links to these. So no message
// takes longer on a faster link, and no larger one is faster but by the step that it has on the file's links.
// docs/decisions/0041-the-cheapest-protocol.md says why.
//
// Between ring and tree and their protocols NCCL's estimates choose as well where the network knows NCCL's kernels;
// where it has a tree alone, the tree's fastest protocol counts.

/// The kernel whose price counts to go round so many `passes` times, 2 of an all-reduce: NCCL's choice, or the one of a
/// larger message. Nothing where NCCL's kernels are not known or there is one rank: the ring, or across nodes the
/// fastest tree of an all-reduce.
std::optional<NcclKernel> kernel_taken(const CollectiveParameters& parameters, int ranks, Bytes total, int passes,
                                       int nodes);

/// ranks - 1 steps; wire = total x (ranks - 1) / ranks.
Duration all_gather_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes = 1);
/// ranks - 1 steps; wire = total x (ranks - 1) / ranks.
Duration reduce_scatter_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes = 1);
/// A reduce-scatter and an all-gather in one launch: 2 (ranks - 1) steps; wire = 2 x total x (ranks - 1) / ranks. In
/// the switch where NCCL would; on several nodes by the tree where there is one, or where NCCL would.
Duration all_reduce_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes = 1);
/// ranks - 1 steps, each to another peer; wire = total x (ranks - 1) / ranks. The size of what goes to one peer decides
/// the protocol where the link knows two; a small message takes at most the measured step times the least large one.
Duration all_to_all_time(const CollectiveParameters& parameters, int ranks, Bytes total);

/// How a group is spread over nodes, as many of its GPUs on each but perhaps the last.
struct Spread {
  int gpus_of_a_node = 1;
  const CollectiveParameters* inside = nullptr;  ///< What those of one node see of its wires; null of one alone.
  BytesPerSecond rate_out;  ///< What each sends to other nodes while all do (model/hardware/machine.h, rate_across).
};

/// The same across nodes. Where `across` knows grouped sends and receives, by them. Else what goes to the own node and
/// what goes to others go at once, each over its own wires, and the longer counts; to others with m GPUs on each node
///
///   base + (ranks - 1) x step latency + total x (ranks - m) / ranks / rate out + own / own copy rate
///
/// Requires 1 <= m < ranks and rate_out > 0. No table of an all-to-all across nodes is at hand but DeepEP's, whose GPUs
/// send 43 to 58 GB/s each over NICs of 50 (deepseek-ai/DeepEP, docs/legacy.md).
Duration all_to_all_time(const CollectiveParameters& across, int ranks, Bytes total, const Spread& spread);

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
