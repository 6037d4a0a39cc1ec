// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/nccl_tuning.h"

#include <algorithm>

#include "model/check.h"

namespace commfuse {

namespace {

constexpr int least_ranks_of_nvls = 5;
constexpr double ring_share_of_ll = 0.5;      // Half of what LL sends are flags.
constexpr double ring_share_of_ll128 = 0.92;  // 120 of 128 bytes, and a little.

/// By generation, GB/s: LL in all; LL128 a channel; and the share of the ring's rate that sums in the switch get.
struct Limits {
  double ll;
  double ll128_channel;
  double nvls_share;
};

constexpr std::array<Limits, 4> limits{
    {{39.0, 20.0, 0.0}, {87.7, 20.0, 0.0}, {141.0, 36.7, 0.85}, {282.0, 73.4, 0.74}}};

/// By kernel: microseconds once a call, and once a step over NVLink and over PCIe.
struct Latencies {
  double base;
  double nvlink_step;
  double pcie_step;
};

constexpr std::array<Latencies, 4> latencies{{{6.6, 0.6, 1.0}, {14.0, 1.9, 2.5}, {8.4, 3.4, 5.7}, {25.0, 0.0, 0.0}}};

constexpr std::array<NcclKernel, 4> all_kernels{NcclKernel::ll, NcclKernel::ll128, NcclKernel::simple,
                                                NcclKernel::nvls};

/// Bytes a second; 0 where there is no such kernel.
double rate_of(const NcclTuning& tuning, NcclKernel kernel) {
  const Limits& limit = limits[static_cast<std::size_t>(tuning.generation)];
  const double ring = tuning.channels * tuning.channel_rate.value;
  const bool is_nvlink = tuning.wire == NcclWire::nvlink;
  switch (kernel) {
    case NcclKernel::ll: return std::min(1e9 * limit.ll, ring_share_of_ll * ring);
    case NcclKernel::ll128:
      return is_nvlink ? std::min(ring_share_of_ll128 * ring, 1e9 * tuning.channels * limit.ll128_channel) : 0.0;
    case NcclKernel::simple: return ring;
    case NcclKernel::nvls: return is_nvlink ? limit.nvls_share * ring : 0.0;
  }
  return 0.0;
}

double step_of(const NcclTuning& tuning, NcclKernel kernel) {
  const Latencies& latency = latencies[static_cast<std::size_t>(kernel)];
  return tuning.wire == NcclWire::nvlink ? latency.nvlink_step : latency.pcie_step;
}

/// Seconds; requires a rate above 0.
double estimate(const NcclTuning& tuning, const NcclTask& task, NcclKernel kernel, double rate) {
  const int steps = task.passes * (task.ranks - 1);
  const double base = latencies[static_cast<std::size_t>(kernel)].base;
  if (kernel == NcclKernel::nvls) {
    return 1e-6 * base + task.total * task.ranks / (rate * (task.ranks - 1));
  }
  return 1e-6 * (base + steps * step_of(tuning, kernel)) + task.total * steps / (rate * task.ranks);
}

template <class Kind, std::size_t count>
std::optional<Kind> named(const std::array<Kind, count>& all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](Kind kind) { return name_of(kind) == name; });
  return found == all.end() ? std::nullopt : std::optional(*found);
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

std::string_view name_of(NcclWire wire) { return wire == NcclWire::nvlink ? "nvlink" : "pcie"; }

std::optional<NcclWire> nccl_wire_named(std::string_view name) { return named(all_nccl_wires, name); }

std::string_view name_of(NcclKernel kernel) {
  switch (kernel) {
    case NcclKernel::ll: return "ring, LL";
    case NcclKernel::ll128: return "ring, LL128";
    case NcclKernel::simple: return "ring, Simple";
    case NcclKernel::nvls: return "NVLS";
  }
  return "";
}

std::optional<NcclEstimate> nccl_estimate(const NcclTuning& tuning, NcclKernel kernel) {
  const double rate = rate_of(tuning, kernel);
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
  double least = 0.0;
  bool any = false;
  for (const NcclKernel kernel : all_kernels) {
    const double rate = rate_of(tuning, kernel);
    if (rate <= 0.0 || (kernel == NcclKernel::nvls && (task.passes < 2 || task.ranks < least_ranks_of_nvls))) {
      continue;
    }
    if (const double time = estimate(tuning, task, kernel, rate); !any || time < least) {
      best = kernel;
      least = time;
      any = true;
    }
  }
  return best;
}

}  // namespace commfuse
