// SPDX-License-Identifier: Apache-2.0
#include "model/cost/communication.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

#include <fmt/format.h>

#include "model/check.h"
#include "model/cost/custom_all_reduce.h"
#include "model/cost/op_time.h"
#include "model/hardware/described.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

void require_sizes(int ranks, Bytes total) {
  check(ranks >= 1 && total.count >= 0, "a collective has at least one rank and no negative size");
}

/// Returns the cost of filling the pipeline, as bytes at the link's rate; at most `shares` x `size`.
double ramp(double wire, const Parameter<Bytes>& size, int shares = 1) {
  const double limit = static_cast<double>(size.value.count) * shares;
  return limit > 0.0 ? wire * limit / (wire + limit) : 0.0;
}

// In the functions below, `links` is the speed of the parameters' wires relative to the wires that are priced.

/// `own_bytes` is a rank's share of the whole in bytes, which the kernel copies or adds at `own_rate`; the wire carries
/// `steps` such shares.
Duration by_protocol(const ProtocolParameters& protocol, int steps, double own_bytes, BytesPerSecond own_rate,
                     double links = 1.0) {
  const double wire = own_bytes * steps;
  const double moving =
      (wire + ramp(wire, protocol.ramp_size)) / (protocol.rate.value.value / links) + own_bytes / own_rate.value;
  return protocol.base_latency.value + steps * protocol.step_latency.value + op_time(moving, "a collective");
}

/// Prices grouped sends and receives, which copy the rank's own share.
Duration by_protocol(const ProtocolParameters& protocol, int steps, double own_bytes) {
  return by_protocol(protocol, steps, own_bytes, protocol.own_copy_rate.value);
}

/// Returns factor x time, rounded down.
Duration scaled(double factor, Duration time) {
  return factor == 1.0 ? time : Duration{static_cast<std::int64_t>(factor * static_cast<double>(time.count()))};
}

/// Transition from shares below the fill size, which take as long as the fill size, to larger shares: sharp for LL,
/// smooth for the other protocols.
enum class FillEdge : std::uint8_t { sharp, smooth };

/// Channels that carry a rank's share.
struct Channels {
  double own_bytes = 0.0;  ///< Share that takes the same time on all channels.
  double used = 1.0;
};

/// Returns the channels out of `available` that carry a share of `own_bytes` bytes. Below the fill size, fewer channels
/// carry the share, each with as many bytes as at the fill size, until only one channel is left.
Channels channels_of(const RingParameters& ring, double own_bytes, int available, FillEdge edge) {
  if (!ring.fill_size || ring.fill_size->value.count == 0 || available < 1) {
    return {own_bytes, 1.0};
  }
  const auto fill = static_cast<double>(ring.fill_size->value.count);
  const double filled = std::min(fill, own_bytes * available);
  const double both = own_bytes * own_bytes * own_bytes * own_bytes + filled * filled * filled * filled;
  return {edge == FillEdge::sharp ? std::max(own_bytes, filled) : std::sqrt(std::sqrt(both)),
          std::clamp(own_bytes * available / fill, 1.0, static_cast<double>(available))};
}

/// Prices a ring whose kernel has `channels` channels.
Duration by_ring(const RingParameters& ring, const NcclTask& task, int channels, FillEdge edge, double links = 1.0) {
  const bool adds = ring.own_sum_rate && !task.copies && (!task.gathers || task.passes == 2);
  const BytesPerSecond own_rate = adds ? ring.own_sum_rate->value : ring.own_copy_rate.value;
  const Channels filled = channels_of(ring, task.total / task.ranks, channels, edge);
  Duration time = by_protocol(ring, task.passes * (task.ranks - 1), filled.own_bytes, own_rate, links);
  if (ring.forward_latency && task.gathers) {
    time += (task.ranks - 2) * ring.forward_latency->value;
  }
  return ring.channel_latency ? time + scaled(1.0 - 1.0 / filled.used, ring.channel_latency->value) : time;
}

