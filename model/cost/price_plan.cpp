// SPDX-License-Identifier: Apache-2.0
#include "model/cost/price_plan.h"

#include <algorithm>
#include <utility>

#include "model/check.h"
#include "model/cost/contention.h"
#include "model/cost/cut_bound.h"

namespace commfuse {

namespace {

/// Returns the shape of an op that is a part of a kernel; null for other ops.
const GemmShape* part_of_kernel(const Program& program, std::size_t op) {
  const auto* gemm = std::get_if<GemmShape>(&program.shapes[program.ops[op].shape]);
  return gemm != nullptr && is_part_of_kernel(*gemm) ? gemm : nullptr;
}

/// Returns true if the price of this op differs by rank: for causal attention whose queries have different positions on
/// every rank.
bool price_differs_by_rank(const Program& program, const Op& op) {
  const auto* attention = std::get_if<AttentionShape>(&program.shapes[op.shape]);
  const auto positions = program.positions_of(op);
  return attention != nullptr && attention->causal &&
         std::any_of(positions.begin(), positions.end(),
                     [](const Index& position) { return position.terms != Index{}.terms; });
}

/// Returns the index of a shape's time beside the communication that it meets.
std::uint32_t place_of(const Op& op, const Meetings& met) {
  return PricePlan::meetings * op.shape + (met.exchange ? 1U : 0U) + (met.collective ? 2U : 0U);
}

/// Returns the axis along which a transfer moves data; 0 for other ops.
std::int8_t axis_of(const Shape& shape) {
  if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    return exchange->axis;
  }
  const auto* collective = std::get_if<CollectiveShape>(&shape);
  return collective != nullptr ? collective->axis : std::int8_t{0};
}

PricePlan::OfOp plan_of_op(const Program& program, std::size_t index, const Meetings& met, const KernelParts& parts) {
  const Op& op = program.ops[index];
  PricePlan::OfOp plan{
      .kind = op.kind, .axis = axis_of(program.shapes[op.shape]), .is_launched = parts.launched(program, index)};
  if (op.kind != OpKind::attention && !KernelParts::is_part(program, index) && !in_kernel(program, index)) {
    plan.alone = place_of(op, {});
    plan.met = place_of(op, met);
  }
  for (const OpId wait : program.waits_of(op)) {
    plan.other_waits += program.ops[position(wait)].lane != op.lane ? 1 : 0;
  }
  return plan;
}

/// Adds the communication that kernels may meet.
void add_sm_holders(const Program& program, const std::vector<Meetings>& meetings, PricePlan& plan) {
  const auto lane_and_id = [&](std::size_t op) { return std::pair(std::size_t{program.ops[op].lane}, op); };
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (holds_sms(program, program.ops[op])) {
      plan.sm_holders.push_back(op);
    }
  }
  std::ranges::sort(plan.sm_holders, {}, lane_and_id);
  const auto place_of_first = [&](std::size_t lane, std::size_t id) {
    const auto place = std::lower_bound(plan.sm_holders.begin(), plan.sm_holders.end(), std::pair(lane, id),
                                        [&](std::size_t op, const auto& wanted) { return lane_and_id(op) < wanted; });
    return static_cast<std::size_t>(place - plan.sm_holders.begin());
  };
  for (std::size_t op = 0; op < meetings.size(); ++op) {
    for (const LaneRange& range : meetings[op].sm_holders) {
      plan.beside.push_back({.op = op,
                             .begin = place_of_first(range.lane, position(range.first)),
                             .end = place_of_first(range.lane, position(range.last) + 1)});
    }
  }
}

}  // namespace

KernelParts::KernelParts(const Program& program) : before_(program.ops.size(), 0) {
  std::vector<std::int32_t> done(program.shapes.size(), 0);
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (const GemmShape* part = part_of_kernel(program, op)) {
      const KernelCut cut = kernel_cut_of(*part);
      std::int32_t& blocks = done[program.ops[op].shape];
      before_[op] = blocks;
      blocks = (blocks + cut.part) % cut.whole;
    }
  }
}

Duration KernelParts::share(const Program& program, std::size_t op, Duration whole) const {
  const GemmShape* part = part_of_kernel(program, op);
  if (part == nullptr) {
    return whole;
  }
  const KernelCut cut = kernel_cut_of(*part);
  const std::int64_t blocks = cut.whole;
  const auto until = [&](std::int64_t block) {  // whole x block / blocks, rounded down, without leaving 64 bits
    return whole.count() / blocks * block + whole.count() % blocks * block / blocks;
  };
  return Duration{until(before_[op] + cut.part) - until(before_[op])};
}

bool KernelParts::launched(const Program& program, std::size_t op) const {
  return before_[op] == 0 && !in_kernel(program, op);
}

bool KernelParts::is_part(const Program& program, std::size_t op) { return part_of_kernel(program, op) != nullptr; }

bool in_kernel(const Program& program, std::size_t op) {
  return program.lanes[program.ops[op].lane].kind == LaneKind::kernel;
}

PricePlan price_plan(const Program& program, const std::vector<Meetings>& meetings) {
  check(meetings.size() == program.ops.size(), "meetings belong to the program");
  PricePlan plan{.parts = KernelParts(program),
                 .shared_ports = shared_ports(program, meetings),
                 .contends = contend(meetings),
                 .moves_in_kernels = kernels_move(program)};
  const Coordinates first = program.mesh.coordinates(0);
  plan.ops.reserve(program.ops.size());
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    plan.ops.push_back(plan_of_op(program, i, meetings[i], plan.parts));
    if (op.kind == OpKind::gemm && op.purpose == Purpose::essential) {
      (KernelParts::is_part(program, i) ? plan.part_gemms : plan.cut_gemms).push_back({i, op.where.holds(first)});
    }
    if (price_differs_by_rank(program, op)) {
      plan.differ_by_rank.push_back(i);
    }
    plan.has_attention = plan.has_attention || op.kind == OpKind::attention;
    if ((op.kind == OpKind::gemm || op.kind == OpKind::elementwise) && !in_kernel(program, i)) {
      plan.kernels.insert(plan.kernels.end(), {place_of(op, meetings[i]), place_of(op, {})});
    }
  }
  add_sm_holders(program, meetings, plan);
  std::ranges::sort(plan.kernels);
  plan.kernels.erase(std::unique(plan.kernels.begin(), plan.kernels.end()), plan.kernels.end());
  return plan;
}

}  // namespace commfuse
