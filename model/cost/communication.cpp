// SPDX-License-Identifier: Apache-2.0
#include "model/cost/communication.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "model/check.h"
#include "model/cost/op_time.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

void require_sizes(int ranks, Bytes total) {
  check(ranks >= 1 && total.count >= 0, "a collective has at least one rank and no negative size");
}

/// What filling the pipeline costs, in bytes at the rate; `shares` times the size at most.
double ramp(double wire, const Parameter<Bytes>& size, int shares = 1) {
  const double most = static_cast<double>(size.value.count) * shares;
  return most > 0.0 ? wire * most / (wire + most) : 0.0;
}

/// `own` bytes a rank has of the whole; `steps` times that are its wire bytes.
Duration by_protocol(const ProtocolParameters& protocol, int steps, double own) {
  const double wire = own * steps;
  const double moving =
      (wire + ramp(wire, protocol.ramp_size)) / protocol.rate.value.value + own / protocol.own_copy_rate.value.value;
  return protocol.base_latency.value + steps * protocol.step_latency.value + op_time(moving, "a collective");
}

Duration in_the_switch(const SwitchParameters& nvls, int ranks, double total) {
  const double moving = (total + ramp(total, nvls.ramp_size_per_rank, ranks)) / nvls.rate.value.value;
  return nvls.base_latency.value + op_time(moving, "a collective");
}

/// Seconds.
double tree_seconds(const TreeProtocol& tree, double levels, double moving) {
  return to_seconds(tree.base_latency.value) + levels * to_seconds(tree.level_latency.value) + moving;
}

/// Who climbs: the ranks of a node together, each with its share.
struct Climb {
  int nodes = 2;
  int ranks_per_node = 1;
  double total = 0.0;  ///< Bytes of the tensor.
};

/// By Simple.
double simple_tree_seconds(const TreeParameters& tree, const Climb& climb) {
  const double filled = climb.total + ramp(climb.total, tree.ramp_size_per_rank, climb.ranks_per_node);
  return tree_seconds(tree, math::log2(climb.nodes), filled / rate_over(tree, climb.nodes).value.value);
}

/// By another protocol, or Simple where that is not known.
double other_tree_seconds(const TreeParameters& tree, const std::optional<TreeProtocol>& protocol, const Climb& climb) {
  return protocol ? tree_seconds(*protocol, math::log2(climb.nodes),
                                 climb.total / rate_over(*protocol, climb.nodes).value.value)
                  : simple_tree_seconds(tree, climb);
}

Duration by_fastest_tree(const TreeParameters& tree, const Climb& climb) {
  return op_time(std::min({simple_tree_seconds(tree, climb), other_tree_seconds(tree, tree.ll, climb),
                           other_tree_seconds(tree, tree.ll128, climb)}),
                 "a collective");
}

Duration by_tree(const TreeParameters& tree, NcclKernel kernel, const Climb& climb) {
  const double seconds = kernel == NcclKernel::tree_ll      ? other_tree_seconds(tree, tree.ll, climb)
                         : kernel == NcclKernel::tree_ll128 ? other_tree_seconds(tree, tree.ll128, climb)
                                                            : simple_tree_seconds(tree, climb);
  return op_time(seconds, "a collective");
}

/// By one of NCCL's kernels.
Duration by_kernel(const CollectiveParameters& parameters, NcclKernel kernel, const NcclTask& task) {
  const int steps = task.passes * (task.ranks - 1);
  const int ranks = task.ranks;
  const int nodes = task.nodes;
  const double bytes = task.total;
  const double own = bytes / ranks;
  const NcclKernels* nccl = parameters.nccl.get();
  switch (kernel) {
    case NcclKernel::ll: {
      const double full = std::min(static_cast<double>(nccl->ll_fill.value.count), own * parameters.ctas.value);
      return by_protocol(nccl->ll, steps, std::max(own, full));
    }
    case NcclKernel::ll128: return by_protocol(nccl->ll128 ? *nccl->ll128 : parameters, steps, own);
    case NcclKernel::simple: return by_protocol(parameters, steps, own);
    case NcclKernel::nvls:
      return nccl->nvls ? in_the_switch(*nccl->nvls, ranks, bytes) : by_protocol(parameters, steps, own);
    case NcclKernel::tree_ll:
    case NcclKernel::tree_ll128:
    case NcclKernel::tree_simple:
      check(parameters.tree != nullptr, "who tells NCCL of a tree says what it takes");
      return by_tree(*parameters.tree, kernel, {nodes, ranks / nodes, bytes});
  }
  return {};
}

