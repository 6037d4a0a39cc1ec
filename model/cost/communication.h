// SPDX-License-Identifier: Apache-2.0
// Times of P2P exchanges and of collectives, the algorithm that sets each time, and the parameters on which each time
// depends. The times exclude the host's time to issue a call, which the host lane spends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "model/hardware/link.h"
#include "model/hardware/parameter.h"
#include "model/program/program.h"
#include "model/units.h"

namespace commfuse {

/// Returns the time of one direction of an exchange with one peer: latency + bytes / rate, with the protocol for its
/// size. A small message takes no longer than the smallest large one, unless the protocol for small messages has the
/// lower latency: then its fitted time stays. Requires bytes >= 0. Throws ConfigError for an exchange over
/// `longest_op_seconds`, as do the collectives below.
Duration p2p_time(const PeerParameters& peer, Bytes bytes);

/// Returns the time of an exchange that shares its wires and gets at most the rate `limit` on them. `limit` applies to
/// large messages; if small messages have a higher rate, their limit is higher by the same ratio.
Duration p2p_time(const PeerParameters& peer, Bytes bytes, BytesPerSecond limit);

// A ring by one protocol, in one launch:
//
//   time = base + steps x step latency + forwards x forward latency + (wire + ramp) / rate + own / own rate
//          + channel latency x (1 - 1 / channels)
//   ramp = wire x ramp size / (wire + ramp size)
//
// `steps` is ranks - 1, for an all-reduce twice that. `forwards` counts the steps in which a rank stores a finished
// block and passes it on: ranks - 2 for all-gather and all-reduce, 0 otherwise. `wire` is the bytes that each rank
// sends, and `own` is its share, total / ranks. All-gathers and all-to-alls copy the share from input to output (out of
// place); reduce-scatters and all-reduces add it to the bytes that arrive. `own rate` is own_sum_rate for additions, if
// the link has one, and otherwise own_copy_rate. `total` is the nccl-tests size: for all-gather what every rank ends
// with, for reduce-scatter and all-reduce what every rank starts with, for all-to-all one rank's whole buffer. With one
// rank the time is 0. Requires ranks >= 1, total >= 0. Source: NVIDIA/nccl-tests doc/PERFORMANCE.md (wire bytes);
// NVIDIA/nccl src/graph/tuning.cc (base and latency per ring step). This project adds the own copy, which makes groups
// of few ranks slower, and the ramp: the time to fill the pipeline grows with the chunks, up to the largest chunk.
//
// If a ring has a fill size, a share between a `ctas`-th of it and the whole is priced as the fill size: in that range
// NCCL uses more channels for more bytes (src/enqueue.cc, thread thresholds), and the time hardly changes. In this
// range `channels` grows from 1 to `ctas`; each additional channel must be started and waited for. With LL, larger
// shares are priced as they are. With other protocols the transition is smooth: (share^4 + fill size^4)^(1/4) counts.
//
// If a link has parameters of NCCL's kernels, NCCL's own estimates choose the kernel (model/hardware/nccl_tuning.h) and
// its parameters price it. The times in the switch (NVLS), and across nodes by a tree, are
//
//   time = base + (total + ramp) / rate
//   time = base + log2(nodes) x level latency + (total + ramp) / rate
//
// with a ramp as above, whose size is that of a rank's share times the ranks of a node, because NCCL works in loops of
// channels x ranks x chunk (src/enqueue.cc, calcCollChunking). Trees with LL or LL128 have no ramp.
//
// NCCL's estimates and this model's prices differ, so a larger message may be priced below a smaller one where NCCL
// changes kernels. Therefore a message costs at most `measured_step` times E, the cheapest price of NCCL's choices for
// messages of its size and larger ones. On hypothetical links
//
//   time = max(E on these links, time on the file's links / max(1, speed relative to the file's links))
//
// where E on faster links includes NCCL's choices for all speeds between the file's links and the faster ones. So no
// message takes longer on a faster link, and a larger message is faster by no more than the step that it has on the
// file's links. docs/decisions/0041-the-cheapest-protocol.md gives the reasons.
//
// Serving frameworks have their own all-reduce kernels inside a node, in which ranks read each other's memory. In one
// shot, each rank reads the whole tensors of all other ranks. In two shots, it reads their values of its own part, and
// then the parts that they have summed. The faster of the two is used; two ranks always use one shot, because two shots
// would read as many bytes and wait once more:
//
//   time = one-shot latency + (ranks - 1) x one-shot step + (ranks - 1) x total / one-shot rate
//   time = two-shot latency + (ranks - 1) x two-shot step + 2 (ranks - 1) / ranks x total / two-shot rate
//
// or NCCL's time if that is shorter or the tensor is larger than `up_to`. Source: vllm-project/vllm,
// csrc/custom_all_reduce.cuh; NVIDIA/TensorRT-LLM, allreducePlugin.cpp. Above two ranks, frameworks choose by their own
// limits of size and ranks, which are close to the size at which both times are equal.
//
// NCCL's estimates also choose between ring and tree and their protocols if the network has parameters of NCCL's
// kernels; if it has only a tree, the tree's fastest protocol is used.

/// Returns the kernel that sets the price: NCCL's choice, or the choice for a larger message. Returns nullopt when
/// NCCL's kernels are unknown or there is one rank; then the ring sets the price, or for an all-reduce across nodes the
/// fastest tree.
std::optional<NcclKernel> kernel_taken(const CollectiveParameters& parameters, const NcclTask& task);

/// Returns the time of an all-gather by the ring or NCCL's choice of kernels, whatever other algorithms the link has.
/// All collectives are classified by this time (priced_shape.h).
Duration ring_gather_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes = 1);

