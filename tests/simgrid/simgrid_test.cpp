// SPDX-License-Identifier: Apache-2.0
// Runs the same flows in the dynamic engine and in SimGrid: each op must end at the same time in both.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <ostream>
#include <random>
#include <string>

#include "model/check.h"
#include "model/config/catalogue.h"
#include "model/strategies/scope.h"
#include "tests/model/hardware/made_links.h"
#include "tests/sim/engine/flows.h"
#include "tests/sim/random_program.h"
#include "tests/simgrid/simgrid_run.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;
using MakeProgram = std::shared_ptr<const Program> (*)(std::int32_t ranks, std::int32_t kilobytes);

/// Largest difference, as a share of an op's end. The engine rounds the duration of an undisturbed transfer to a
/// picosecond, and sharing multiplies the error of up to half a picosecond: by up to 72, when 144 transfers share an
/// uplink of twice their rate. They end after at least 12 us.
constexpr double largest_allowed = 3e-6;

/// Returns eight GPUs per node on a switch, two for each NIC, with uplinks of half the total rate of the NICs.
Machine rails(int nodes) {
  Machine machine{.name = "rails",
                  .link = link(361, 375),
                  .gpus_per_node = 8,
                  .nodes = nodes,
                  .network = link(43, 40),
                  .nics_per_node = 4};
  machine.network->peer.latency.value = 12us;
  machine.topology = std::make_shared<const Topology>(build_topology({.gpus_per_node = 8,
                                                                      .gpu_rate = gigabytes(450),
                                                                      .nodes = nodes,
                                                                      .nics_per_node = 4,
                                                                      .nic_rate = gigabytes(50),
                                                                      .fabric = FabricKind::rails,
                                                                      .leaf_rate = gigabytes(25 * nodes)}));
  return machine;
}

Machine tree(int) { return load_machine(COMMFUSE_SOURCE_DIR "/configs/hardware/pcie-rtx-pro-6000.yaml"); }

/// Scales a size by a factor from 0.4 to 1.6 that depends on the lane or step.
std::int32_t varied(std::int32_t kilobytes, std::int32_t step) { return kilobytes * (2 + step * 5 % 7) / 5; }

/// Returns a program in which every rank sends its shard to all other ranks simultaneously.
std::shared_ptr<const Program> direct(std::int32_t ranks, std::int32_t kilobytes) {
  FlowProgram program(ranks, kilobytes);
  for (std::int32_t shift = 1; shift < ranks; ++shift) {
    program.from_all(static_cast<std::uint16_t>(shift - 1), shift, kilobytes);
  }
  return std::move(program).build();
}

std::shared_ptr<const Program> uneven_direct(std::int32_t ranks, std::int32_t kilobytes) {
  FlowProgram program(ranks, 2 * kilobytes);
  for (std::int32_t shift = 1; shift < ranks; ++shift) {
    program.from_all(static_cast<std::uint16_t>(shift - 1), shift, varied(kilobytes, shift));
  }
  return std::move(program).build();
}

/// Returns a program in which every rank passes a shard to the next one, ranks - 1 times.
std::shared_ptr<const Program> ring(std::int32_t ranks, std::int32_t kilobytes) {
  FlowProgram program(ranks, kilobytes);
  for (std::int32_t step = 1; step < ranks; ++step) {
    program.from_all(0, 1, kilobytes);
  }
  return std::move(program).build();
}

/// Returns a program of three concurrent rings: two in opposite directions and one that skips every second rank.
std::shared_ptr<const Program> uneven_rings(std::int32_t ranks, std::int32_t kilobytes) {
  FlowProgram program(ranks, 2 * kilobytes);
  for (std::int32_t step = 1; step < ranks; ++step) {
    program.from_all(0, 1, varied(kilobytes, step));
    program.from_all(1, ranks - 1, varied(kilobytes, step + 2));
    program.from_all(2, 2, varied(kilobytes, step + 4));
  }
  return std::move(program).build();
}

/// Difference between the ends of ops in the two simulators.
struct Difference {
  double largest = 0.0;  // share of SimGrid's end
  std::size_t ops = 0;

  void add(const Difference& other) {
    largest = std::max(largest, other.largest);
    ops += other.ops;
  }
};

/// Compares all ops of all ranks.
Difference difference(const Lowered& lowered, const Sizes& sizes, const Fluid& fluid) {
  Recorder recorder(Recorder::Keep::timeline);
  Engine{}.run(plan_of(lowered), fluid.costs, recorder, {.fluid = &fluid});
  const Timeline timeline = recorder.timeline();
  const std::vector<double> simgrid_ends = ends_in_simgrid(lowered, sizes, fluid);
  check(timeline.size() == simgrid_ends.size(), "both simulators run every op");
  Difference result{.ops = timeline.size()};
  for (std::size_t i = 0; i < timeline.size(); ++i) {
    const double end = static_cast<double>(timeline[i].end.time_since_epoch().count()) * 1e-12;
    result.largest = std::max(result.largest, std::abs(end - simgrid_ends[i]) / simgrid_ends[i]);
  }
  return result;
}

Difference difference_of_flows(const std::shared_ptr<const Program>& program, const Machine& machine) {
  return difference(lower(program), sizes_of_flows(), priced_flows(*program, machine));
}