Duration in_the_switch(const SwitchParameters& nvls, int ranks, double total, double links) {
  const double moving = (total + ramp(total, nvls.ramp_size_per_rank, ranks)) / (nvls.rate.value.value / links);
  return nvls.base_latency.value + op_time(moving, "a collective");
}

/// Returns the time in seconds; `moving` is the time of the data without latencies.
double tree_seconds(const TreeProtocol& tree, double levels, double moving) {
  return to_seconds(tree.base_latency.value) + levels * to_seconds(tree.level_latency.value) + moving;
}

/// Input of a sum by a tree over nodes; the ranks of a node take part together, each with its share of the tensor.
struct Climb {
  int nodes = 2;
  int ranks_per_node = 1;
  double total = 0.0;  ///< bytes of the tensor
  double links = 1.0;
};

/// Returns the time of a tree with protocol Simple, in seconds.
double simple_tree_seconds(const TreeParameters& tree, const Climb& climb) {
  const double filled = climb.total + ramp(climb.total, tree.ramp_size_per_rank, climb.ranks_per_node);
  return tree_seconds(tree, math::log2(climb.nodes), filled / (rate_over(tree, climb.nodes).value.value / climb.links));
}

/// Returns the time of a tree with `protocol`, or with Simple if the protocol is unknown, in seconds.
double other_tree_seconds(const TreeParameters& tree, const std::optional<TreeProtocol>& protocol, const Climb& climb) {
  return protocol ? tree_seconds(*protocol, math::log2(climb.nodes),
                                 climb.total / (rate_over(*protocol, climb.nodes).value.value / climb.links))
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

/// Returns the time of `kernel`, one of NCCL's kernels.
Duration by_kernel(const CollectiveParameters& parameters, NcclKernel kernel, const NcclTask& task, double links) {
  const int ranks = task.ranks;
  const int nodes = task.nodes;
  const double bytes = task.total;
  const NcclKernels* nccl = parameters.nccl.get();
  const auto ring = [&](const RingParameters& protocol, FillEdge edge = FillEdge::smooth) {
    return by_ring(protocol, task, parameters.ctas.value, edge, links);
  };
  switch (kernel) {
    case NcclKernel::ll: return ring(nccl->ll, FillEdge::sharp);
    case NcclKernel::ll128: return ring(nccl->ll128 ? *nccl->ll128 : parameters);
    case NcclKernel::simple: return ring(parameters);
    case NcclKernel::nvls: return nccl->nvls ? in_the_switch(*nccl->nvls, ranks, bytes, links) : ring(parameters);
    case NcclKernel::tree_ll:
    case NcclKernel::tree_ll128:
    case NcclKernel::tree_simple:
      check(parameters.tree != nullptr, "a tree of NCCL has its parameters");
      return by_tree(*parameters.tree, kernel, {nodes, ranks / nodes, bytes, links});
  }
  return {};
}

/// A kernel with its price.
struct Priced {
  NcclKernel kernel = NcclKernel::simple;
  Duration time = Duration::max();
};

const Priced& cheaper(const Priced& first, const Priced& other) { return other.time < first.time ? other : first; }

/// Returns the lowest price of all kernels, whether or not NCCL would choose them.
Duration lowest_price(const CollectiveParameters& parameters, const NcclTask& task, double links) {
  Duration least = Duration::max();
  for (const NcclKernel kernel : all_nccl_kernels) {
    least = std::min(least, by_kernel(parameters, kernel, task, links));
  }
  return least;
}

/// NCCL's choice, and the cheapest of its choices for messages of this size and larger ones, each priced at the least
/// size from which NCCL would choose it.
struct Choices {
  Priced chosen;
  Priced cheapest;
};

/// Speeds of links, to price NCCL's choices on links other than those of the parameters.
struct LinkSpeeds {
  double priced = 1.0;   ///< Speed of the parameters' links relative to the priced ones.
  double fastest = 1.0;  ///< Fastest links for which NCCL's choices are considered, relative to those of NCCL's tuning.
};

Choices choices_of(const CollectiveParameters& parameters, const NcclTask& task, const LinkSpeeds& speeds) {
  constexpr double step = std::numbers::sqrt2;  // small enough not to skip a kernel that NCCL would choose
  Choices choices;
  NcclTuning tuning = parameters.nccl->tuning;
  for (double speed = 1.0; speed == 1.0 || speed <= speeds.fastest; speed *= step) {
    tuning.channel_rate.value = speed * parameters.nccl->tuning.channel_rate.value;
    NcclTask larger = task;
    while (true) {
      const NcclOffers offers = nccl_offers(tuning, larger);
      for (std::size_t i = 0; i < offers.count; ++i) {
        larger.total = offers.kernels[i].total;
        const NcclKernel kernel = offers.kernels[i].kernel;
        const Priced offer{kernel, by_kernel(parameters, kernel, larger, speeds.priced)};
        if (speed == 1.0 && larger.total == task.total) {
          choices.chosen = offer;
        }
        choices.cheapest = cheaper(choices.cheapest, offer);
      }
      larger.total = offers.until;
      if (std::isinf(larger.total) || lowest_price(parameters, larger, speeds.priced) >= choices.cheapest.time) {
        break;
      }
    }
  }
  return choices;
}

/// Returns the price on the links of the file.
Priced on_real_links(const CollectiveParameters& parameters, const NcclTask& task) {
  const NcclTuning& tuning = parameters.nccl->tuning;
  const auto [chosen, cheapest] = choices_of(parameters, task, {.priced = tuning.hypothetical, .fastest = 1.0});
  const Duration limit = scaled(measured_step(tuning.wire), cheapest.time);
  return chosen.time <= limit ? chosen : Priced{cheapest.kernel, limit};
}

/// Returns the price on these links, hypothetical or not (communication.h defines E). Requires at least two ranks and
/// known kernels. On slower links E is no less than on the file's links, so on wires whose measured step is 1, E alone
/// is the price.
Priced by_nccl(const CollectiveParameters& parameters, const NcclTask& task) {
  const double faster = parameters.nccl->tuning.hypothetical;
  const bool is_slower_without_steps = faster < 1.0 && measured_step(parameters.nccl->tuning.wire) == 1.0;
  const Priced real = is_slower_without_steps ? Priced{.time = {}} : on_real_links(parameters, task);
  if (faster == 1.0) {
    return real;
  }
  const Priced cheapest = choices_of(parameters, task, {.priced = 1.0, .fastest = faster}).cheapest;
  return {cheapest.kernel, std::max(cheapest.time, scaled(1.0 / std::max(1.0, faster), real.time))};
}

/// Returns the time of the ring, or of NCCL's kernels.
Duration ring_time(const CollectiveParameters& parameters, NcclTask task, Bytes total) {
  require_sizes(task.ranks, total);
  if (task.ranks == 1) {
    return Duration{0};
  }
  task.total = static_cast<double>(total.count);
  return parameters.nccl == nullptr ? by_ring(parameters, task, parameters.ctas.value, FillEdge::smooth)
                                    : by_nccl(parameters, task).time;
}

/// Returns whether an all-reduce runs on trees of nodes whatever its size.
bool always_uses_trees(const CollectiveParameters& parameters, int nodes) {
  return nodes > 1 && parameters.tree != nullptr && !nccl_chooses_trees(parameters);
}

/// Returns the kernels of the framework that all_reduce_kernel names; null where an all-reduce cannot use them.
const CustomAllReduce* framework_kernels(const CollectiveParameters& parameters, int nodes) {
  return parameters.custom_all_reduce == nullptr || nodes > 1
             ? nullptr
             : kernels_of(*parameters.custom_all_reduce, parameters.all_reduce_kernel);
}

}  // namespace

