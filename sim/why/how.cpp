// SPDX-License-Identifier: Apache-2.0
#include "sim/why/how.h"

#include <fmt/format.h>

#include "model/cost/communication.h"
#include "model/cost/expert_gemm.h"
#include "model/cost/gemm.h"
#include "model/cost/group.h"
#include "model/cost/implemented.h"
#include "model/cost/memory_bound.h"
#include "model/cost/priced_ops.h"
#include "model/cost/shape_sizes.h"
#include "model/text/quantity.h"

namespace commfuse {

namespace {

std::string_view limit_of(const GemmEstimate& estimate, const Accelerator& accelerator) {
  if (estimate.time == accelerator.kernel_floor.value) {
    return "the shortest kernel sets the time";
  }
  if (estimate.memory_bound) {
    return "HBM traffic sets the time";
  }
  return estimate.power_bound ? "power sets the time" : "the k loops set the time";
}

std::string gemm_in_words(const Accelerator& accelerator, const GemmSize& size, int sms) {
  const GemmEstimate estimate = estimate_gemm(accelerator, size, sms);
  const std::string splits = estimate.splits > 1 ? fmt::format(", k in {} parts", estimate.splits) : std::string{};
  const std::string waves = estimate.waves == 1 ? fmt::format("one wave, {:.0f}% full", 100.0 * estimate.last_wave_fill)
                                                : fmt::format("{} waves, the last {:.0f}% full", estimate.waves,
                                                              100.0 * estimate.last_wave_fill);
  const std::string limiter =
      sms < accelerator.sms ? fmt::format(" on {} of {} SMs", sms, accelerator.sms) : std::string{};
  const std::string groups =
      size.groups > 1 ? fmt::format("{} GEMMs of {} rows, ", size.groups, format_count(size.m)) : std::string{};
  return fmt::format("{}tile {} x {}{}, {}{}; {}", groups, estimate.tile_m, estimate.tile_n, splits, waves, limiter,
                     limit_of(estimate, accelerator));
}

/// Names the longer part of a memory-bound kernel's time: the shortest kernel or the HBM traffic.
std::string_view memory_bound_in_words(const Accelerator& accelerator, Bytes traffic, int sms) {
  const Duration floor = accelerator.kernel_floor.value;
  return memory_bound_time(accelerator, traffic, sms) < 2 * floor ? "the shortest kernel sets most of the time"
                                                                  : "HBM traffic sets the time";
}

/// `nodes` is the number of nodes whose GPUs exchange the data.
std::string exchange_in_words(const Machine& machine, int nodes, Bytes bytes) {
  const bool crosses = nodes > 1 && machine.network;
  const PeerParameters& peer = crosses ? machine.network->peer : machine.link.peer;
  const bool small = peer.small && bytes <= peer.small->up_to.value;
  return fmt::format("{}{}", crosses ? "over the network between nodes" : machine.link.name,
                     small ? ", small messages" : "");
}

}  // namespace

std::string how(const Point& point, const Structure& structure, const Sizes& sizes, std::size_t op) {
  const Program& program = structure.program();
  const Shape& shape = program.shapes[program.ops[op].shape];
  const Machine& machine = point.machine;
  if (program.lanes[program.ops[op].lane].kind == LaneKind::kernel) {
    return "inside a kernel, at the fastest available rate";
  }
  const bool sums_in_kernels = point.price.implementation != nullptr && has_switch_sums(program);
  if (sums_in_kernels && is_inside_switch_sum(program, op)) {
    return "inside the kernel that sums in the switch";
  }
  const Interference interference =
      point.price.interference == Interference::dynamic ? Interference::none : point.price.interference;
  const int sms = sms_left(program, machine, structure.meetings[op], interference);
  if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
    const GemmSize size = priced_gemm(*gemm, sizes, point.price, heating_work(program, sizes, point.price));
    return gemm_in_words(machine.accelerator, grouped(point.price.experts, size), sms);
  }
  if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
    const std::string_view kernel = point.price.attention == AttentionKernel::fused ? "fused" : "unfused";
    return fmt::format("{}, {}", kernel,
                       attention->causal ? "causal: the price depends on the position of the queries" : "full");
  }
  if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    return exchange_in_words(machine, group_on_axis(program.mesh, exchange->axis, machine).nodes,
                             load_of(*exchange, sizes));
  }
  if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
    if (sums_in_kernels) {
      return "one kernel that sums in the switch";
    }
    const Group group = group_on_axis(program.mesh, collective->axis, machine);
    return algorithm_in_words(*group.wires, collective->kind, group.ranks, load_of(*collective, sizes), group.nodes);
  }
  const Bytes traffic = priced_traffic(std::get<ElementwiseShape>(shape), sizes, point.price);
  return std::string{memory_bound_in_words(machine.accelerator, traffic, sms)};
}

}  // namespace commfuse