void expect_equal_ends(const Difference& difference) {
  std::printf("%zu ops, largest relative difference %.1e\n", difference.ops, difference.largest);
  EXPECT_LE(difference.largest, largest_allowed);
}

struct Case {
  const char* name;
  Machine (*machine)(int nodes);
  int nodes;
  std::int32_t ranks;
  MakeProgram program;
};

/// Prints names of tests, which would otherwise be addresses. GoogleTest requires this function name.
void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }  // NOLINT(readability-identifier-naming)

class SameFlows : public testing::TestWithParam<Case> {};

TEST_P(SameFlows, EndAsInSimGrid) {
  const Case& tested = GetParam();
  const Machine machine = tested.machine(tested.nodes);
  Difference total;
  for (const std::int32_t kilobytes : {64, 1000, 16777, 250'000}) {
    total.add(difference_of_flows(tested.program(tested.ranks, kilobytes), machine));
  }
  expect_equal_ends(total);
}

INSTANTIATE_TEST_SUITE_P(SimGrid, SameFlows,
                         testing::Values(Case{"direct_on_2_nodes_of_rails", rails, 2, 16, direct},
                                         Case{"direct_on_4_nodes_of_rails", rails, 4, 32, direct},
                                         Case{"uneven_direct_on_2_nodes_of_rails", rails, 2, 16, uneven_direct},
                                         Case{"uneven_direct_on_4_nodes_of_rails", rails, 4, 32, uneven_direct},
                                         Case{"ring_on_2_nodes_of_rails", rails, 2, 16, ring},
                                         Case{"ring_on_4_nodes_of_rails", rails, 4, 32, ring},
                                         Case{"uneven_rings_on_2_nodes_of_rails", rails, 2, 16, uneven_rings},
                                         Case{"uneven_rings_on_4_nodes_of_rails", rails, 4, 32, uneven_rings},
                                         Case{"direct_on_4_gpus_of_a_tree", tree, 1, 4, direct},
                                         Case{"direct_on_8_gpus_of_a_tree", tree, 1, 8, direct},
                                         Case{"uneven_direct_on_4_gpus_of_a_tree", tree, 1, 4, uneven_direct},
                                         Case{"uneven_direct_on_8_gpus_of_a_tree", tree, 1, 8, uneven_direct},
                                         Case{"ring_on_4_gpus_of_a_tree", tree, 1, 4, ring},
                                         Case{"ring_on_8_gpus_of_a_tree", tree, 1, 8, ring},
                                         Case{"uneven_rings_on_4_gpus_of_a_tree", tree, 1, 4, uneven_rings},
                                         Case{"uneven_rings_on_8_gpus_of_a_tree", tree, 1, 8, uneven_rings}),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// Shows the difference that remains if the engine has nothing to round: 64 kB take 160 ns at 400 GB/s, 1.6 us at 40.
TEST(SimGrid, WholePicosecondsLeaveNoDifference) {
  Machine machine = rails(4);
  machine.link.peer.rate.value = gigabytes(400);
  machine.network->peer.rate.value = gigabytes(40);
  Difference total;
  total.add(difference_of_flows(direct(32, 64), machine));
  total.add(difference_of_flows(ring(32, 64), machine));
  expect_equal_ends(total);
  EXPECT_LE(total.largest, 1e-13);
}

/// Returns up to 40 transfers of 1 kB to 20 MB between any two GPUs.
std::shared_ptr<const Program> random_flows(std::mt19937_64& random, std::int32_t ranks) {
  FlowProgram program(ranks, 20'000);
  const std::int64_t flows = 1 + below(random, 40);
  for (std::uint16_t lane = 0; lane < flows; ++lane) {
    const auto from = static_cast<std::int32_t>(below(random, ranks));
    const auto distance = static_cast<std::int32_t>(1 + below(random, ranks - 1));
    const auto kilobytes = static_cast<std::int32_t>(1 + below(random, one_in(random, 2) ? 20'000 : 200));
    program.from_one(lane, {from, (from + distance) % ranks, kilobytes});
  }
  return std::move(program).build();
}

TEST(SimGrid, RandomFlowsEndAsInSimGrid) {
  std::mt19937_64 random(37);
  Difference total;
  for (int round = 0; round < 50; ++round) {
    total.add(difference_of_flows(random_flows(random, 8), tree(1)));
    total.add(difference_of_flows(random_flows(random, 16), rails(2)));
  }
  expect_equal_ends(total);
}

/// Transfers of a generated schedule start when kernels end. Kernels keep their speed, as they do in SimGrid.
TEST(SimGrid, GeneratedSchedulesEndAsInSimGrid) {
  const Transformer model = load_model(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml");
  const Machine machine = tree(1);
  Difference total;
  for (const Scope scope : {Scope::gate_up, Scope::down, Scope::mlp}) {
    const auto program = std::make_shared<const Program>(generate(operation_of(scope, true), 8, commfuse_strategy, {}));
    const Sizes sizes = bind_sizes(*program, quantities_of(model, {.seq = 8192}));
    Fluid fluid = price_fluid(*program, meetings_of(*program, Order(*program, 0)), sizes, machine, {},
                              std::make_shared<const Wiring>(wiring_of(*program, machine)));
    fluid.costs.issue.assign(program->ops.size(), Duration{});
    fluid.speeds = {};
    total.add(difference(lower(program), sizes, fluid));
  }
  expect_equal_ends(total);
}

}  // namespace
}  // namespace commfuse::test