std::optional<NcclKernel> kernel_taken(const CollectiveParameters& parameters, const NcclTask& task) {
  if (parameters.nccl == nullptr || task.ranks == 1) {
    return std::nullopt;
  }
  return by_nccl(parameters, task).kernel;
}

Duration p2p_time(const PeerParameters& peer, Bytes bytes) {
  return p2p_time(peer, bytes, {std::numeric_limits<double>::infinity()});
}

Duration p2p_time(const PeerParameters& peer, Bytes bytes, BytesPerSecond limit) {
  check(bytes.count >= 0, "an exchange has no negative size");
  const auto time = [&](Duration latency, double alone, Bytes count) {
    const double rate = std::min(alone, limit.value * std::max(1.0, alone / peer.rate.value.value));
    return latency + op_time(static_cast<double>(count.count) / rate, "an exchange with one peer");
  };
  if (!peer.small || bytes > peer.small->up_to.value) {
    return time(peer.latency.value, peer.rate.value.value, bytes);
  }
  const Duration small = time(peer.small->latency.value, peer.small->rate.value.value, bytes);
  return peer.small->latency.value < peer.latency.value
             ? small
             : std::min(small, time(peer.latency.value, peer.rate.value.value, peer.small->up_to.value));
}

Duration ring_gather_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes) {
  return ring_time(parameters, {.ranks = ranks, .passes = 1, .nodes = nodes, .gathers = true}, total);
}

