// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/nccl_tuning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "model/check.h"

namespace commfuse {

namespace {

constexpr int least_ranks_of_nvls = 5;
constexpr double ring_share_of_ll = 0.5;      // Half of the bytes that LL sends are flags.
constexpr double ring_share_of_ll128 = 0.92;  // 120 of 128 bytes, minus a small loss.

constexpr double tree_share = 0.92;  // Share of the channels' rate.
constexpr double tree_passes = 2.0;  // Every sum goes up the tree and comes down again.
constexpr double tree_share_of_ll = 1.0 / 3.8;
constexpr double tree_share_of_ll128 = 120.0 / 128.0;
constexpr double ll_step_among_nodes = 1.8;  // factor on a step inside a node if the ring or tree spans nodes
constexpr double plateau = 1.4;  // factor on the latency of an all-reduce with Simple over a ring of several nodes

/// Limits of one generation; rates are in GB/s.
struct Limits {
  double ll;                           // LL inside a node
  double ll128_channel;                // LL128, per channel
  double nvls_share;                   // NVLS, as a share of the ring's rate
  std::array<double, 2> tree_channel;  // one channel of a tree: for two nodes, for more
};

constexpr std::array<Limits, 4> limits{{{39.0, 20.0, 0.0, {18.5, 10.0}},
                                        {87.7, 20.0, 0.0, {23.6, 17.8}},
                                        {141.0, 36.7, 0.85, {41.4, 36.0}},
                                        {282.0, 73.4, 0.74, {42.8, 24.0}}}};

/// Rates of LL across nodes, in GB/s: for two nodes, for more.
constexpr std::array<double, 2> ll_among_intel_hosts{39.0, 20.4};
constexpr std::array<double, 2> ll_among_amd_hosts{22.5, 19.0};

double max_ll_rate(const NcclTuning& tuning, int nodes) {
  if (tuning.wire != NcclWire::network) {
    return 1e9 * limits[static_cast<std::size_t>(tuning.generation)].ll;
  }
  return 1e9 * (tuning.amd_hosts ? ll_among_amd_hosts : ll_among_intel_hosts)[nodes > 2 ? 1 : 0];
}

/// Latencies by kernel, in microseconds: once per call, and once per step over NVLink, over PCIe and between nodes.
/// NcclTuning has the steps of the tree with Simple.
struct Latencies {
  double base;
  double nvlink_step;
  double pcie_step;
  double network_step;
};

constexpr std::array<Latencies, 7> latencies{{{6.6, 0.6, 1.0, 2.7},
                                              {14.0, 1.9, 2.5, 4.0},
                                              {8.4, 3.4, 5.7, 14.0},
                                              {25.0, 0.0, 0.0, 0.0},
                                              {6.8, 0.6, 1.0, 5.0},
                                              {14.0, 1.25, 1.9, 8.5},
                                              {8.4, 0.0, 0.0, 0.0}}};

constexpr std::size_t flat_kernels = 4;  // the first kernels, which are not trees

/// Factors on the rate of trees, by protocol (LL, LL128, Simple) and by doubling of 64 B. NCCL explains them: "Trees
/// are not perfectly sticking to the model for medium sizes".
constexpr std::size_t corrected_sizes = 23;
constexpr std::array<std::array<double, corrected_sizes>, 3> tree_corrections{
    {{1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
      0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0},
     {1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
      0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0},
     {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
      0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9}}};

/// Returns the index of the doubling that a size falls into: 0 for smaller sizes, `corrected_sizes` beyond the last.
std::size_t doubling_of(double total) {
  return total < 128.0 ? 0 : std::min(corrected_sizes, static_cast<std::size_t>(std::ilogb(total / 64.0)));
}

double tree_correction(NcclKernel kernel, double total) {
  const std::size_t protocol = static_cast<std::size_t>(kernel) - static_cast<std::size_t>(NcclKernel::tree_ll);
  const std::size_t size = doubling_of(total);
  return size < corrected_sizes ? tree_corrections[protocol][size] : 1.0;
}

/// Returns the next size at which the correction of trees changes.
double end_of_doubling(double total) {
  const std::size_t size = doubling_of(total);
  return size < corrected_sizes ? std::ldexp(128.0, static_cast<int>(size)) : std::numeric_limits<double>::infinity();
}

/// Returns the rate of a ring or the switch in bytes per second; 0 if there is no such kernel.
double rate_of(const NcclTuning& tuning, NcclKernel kernel, int nodes) {
  const Limits& limit = limits[static_cast<std::size_t>(tuning.generation)];
  const double ring = tuning.channels * tuning.channel_rate.value;
  const bool is_nvlink = tuning.wire == NcclWire::nvlink;
  const bool is_network = tuning.wire == NcclWire::network;
  switch (kernel) {
    case NcclKernel::ll: return std::min(max_ll_rate(tuning, nodes), ring_share_of_ll * ring);
    case NcclKernel::ll128:
      return is_nvlink || (is_network && tuning.ll128_across)
                 ? std::min(ring_share_of_ll128 * ring, 1e9 * tuning.channels * limit.ll128_channel)
                 : 0.0;
    case NcclKernel::simple: return ring;
    case NcclKernel::nvls: return is_nvlink ? limit.nvls_share * ring : 0.0;
    default: return 0.0;
  }
}

/// Returns the rate of a tree in bytes of the tensor per second; 0 if there is no such kernel.
double tree_rate_of(const NcclTuning& tuning, NcclKernel kernel, const NcclTask& task) {
  const Limits& limit = limits[static_cast<std::size_t>(tuning.generation)];
  const double channel = 1e9 * limit.tree_channel[task.nodes > 2 ? 1 : 0];
  const double channels = std::min(tree_share * tuning.channel_rate.value, channel) * tuning.tree_channels;
  double rate = channels;
  if (kernel == NcclKernel::tree_ll) {
    rate = std::min(channels * tree_share_of_ll, max_ll_rate(tuning, task.nodes));
  } else if (kernel == NcclKernel::tree_ll128) {
    rate = tuning.ll128_across
               ? std::min(channels * tree_share_of_ll128, 1e9 * tuning.tree_channels * limit.ll128_channel)
               : 0.0;
  }
  return rate * tree_correction(kernel, task.total) / tree_passes;
}

double step_of(const NcclTuning& tuning, NcclKernel kernel) {
  const Latencies& latency = latencies[static_cast<std::size_t>(kernel)];
  return tuning.wire == NcclWire::pcie ? latency.pcie_step : latency.nvlink_step;
}

/// Returns the latency of a ring in microseconds, with all its steps.
double ring_latency(const NcclTuning& tuning, const NcclTask& task, NcclKernel kernel) {
  const Latencies& latency = latencies[static_cast<std::size_t>(kernel)];
  const int steps = task.passes * (task.ranks - 1);
  if (tuning.wire != NcclWire::network) {
    return latency.base + steps * step_of(tuning, kernel);
  }
  const int node_steps = std::min(steps, task.passes * (task.nodes - 1));
  const double inside_latency = step_of(tuning, kernel) * (kernel == NcclKernel::ll ? ll_step_among_nodes : 1.0);
  const double latency_us = latency.base + (steps - node_steps) * inside_latency + node_steps * latency.network_step;
  return kernel == NcclKernel::simple && task.passes == 2 ? plateau * latency_us : latency_us;
}

/// Returns the latency of a tree in microseconds, with all its steps up and down.
double tree_latency(const NcclTuning& tuning, const NcclTask& task, NcclKernel kernel) {
  const Latencies& latency = latencies[static_cast<std::size_t>(kernel)];
  const bool is_simple = kernel == NcclKernel::tree_simple;
  const double inside_latency = is_simple                       ? to_microseconds(tuning.tree_step)
                                : kernel == NcclKernel::tree_ll ? ll_step_among_nodes * latency.nvlink_step
                                                                : latency.nvlink_step;
  const double network_latency = is_simple ? to_microseconds(tuning.tree_node_step) : latency.network_step;
  const double ranks_of_a_node = std::max(1.0, static_cast<double>(task.ranks) / task.nodes);
  return latency.base +
         tree_passes * ((ranks_of_a_node - 1.0) * inside_latency + std::ilogb(task.nodes) * network_latency);
}

bool may_use_trees(const NcclTuning& tuning, const NcclTask& task) {
  return task.passes == 2 && task.nodes > 1 && tuning.tree_channels > 0;
}

/// NCCL's estimate of a kernel as a line over sizes: seconds of an empty message, and per byte.
struct Line {
  double latency = 0.0;
  double per_byte = 0.0;
  [[nodiscard]] double at(double total) const { return latency + total * per_byte; }
};

/// Returns nullopt if NCCL would not use the kernel. A tree's line holds for the doubling that contains the task's
/// size; callers request trees only if NCCL may use them.
std::optional<Line> line_of(const NcclTuning& tuning, const NcclTask& task, NcclKernel kernel) {
  if (kernel == NcclKernel::tree_ll || kernel == NcclKernel::tree_ll128 || kernel == NcclKernel::tree_simple) {
    const double rate = tree_rate_of(tuning, kernel, task);
    return rate > 0.0 ? std::optional(Line{1e-6 * tree_latency(tuning, task, kernel), 1.0 / rate}) : std::nullopt;
  }
  const double rate = rate_of(tuning, kernel, task.nodes);
  if (rate <= 0.0) {
    return std::nullopt;
  }
  if (kernel == NcclKernel::nvls) {
    const bool sums = task.passes == 2 && task.ranks >= least_ranks_of_nvls;
    return sums ? std::optional(Line{1e-6 * latencies[static_cast<std::size_t>(kernel)].base,
                                     task.ranks / (rate * (task.ranks - 1))})
                : std::nullopt;
  }
  const int steps = task.passes * (task.ranks - 1);
  return Line{1e-6 * ring_latency(tuning, task, kernel), steps / (rate * task.ranks)};
}

/// Returns the size from which the flatter line is lower. Lines that coincide count as if the steeper one were lower.
double crossing_of(const Line& steep, const Line& flat) {
  const double slopes = steep.per_byte - flat.per_byte;
  const double latency = flat.latency - steep.latency;
  if (slopes > 0.0) {
    return latency / slopes;
  }
  return latency < 0.0 ? 0.0 : std::numeric_limits<double>::infinity();
}

template <class Kind, std::size_t count>
std::optional<Kind> named(const std::array<Kind, count>& kinds, std::string_view name) {
  const auto value = std::find_if(kinds.begin(), kinds.end(), [&](Kind kind) { return name_of(kind) == name; });
  return value == kinds.end() ? std::nullopt : std::optional(*value);
}

}  // namespace

std::string_view name_of(NcclGeneration generation) {
  switch (generation) {
    case NcclGeneration::volta: return "volta";
    case NcclGeneration::ampere: return "ampere";
    case NcclGeneration::hopper: return "hopper";
    case NcclGeneration::blackwell: return "blackwell";
  }
  return "";
}

std::optional<NcclGeneration> nccl_generation_named(std::string_view name) { return named(all_nccl_generations, name); }

std::string_view name_of(NcclWire wire) {
  switch (wire) {
    case NcclWire::nvlink: return "nvlink";
    case NcclWire::pcie: return "pcie";
    case NcclWire::network: return "network";
  }
  return "";
}

std::optional<NcclWire> nccl_wire_named(std::string_view name) { return named(all_nccl_wires, name); }

std::string_view name_of(NcclKernel kernel) {
  switch (kernel) {
    case NcclKernel::ll: return "ring, LL";
    case NcclKernel::ll128: return "ring, LL128";
    case NcclKernel::simple: return "ring, Simple";
    case NcclKernel::nvls: return "NVLS";
    case NcclKernel::tree_ll: return "tree, LL";
    case NcclKernel::tree_ll128: return "tree, LL128";
    case NcclKernel::tree_simple: return "tree, Simple";
  }
  return "";
}

std::optional<NcclEstimate> nccl_estimate(const NcclTuning& tuning, NcclKernel kernel) {
  const double rate = rate_of(tuning, kernel, tuning.wire == NcclWire::network ? 2 : 1);
  if (rate <= 0.0) {
    return std::nullopt;
  }
  return NcclEstimate{.base_latency = from_seconds(1e-6 * latencies[static_cast<std::size_t>(kernel)].base),
                      .step_latency = from_seconds(1e-6 * step_of(tuning, kernel)),
                      .rate = {rate}};
}

NcclKernel nccl_choice(const NcclTuning& tuning, const NcclTask& task) {
  check(task.ranks >= 2, "NCCL chooses for at least two ranks");
  NcclKernel best = NcclKernel::simple;
  std::optional<double> shortest;
  for (const NcclKernel kernel :
       std::span(all_nccl_kernels).first(may_use_trees(tuning, task) ? all_nccl_kernels.size() : flat_kernels)) {
    const std::optional<Line> line = line_of(tuning, task, kernel);
    if (line && (!shortest || line->at(task.total) < *shortest)) {
      best = kernel;
      shortest = line->at(task.total);
    }
  }
  return best;
}

NcclOffers nccl_offers(const NcclTuning& tuning, const NcclTask& task) {
  check(task.ranks >= 2, "NCCL chooses for at least two ranks");
  const bool uses_trees = may_use_trees(tuning, task);
  NcclOffers offers;
  offers.until = uses_trees ? end_of_doubling(task.total) : std::numeric_limits<double>::infinity();
  std::array<std::optional<Line>, all_nccl_kernels.size()> lines;
  std::array<double, all_nccl_kernels.size()> from;
  std::array<double, all_nccl_kernels.size()> to;
  from.fill(task.total);
  to.fill(offers.until);
  const std::size_t kernels = uses_trees ? all_nccl_kernels.size() : flat_kernels;
  for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
    lines[kernel] = line_of(tuning, task, all_nccl_kernels[kernel]);
    for (std::size_t other = 0; lines[kernel] && other < kernel; ++other) {
      if (!lines[other]) {
        continue;
      }
      const bool is_steeper = lines[kernel]->per_byte > lines[other]->per_byte;
      const std::size_t steep = is_steeper ? kernel : other;
      const std::size_t flat = is_steeper ? other : kernel;
      const double crossing = crossing_of(*lines[steep], *lines[flat]);
      to[steep] = std::min(to[steep], crossing);
      from[flat] = std::max(from[flat], crossing);
    }
  }
  for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
    if (lines[kernel] && from[kernel] < to[kernel]) {
      offers.kernels[offers.count++] = {all_nccl_kernels[kernel], from[kernel]};
    }
  }
  if (offers.count == 0) {  // lines that meet in one point, up to rounding
    offers.kernels[offers.count++] = {nccl_choice(tuning, task), task.total};
  }
  return offers;
}

double measured_step(NcclWire wire) {
  switch (wire) {
    case NcclWire::nvlink: return 1.0;
    case NcclWire::pcie: return 1.6;
    case NcclWire::network: return 2.0;
  }
  return 1.0;
}

}  // namespace commfuse
