// SPDX-License-Identifier: Apache-2.0
// Tests schedules on machines whose wires are shared at run time.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "model/cost/fluid.h"
#include "model/strategies/scope.h"
#include "sim/engine/engine.h"
#include "tests/sim/engine/hand.h"

namespace commfuse::test {
namespace {

Machine machine(const char* file) { return load_machine(std::string{COMMFUSE_SOURCE_DIR "/configs/"} + file); }

/// Returns a mesh with round numbers: 28 GB/s per wire, 137 GB/s for all wires of a GPU together.
Machine mesh_of_wires() {
  Machine mesh = machine("hardware/ascend-910b-mesh.yaml");
  mesh.link.peer.rate.value = BytesPerSecond{28e9};
  mesh.link.peer.aggregate_rate.value = BytesPerSecond{137e9};
  return mesh;
}

constexpr std::int64_t rows_of_block = 4096;  // With 1024 columns of 4 bytes a block has 16 MiB.
constexpr Bytes block{rows_of_block * 1024 * 4};

/// Runs the program without host costs.
Timeline simulate(const std::shared_ptr<const Program>& program, const Machine& hardware, Recorder& recorder) {
  const std::array<Quantity, 2> quantities{{{"rows", 4 * rows_of_block}, {"columns", 1024}}};
  const Sizes sizes = bind_sizes(*program, quantities);
  Fluid fluid = price_fluid(*program, meetings_of(*program, Order(*program, 0)), sizes, hardware, {},
                            std::make_shared<const Wiring>(wiring_of(*program, hardware)));
  fluid.costs.issue.assign(program->ops.size(), Duration{});
  Engine{}.run(plan_of(lower(program)), fluid.costs, recorder, {.fluid = &fluid});
  return recorder.timeline();
}

/// Returns the times of exchanges that run simultaneously: every rank sends one block over each of these distances.
std::vector<Duration> simultaneous_times(const Machine& hardware, std::int32_t ranks,
                                         const std::vector<std::int32_t>& shifts) {
  Hand hand(ranks);
  std::uint16_t lane = 0;
  for (const std::int32_t shift : shifts) {
    hand.builder.exchange({.lane = {LaneKind::comm, lane++},
                           .shift = shift,
                           .send = hand.slot(0),
                           .receive = hand.slot(1),
                           .wire = DType::fp32});
  }
  Recorder recorder(Recorder::Keep::timeline);
  std::vector<Duration> times;
  for (const OpSpan& span :
       simulate(std::make_shared<const Program>(std::move(hand.builder).build()), hardware, recorder)) {
    times.push_back(span.end - span.start);
  }
  return times;
}

/// Returns the time of a block: latency plus its bytes at `rate`, in bytes per second.
Duration at_rate(PeerParameters peer, double rate) {
  peer.rate.value.value = rate;
  return p2p_time(peer, block);
}

void expect_all_near(const std::vector<Duration>& times, Duration expected) {
  for (const Duration time : times) {
    EXPECT_NEAR(static_cast<double>(time.count()), static_cast<double>(expected.count()), 8.0);
  }
}

TEST(FluidMachine, ATransferAloneTakesExactlyItsPrice) {
  for (const char* file :
       {"hardware/h100-sxm.yaml", "hardware/pcie-rtx-pro-6000.yaml", "hardware/ascend-910b-mesh.yaml"}) {
    const Machine hardware = machine(file);
    EXPECT_EQ(simultaneous_times(hardware, 2, {1}),
              std::vector<Duration>(2, p2p_time(peer_between(hardware, 0, 1), block)))
        << file;
  }
}

TEST(FluidMachine, SevenTransfersShareThePortOfASwitch) {
  const Machine h100 = machine("hardware/h100-sxm.yaml");
  const double rate = h100.link.peer.rate.value.value;
  expect_all_near(simultaneous_times(h100, 8, {1, 2, 3, 4, 5, 6, 7}), at_rate(h100.link.peer, rate / 7));
}

TEST(FluidMachine, FourTransfersOfAMeshAreNotSlowedAndSevenShareItsTotal) {
  const Machine mesh = mesh_of_wires();
  expect_all_near(simultaneous_times(mesh, 8, {1, 2, 3, 4}), at_rate(mesh.link.peer, 28e9));
  expect_all_near(simultaneous_times(mesh, 8, {1, 2, 3, 4, 5, 6, 7}), at_rate(mesh.link.peer, 137e9 / 7));
}

TEST(FluidMachine, TransfersThatNeverOverlapDoNotSlowEachOther) {
  // The second lane sends after the first has finished; static sharing would halve the rates of both.
  const Machine h100 = machine("hardware/h100-sxm.yaml");
  Hand hand(2);
  const OpId first = hand.builder.exchange({.send = hand.slot(0), .receive = hand.slot(1), .wire = DType::fp32});
  hand.builder.exchange({.lane = {LaneKind::comm, 1},
                         .send = hand.slot(2),
                         .receive = hand.slot(3),
                         .wire = DType::fp32,
                         .waits = {first}});
  Recorder recorder;
  simulate(std::make_shared<const Program>(std::move(hand.builder).build()), h100, recorder);
  EXPECT_EQ(recorder.makespan().time_since_epoch(), 2 * p2p_time(h100.link.peer, block));
}

TEST(FluidMachine, TransfersBetweenTheRootsOfATreeShareTheirWire) {
  // GPUs 0-3 and 4-7 are on different roots, so with a shift of 4 every transfer crosses between them, four in each
  // direction.
  const Machine tree = machine("hardware/pcie-rtx-pro-6000.yaml");
  const PeerParameters& far = peer_between(tree, 0, 4);
  expect_all_near(simultaneous_times(tree, 8, {4}), at_rate(far, far.rate.value.value / 4));
}

// Dynamic interference slows a schedule no more than static interference, which assumes every possible overlap.
TEST(FluidMachine, DynamicIsBetweenNoneAndStatic) {
  const Machine h100 = machine("hardware/h100-sxm.yaml");
  const auto program =
      std::make_shared<const Program>(generate(operation_of(Scope::mlp, true), 8, commfuse_strategy, {}));
  const Sizes sizes = bind_sizes(
      *program, quantities_of(load_model(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml"), {.seq = 32768}));
  const std::vector<Meetings> meetings = meetings_of(*program, Order(*program, 0));
  const Plan plan = plan_of(lower(program));
  Recorder recorder;
  const auto makespan = [&](Interference interference) {
    Engine{}.run(plan, price(*program, meetings, sizes, h100, {.interference = interference}), recorder);
    return recorder.makespan().time_since_epoch();
  };
  const Duration none = makespan(Interference::none);
  const Duration fixed = makespan(Interference::constant);
  const Fluid fluid = price_fluid(*program, meetings_of(*program, Order(*program, 0)), sizes, h100, {},
                                  std::make_shared<const Wiring>(wiring_of(*program, h100)));
  Engine{}.run(plan, fluid.costs, recorder, {.fluid = &fluid});
  const Duration dynamic = recorder.makespan().time_since_epoch();
  EXPECT_GT(dynamic, none);
  EXPECT_LT(dynamic, fixed);
}

}  // namespace
}  // namespace commfuse::test
