// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/stated_costs.h"

#include <algorithm>

namespace commfuse::validate {

namespace {

Duration compute_time(const StatedCosts& costs, SumOrder sum_order, Flops work) {
  const FlopsPerSecond rate = sum_order == SumOrder::ascending ? costs.exact_products : costs.library_products;
  return std::max(costs.launch, work / rate);
}

}  // namespace

Duration stated_time(const StatedCosts& costs, const ProductCall& call) {
  const std::int64_t k = call.transpose_a ? call.a.rows : call.a.columns;
  return compute_time(costs, call.sum_order, {2.0 * static_cast<double>(call.out.rows * call.out.columns * k)});
}

Duration stated_time(const StatedCosts& costs, const FunctionCall& call) {
  Bytes traffic = call.out.bytes();
  for (const Panel& input : call.inputs) {
    traffic += input.bytes();
  }
  return stated_memory_time(costs, traffic);
}

Duration stated_time(const StatedCosts& costs, const AttentionCall& call) {
  std::int64_t rows = 0;
  for (const AttentionCall::Part& part : call.parts) {
    rows += part.queries.rows;
  }
  const std::int64_t columns = call.parts.front().out.columns;
  return compute_time(costs, call.sum_order, {4.0 * static_cast<double>(rows * call.keys.rows * columns)});
}

Duration stated_time(const StatedCosts& costs, const MoveCall& call) {
  Bytes bytes{};
  for (const MoveCall::Part& part : call.parts) {
    bytes += part.from.bytes();
  }
  switch (call.link.kind) {
    case LinkKind::bounce: return stated_host_time(costs, {2 * bytes.count});
    case LinkKind::paced: return std::max(costs.launch, call.link.pace.latency + bytes / call.link.pace.bandwidth);
    default: return stated_memory_time(costs, {2 * bytes.count});
  }
}

Duration stated_memory_time(const StatedCosts& costs, Bytes bytes) {
  return std::max(costs.launch, bytes / costs.memory);
}

Duration stated_host_time(const StatedCosts& costs, Bytes bytes) { return costs.launch + bytes / costs.host_link; }

}  // namespace commfuse::validate