Duration all_gather_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes) {
  return ring_gather_time(parameters, ranks, total, nodes);
}

Duration reduce_scatter_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes) {
  return ring_time(parameters, {.ranks = ranks, .passes = 1, .nodes = nodes}, total);
}

Duration all_reduce_time(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes) {
  if (always_uses_trees(parameters, nodes)) {
    require_sizes(ranks, total);
    return by_fastest_tree(*parameters.tree, {nodes, ranks / nodes, static_cast<double>(total.count)});
  }
  const Duration nccl_time =
      ring_time(parameters, {.ranks = ranks, .passes = 2, .nodes = nodes, .gathers = true}, total);
  const CustomAllReduce* framework = ranks == 1 ? nullptr : framework_kernels(parameters, nodes);
  return framework == nullptr || total > framework->up_to.value
             ? nccl_time
             : std::min(nccl_time, custom_all_reduce_time(*framework, ranks, total));
}

Duration all_to_all_time(const CollectiveParameters& parameters, int ranks, Bytes total) {
  require_sizes(ranks, total);
  const AllToAllParameters* direct = parameters.all_to_all.get();
  if (direct == nullptr || ranks == 1) {
    return ring_time(parameters, {.ranks = ranks, .passes = 1, .copies = true}, total);
  }
  const double own_bytes = static_cast<double>(total.count) / ranks;
  const auto up_to = static_cast<double>(direct->small_up_to.value.count);
  if (own_bytes > up_to) {
    return by_protocol(direct->large, ranks - 1, own_bytes);
  }
  const double step = parameters.nccl == nullptr ? 1.0 : measured_step(parameters.nccl->tuning.wire);
  return std::min(by_protocol(direct->small, ranks - 1, own_bytes),
                  scaled(step, by_protocol(direct->large, ranks - 1, up_to)));
}

Duration all_to_all_time(const CollectiveParameters& across, int ranks, Bytes total, const Spread& spread) {
  require_sizes(ranks, total);
  if (across.all_to_all != nullptr) {
    return all_to_all_time(across, ranks, total);
  }
  const int node_gpus = spread.gpus_of_a_node;
  check(node_gpus >= 1 && node_gpus < ranks && spread.rate_out.value > 0.0, "a group across nodes sends to others");
  const double own_bytes = static_cast<double>(total.count) / ranks;
  const double moving =
      own_bytes * (ranks - node_gpus) / spread.rate_out.value + own_bytes / across.own_copy_rate.value.value;
  const Duration time_across = across.base_latency.value + (ranks - 1) * across.step_latency.value +
                               op_time(moving, "an all-to-all across nodes");
  if (spread.inside == nullptr) {
    return time_across;
  }
  return std::max(time_across, all_to_all_time(*spread.inside, node_gpus, Bytes{total.count / ranks * node_gpus}));
}

