// SPDX-License-Identifier: Apache-2.0
// Prices attention whose sequences are shared by context ranks: keys and values gathered before the kernel, or passed
// around a ring while it runs block by block.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "model/cost/attention.h"
#include "model/cost/group.h"
#include "sim/step/exchange.h"
#include "sim/step/group_link.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

/// Returns true if context ranks pass blocks around a ring. A layer whose attention has a window or selects keys
/// gathers instead, because TransformerEngine's ring covers only full attention.
bool LayerCost::passes_blocks() const {
  return plan_.context > 1 && plan_.context_exchange == ContextExchange::ring && walked().keys == 0;
}

/// Returns the bytes of the keys and values, or of their gradients, of the tokens of one context rank.
Bytes LayerCost::context_block() const {
  const std::int64_t columns = shape_->kv_heads * (model_.head_dim + model_.value_dim()) / plan_.tensor;
  return Bytes{width * tokens_ * columns};
}

/// Gathers the keys and values of the sequence's other tokens before attention, or scatters their gradients after it.
void LayerCost::context_exchange(Stream& stream, Direction direction) const {
  if (plan_.context == 1 || passes_blocks()) {
    return;
  }
  const Group group = group_at({.stride = plan_.tensor * plan_.ulysses, .ranks = plan_.context});
  const Bytes exchanged{plan_.context * context_block().count};
  collective(stream, direction == Direction::forward ? group.all_gather(exchanged) : group.reduce_scatter(exchanged));
}

/// Returns the time in which all context ranks send this many bytes to their neighbours; the slowest pair of all groups
/// determines it. Groups that begin a whole number of nodes later take the same time.
Duration LayerCost::ring_transfer(Bytes bytes) const {
  StageSend send{.stages = plan_.context, .gpus_per_stage = plan_.tensor * plan_.ulysses, .bytes = bytes};
  const std::int64_t group = send.stages * send.gpus_per_stage;
  const std::int64_t gpus = std::min(plan_.gpus(), std::lcm(group, std::int64_t{machine_.gpus_per_node}));
  Duration slowest{};
  for (; send.first_gpu < gpus; send.first_gpu += group) {
    for (std::int64_t rank = 0; rank < plan_.context; ++rank) {
      slowest = std::max(slowest, send_time(machine_, send, rank));
    }
  }
  return times(slowest_of(2, point_.communication_sigma), slowest);
}

/// Adds the steps of TransformerEngine's ring (context_parallel.py, AttnFuncWithCPAndKVP2P). A rank has two pieces of
/// every sequence, one from each half, so all steps have the same number of scores. In the first step the keys are the
/// rank's own, and the causal mask hides half of the scores. Later steps have no mask: all queries meet half of the
/// keys, or half of the queries meet all keys. A step ends when its kernel has ended and the block of the next step has
/// arrived. The last rank is priced, because it merges the outputs of all its queries in every later step.
void LayerCost::ring_core(Stream& stream, const AttentionSize& whole, Direction direction) const {
  const bool forward = direction == Direction::forward;
  const std::int64_t seq = plan_.seq / plan_.context;
  const bool leaves_node = group_at({.stride = plan_.tensor * plan_.ulysses, .ranks = plan_.context}).nodes > 1;
  const PeerParameters& peer = leaves_node ? machine_.network->peer : machine_.link.peer;
  const int free_sms = std::max(1, sms_ - peer.ctas.value);
  const auto kernel_time = [&](bool first, int sms) {
    AttentionSize size = whole;
    size.seq = seq;
    size.causal = first;
    const double share = mean_keys(model_, kind_, seq) / static_cast<double>(seq);
    const QueryRows rows{.queries = seq, .keys = first ? seq : seq / 2, .share = share};
    const Duration time = fused(attention_time(machine_.accelerator, size, rows, sms));
    return slowed(forward ? time : times(fused_backward, time));
  };
  const PassTime first{kernel_time(true, sms_), kernel_time(true, free_sms)};
  const PassTime later{kernel_time(false, sms_), kernel_time(false, free_sms)};
  const Duration one_block = ring_transfer(context_block());
  // In the backward pass, the gradients of keys and values follow one step behind their block.
  const Duration two_blocks = forward ? one_block : ring_transfer(Bytes{2 * context_block().count});
  const std::int64_t last = plan_.context - 1;
  for (std::int64_t step = 0; step <= last; ++step) {
    const Duration transfer = forward && step == last               ? Duration::zero()
                              : !forward && 0 < step && step < last ? two_blocks
                                                                    : one_block;
    collective(stream, with_exchange(step == 0 ? first : later, transfer));
    if (transfer > Duration::zero()) {
      stream.add_host(point_.framework.issue.value);
    }
    if (forward) {
      merge_statistics(stream, step);
    } else {
      sum_gradients(stream, step);
    }
  }
  if (forward) {
    merge_outputs(stream);
  }
}

/// Combines the sums of exponentials of two steps, 32 bits for each query and head.
void LayerCost::merge_statistics(Stream& stream, std::int64_t step) const {
  if (step > 0) {
    const std::int64_t statistics = tokens_ * attended_columns() / model_.value_dim();
    moved_bytes(stream, 3.0 * 4.0 * static_cast<double>(statistics));
  }
}

/// Rescales the output of the first step, and adds the rescaled output of every other step to it.
void LayerCost::merge_outputs(Stream& stream) const {
  const std::int64_t elements = tokens_ * attended_columns();
  moved(stream, 2 * elements);
  for (std::int64_t step = 1; step < plan_.context; ++step) {
    moved(stream, 3 * elements);
  }
}

/// Copies the gradients of the first step, and adds the gradients of the other steps. In each other step, some ranks
/// add the gradients of all queries and of half of the keys and values; the rest add the gradients of half of the
/// queries and of all keys and values. The slower ranks determine the time.
void LayerCost::sum_gradients(Stream& stream, std::int64_t step) const {
  const std::int64_t queries = tokens_ * attended_columns();
  const std::int64_t keys = context_block().count / width;
  if (step == 0) {
    moved(stream, 2 * queries);
    moved(stream, 2 * keys);
  } else if (queries >= keys) {
    moved(stream, 3 * queries);
    moved(stream, 3 * keys / 2);
  } else {
    moved(stream, 3 * queries / 2);
    moved(stream, 3 * keys);
  }
}

}  // namespace commfuse
