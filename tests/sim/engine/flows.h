// SPDX-License-Identifier: Apache-2.0
// Programs that only move data, and runs of them in the engine where transfers share links.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/cost/fluid.h"
#include "model/hardware/machine.h"
#include "model/program/builder.h"
#include "model/program/sizes.h"
#include "sim/engine/engine.h"

namespace commfuse::test {

/// One transfer, on a separate lane.
struct OneFlow {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int32_t kilobytes = 0;
};

/// Adds exchanges whose sizes are whole kilobytes, none above `largest`.
class FlowProgram {
 public:
  FlowProgram(std::int32_t ranks, std::int32_t largest)
      : ranks_(ranks),
        builder_("flows", Mesh{{{"tp", ranks}}}),
        buffer_(builder_.buffer("b", BufferRole::scratch, {builder_.dimension("kilobytes", largest), largest},
                                {builder_.dimension("columns", 1), 1}, DType::fp32)) {}

  /// Makes every rank send to the rank whose number is `shift` higher.
  OpId from_all(std::uint16_t lane, std::int32_t shift, std::int32_t kilobytes) {
    return builder_.exchange(half(lane, shift, kilobytes, kilobytes));
  }

  /// Adds one flow and returns the sender's op.
  OpId from_one(std::uint16_t lane, const OneFlow& flow) {
    const std::int32_t shift = (flow.to - flow.from + ranks_) % ranks_;
    const OpId send = builder_.exchange(half(lane, shift, flow.kilobytes, 0));
    builder_.only_where(send, {Relation::equal, 0, flow.from});
    builder_.only_where(builder_.exchange(half(lane, shift, 0, flow.kilobytes)), {Relation::equal, 0, flow.to});
    return send;
  }

  [[nodiscard]] std::shared_ptr<const Program> build() && {
    return std::make_shared<const Program>(std::move(builder_).build());
  }

 private:
  [[nodiscard]] ExchangeSpec half(std::uint16_t lane, std::int32_t shift, std::int32_t sent,
                                  std::int32_t received) const {
    return {.lane = {LaneKind::comm, lane},
            .shift = shift,
            .send = rows(sent),
            .receive = rows(received),
            .wire = DType::fp32};
  }
  [[nodiscard]] Operand rows(std::int32_t kilobytes) const {
    return kilobytes == 0 ? Operand{} : Operand{builder_.rows_of(buffer_, 0, kilobytes)};
  }

  std::int32_t ranks_;
  ProgramBuilder builder_;
  BufferId buffer_;
};

/// Returns sizes that make a row of a block 1,000 bytes: 250 columns of fp32.
inline Sizes sizes_of_flows() { return {.block = {1, 250}}; }

/// Prices the flows without host costs.
inline Fluid priced_flows(const Program& program, const Machine& machine) {
  Fluid fluid = price_fluid(program, meetings_of(program, Order(program, 0)), sizes_of_flows(), machine, {},
                            std::make_shared<const Wiring>(wiring_of(program, machine)));
  fluid.costs.issue.assign(program.ops.size(), Duration{});
  return fluid;
}

inline Recorder recorded(const std::shared_ptr<const Program>& program, const Fluid& fluid) {
  Recorder recorder(Recorder::Keep::timeline);
  Engine{}.run(plan_of(lower(program)), fluid.costs, recorder, {.fluid = &fluid});
  return recorder;
}

/// Returns when each of these flows ends. All start at time zero.
inline std::vector<Duration> ends_of(const std::vector<OneFlow>& flows, const Machine& machine) {
  FlowProgram made(machine.gpus_per_node * machine.nodes, 20'000);
  std::vector<OpId> sends;
  for (const OneFlow& flow : flows) {
    sends.push_back(made.from_one(static_cast<std::uint16_t>(sends.size()), flow));
  }
  const auto program = std::move(made).build();
  std::vector<Duration> ends(flows.size());
  for (const OpSpan& span : recorded(program, priced_flows(*program, machine)).timeline()) {
    for (std::size_t i = 0; i < sends.size(); ++i) {
      if (span.op == sends[i]) {
        ends[i] = span.end.time_since_epoch();
      }
    }
  }
  return ends;
}

}  // namespace commfuse::test