namespace {

std::string_view in_words(NcclKernel kernel) {
  switch (kernel) {
    case NcclKernel::ll: return "NCCL's ring with LL";
    case NcclKernel::ll128: return "NCCL's ring with LL128";
    case NcclKernel::simple: return "NCCL's ring with Simple";
    case NcclKernel::nvls: return "sums in the switch (NVLS)";
    case NcclKernel::tree_ll: return "NCCL's tree with LL";
    case NcclKernel::tree_ll128: return "NCCL's tree with LL128";
    case NcclKernel::tree_simple: return "NCCL's tree with Simple";
  }
  return "";
}

/// Returns whether an all-reduce runs on the kernels of --all-reduce-kernel, because these are no slower than NCCL's.
bool runs_framework_kernels(const CollectiveParameters& parameters, int ranks, Bytes total, int nodes) {
  const CustomAllReduce* const kernels = ranks == 1 ? nullptr : framework_kernels(parameters, nodes);
  return kernels != nullptr && total <= kernels->up_to.value &&
         custom_all_reduce_time(*kernels, ranks, total) == all_reduce_time(parameters, ranks, total);
}

}  // namespace

std::string algorithm_in_words(const CollectiveParameters& parameters, CollectiveKind kind, int ranks, Bytes total,
                               int nodes) {
  const AllToAllParameters* direct = parameters.all_to_all.get();
  if (kind == CollectiveKind::all_to_all && direct != nullptr) {
    const bool small = total.count / ranks <= direct->small_up_to.value.count;
    return fmt::format("direct, by the protocol for {} messages", small ? "small" : "large");
  }
  if (kind == CollectiveKind::all_to_all && nodes > 1) {
    return "direct: inside the node over links, to other nodes over NICs, simultaneously";
  }
  const bool is_all_reduce = kind == CollectiveKind::all_reduce;
  if (is_all_reduce && always_uses_trees(parameters, nodes)) {
    return "the fastest tree of nodes";
  }
  if (is_all_reduce && runs_framework_kernels(parameters, ranks, total, nodes)) {
    return fmt::format("{}'s own kernel", name_of(parameters.all_reduce_kernel));
  }
  const auto kernel = kernel_taken(parameters, {.ranks = ranks,
                                                .passes = is_all_reduce ? 2 : 1,
                                                .total = static_cast<double>(total.count),
                                                .nodes = nodes,
                                                .gathers = is_all_reduce || kind == CollectiveKind::all_gather,
                                                .copies = kind == CollectiveKind::all_to_all});
  return std::string{kernel ? in_words(*kernel) : "ring"};
}

void mark_collective(const CollectiveParameters& parameters, CollectiveKind kind, int ranks,
                     std::span<const Spread> spreads, int nodes, Provenances& marked) {
  const auto mark = [&](const auto& described) {
    each_parameter(described, NoNames{}, [&](NoNames, const auto& parameter) {
      marked[static_cast<std::size_t>(parameter.provenance)] = true;
    });
  };
  const auto mark_all_to_all = [&](const AllToAllParameters& direct) {
    mark(direct.small_up_to);
    mark(direct.small);
    mark(direct.large);
  };
  const bool is_all_reduce = kind == CollectiveKind::all_reduce;
  mark(parameters.ctas);
  mark(parameters.issue_cost);
  if (kind == CollectiveKind::all_to_all && parameters.all_to_all != nullptr) {
    mark_all_to_all(*parameters.all_to_all);
    return;
  }
  if (kind == CollectiveKind::all_to_all) {
    for (const Spread& spread : spreads) {
      if (spread.inside != nullptr && spread.inside->all_to_all != nullptr) {
        mark_all_to_all(*spread.inside->all_to_all);
      }
    }
  }
  if (is_all_reduce && nodes > 1 && parameters.tree != nullptr) {
    mark(*parameters.tree);
  }
  if (is_all_reduce && always_uses_trees(parameters, nodes)) {
    return;
  }
  const bool may_use_frameworks = is_all_reduce && ranks > 1;
  if (const CustomAllReduce* kernels = may_use_frameworks ? framework_kernels(parameters, nodes) : nullptr) {
    mark(*kernels);
  }
  mark(static_cast<const RingParameters&>(parameters));
  if (parameters.nccl != nullptr) {
    mark(parameters.nccl->ll);
    mark(parameters.nccl->ll128);
    if (is_all_reduce) {
      mark(parameters.nccl->nvls);
    }
  }
}

}  // namespace commfuse