/// `passes`: how often the ring goes round; 2 for all-reduce.
Duration ring_time(const CollectiveParameters& parameters, int ranks, Bytes total, int passes, int nodes = 1) {
  require_sizes(ranks, total);
  if (ranks == 1) {
    return Duration{0};
  }
  const auto bytes = static_cast<double>(total.count);
  const std::optional<NcclKernel> kernel = kernel_taken(parameters, ranks, total, passes, nodes);
  return kernel ? by_kernel(parameters, *kernel, {.ranks = ranks, .passes = passes, .total = bytes, .nodes = nodes})
                : by_protocol(parameters, passes * (ranks - 1), bytes / ranks);
}

}  // namespace

std::optional<NcclKernel> kernel_taken(const CollectiveParameters& parameters, int ranks, Bytes total, int passes,
                                       int nodes) {
  if (parameters.nccl == nullptr || ranks == 1) {
    return std::nullopt;
  }
  const NcclTuning& tuning = parameters.nccl->tuning;
  const NcclTask task{.ranks = ranks, .passes = passes, .total = static_cast<double>(total.count), .nodes = nodes};
  if (tuning.hypothetical == 1.0) {
    return nccl_choice(tuning, task);
  }
  const std::vector<NcclKernel> choices = nccl_choices(tuning, task);
  return *std::ranges::min_element(choices, {}, [&](NcclKernel one) { return by_kernel(parameters, one, task); });
}

Duration p2p_time(const PeerParameters& peer, Bytes bytes) {
  return p2p_time(peer, bytes, {std::numeric_limits<double>::infinity()});
}

Duration p2p_time(const PeerParameters& peer, Bytes bytes, BytesPerSecond most) {
  check(bytes.count >= 0, "an exchange has no negative size");
  const bool is_small = peer.small && bytes <= peer.small->up_to.value;
  const Duration latency = (is_small ? peer.small->latency : peer.latency).value;
  const double alone = (is_small ? peer.small->rate : peer.rate).value.value;
  const double rate = std::min(alone, most.value * std::max(1.0, alone / peer.rate.value.value));
  return latency + op_time(static_cast<double>(bytes.count) / rate, "an exchange with one peer");
}

Duration all_gather_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes) {
  return ring_time(parameters, ranks, total, 1, nodes);
}

Duration reduce_scatter_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes) {
  return ring_time(parameters, ranks, total, 1, nodes);
}

Duration all_reduce_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes) {
  if (nodes > 1 && parameters.tree != nullptr && !nccl_chooses_trees(parameters)) {
    require_sizes(ranks, total);
    return by_fastest_tree(*parameters.tree, {nodes, ranks / nodes, static_cast<double>(total.count)});
  }
  return ring_time(parameters, ranks, total, 2, nodes);
}

Duration all_to_all_time(const CollectiveParameters& parameters, int ranks, Bytes total) {
  require_sizes(ranks, total);
  const AllToAllParameters* direct = parameters.all_to_all.get();
  if (direct == nullptr || ranks == 1) {
    return ring_time(parameters, ranks, total, 1);
  }
  const double own = static_cast<double>(total.count) / ranks;
  const bool is_small = own <= static_cast<double>(direct->small_up_to.value.count);
  return by_protocol(is_small ? direct->small : direct->large, ranks - 1, own);
}

Duration all_to_all_time(const CollectiveParameters& across, int ranks, Bytes total, const Spread& spread) {
  require_sizes(ranks, total);
  if (across.all_to_all != nullptr) {
    return all_to_all_time(across, ranks, total);
  }
  const int near = spread.gpus_of_a_node;
  check(near >= 1 && near < ranks && spread.rate_out.value > 0.0, "a group across nodes sends to others");
  const double own = static_cast<double>(total.count) / ranks;
  const double moving = own * (ranks - near) / spread.rate_out.value + own / across.own_copy_rate.value.value;
  const Duration out = across.base_latency.value + (ranks - 1) * across.step_latency.value +
                       op_time(moving, "an all-to-all across nodes");
  if (spread.inside == nullptr) {
    return out;
  }
  return std::max(out, all_to_all_time(*spread.inside, near, Bytes{total.count / ranks * near}));
}

}  // namespace commfuse