/// Returns the time of an all-gather: ranks - 1 steps; wire = total x (ranks - 1) / ranks.
Duration all_gather_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes = 1);
/// Returns the time of a reduce-scatter: ranks - 1 steps; wire = total x (ranks - 1) / ranks.
Duration reduce_scatter_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes = 1);
/// Returns the time of a reduce-scatter and an all-gather in one launch: 2 (ranks - 1) steps; wire = 2 x total x (ranks
/// - 1) / ranks. It runs in the switch when NCCL would choose NVLS, and on several nodes by the tree if only a tree is
/// known or NCCL would choose it. Inside a node, the framework's kernels that all_reduce_kernel names are used where
/// they are faster.
Duration all_reduce_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes = 1);
/// Returns the time of an all-to-all: ranks - 1 steps, each to a different peer; wire = total x (ranks - 1) / ranks. If
/// the link has two protocols, the bytes per peer choose one; a small message takes at most `measured_step` times as
/// long as the smallest large one.
Duration all_to_all_time(const CollectiveParameters& parameters, int ranks, Bytes total);

/// Layout of a group over nodes: the same number of its GPUs on each node, perhaps except the last.
struct Spread {
  int gpus_of_a_node = 1;
  /// Parameters inside a node for the group's GPUs on one node; null when there is one GPU per node.
  const CollectiveParameters* inside = nullptr;
  BytesPerSecond rate_out;  ///< Rate of each GPU to other nodes while all send (model/hardware/machine.h, rate_across).
};

/// Returns the time of an all-to-all across nodes. If `across` has parameters of grouped sends and receives, these
/// determine it. Otherwise data for the rank's own node and for other nodes move simultaneously, each over its own
/// wires, and the longer time counts. The time to other nodes, with m GPUs on each node, is
///
///   base + (ranks - 1) x step latency + total x (ranks - m) / ranks / rate out + own / own copy rate
///
/// Requires 1 <= m < ranks and rate_out > 0. The only available table of an all-to-all across nodes is DeepEP's, whose
/// GPUs each send 43 to 58 GB/s over NICs of 50 GB/s (deepseek-ai/DeepEP, docs/legacy.md).
Duration all_to_all_time(const CollectiveParameters& across, int ranks, Bytes total, const Spread& spread);

/// Returns the algorithm and the protocol that set the time of a collective, in words, such as "NCCL's ring with LL".
/// Has the requirements of the functions above.
std::string algorithm_in_words(const CollectiveParameters& parameters, CollectiveKind kind, int ranks, Bytes total,
                               int nodes = 1);

/// Marks in `marked` the provenances of the parameters of all kernels that are used at some message size. `spreads` has
/// the layouts over which an all-to-all across nodes is spread.
void mark_collective(const CollectiveParameters& parameters, CollectiveKind kind, int ranks,
                     std::span<const Spread> spreads, int nodes, Provenances& marked);

// Overloads for the link inside a node; model/hardware/machine.h chooses between it and the network.

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
