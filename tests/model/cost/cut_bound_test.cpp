// SPDX-License-Identifier: Apache-2.0
// Tests the bound set by the bytes over the busiest wire, for several topologies, against sums worked out by hand.
#include "model/cost/cut_bound.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/cost/wire_loads.h"
#include "model/strategies/scope.h"
#include "tests/model/hardware/made_links.h"

namespace commfuse {
namespace {

using test::gigabytes;

/// Scope gate_up of a toy model; a shard of the tokens has 1 MB.
struct Case {
  Case(std::int32_t ranks, const char* strategy, const StrategyOptions& options)
      : program(generate(operation_of(Scope::gate_up, false), ranks, *find_strategy(strategy), options)),
        sizes(bind_sizes(program,
                         quantities_of({.hidden = 500, .ffn = 64 * ranks, .heads = 1, .kv_heads = 1, .head_dim = 500},
                                       {.seq = 1000 * ranks}))) {}

  [[nodiscard]] Cut on(const Machine& machine) const { return CutBound(program, machine).at(program, sizes); }

  Program program;
  Sizes sizes;
};

Machine wired(const TopologyPlan& plan) {
  Machine machine{
      .name = "made", .link = test::link(100, 200), .gpus_per_node = plan.gpus_per_node, .nodes = plan.nodes};
  machine.link.nominal_rate.value = plan.gpu_rate;
  machine.link.capacity = plan.gpu_rate;
  if (plan.nodes > 1) {
    machine.network = test::link(10, 40);
    machine.network->capacity = plan.nic_rate;
    machine.nics_per_node = plan.nics_per_node;
  }
  machine.topology = std::make_shared<const Topology>(build_topology(plan));
  machine.pair_peers = pair_peers_of(*machine.topology, plan.gpus_per_node, machine.link.peer);
  return machine;
}

Machine one_switch(int gpus) { return wired({.gpus_per_node = gpus, .gpu_rate = gigabytes(100)}); }

constexpr StrategyOptions ring_options{};
constexpr StrategyOptions direct_options{.form = Form::direct};

// Without sums in the switch, each port carries 7 shards of partial sums and 7 of complete sums, otherwise 9 shards.
TEST(CutBound, CountsSumsInTheSwitchOfAnAllReduceInAKernel) {
  const Program program = generate(operation_of(Scope::down_ar, false), 8, fused_kernel_strategy, {});
  const Sizes sizes = bind_sizes(
      program, quantities_of({.hidden = 1000, .ffn = 512, .heads = 1, .kv_heads = 1, .head_dim = 500}, {.seq = 4000}));
  Machine machine = one_switch(8);
  EXPECT_DOUBLE_EQ(CutBound(program, machine).at(program, sizes).seconds, 14e6 / 100e9);
  NcclKernels kernels;
  kernels.nvls.emplace();
  machine.link.collective.nccl = std::make_shared<const NcclKernels>(kernels);
  EXPECT_DOUBLE_EQ(CutBound(program, machine).at(program, sizes).seconds, 9e6 / 100e9);
  for (const double seconds_per_byte : seconds_per_byte_in_kernel(program, machine)) {
    EXPECT_DOUBLE_EQ(seconds_per_byte, 9.0 / 14.0 / 100e9);
  }
  TopologyPlan mesh{.gpus_per_node = 8, .gpu_rate = gigabytes(100)};
  mesh.kind = NodeKind::full_mesh;
  machine.plan = std::make_shared<const TopologyPlan>(mesh);
  EXPECT_DOUBLE_EQ(CutBound(program, machine).at(program, sizes).seconds, 14e6 / 100e9);
  EXPECT_EQ(crossings_with_switch_sums(2), 1.5);  // between two ranks the switch saves nothing
}

// In every schedule a GPU receives 7 MB at 100 GB/s.
TEST(CutBound, IsThePortOfASwitch) {
  for (const auto& [strategy, options] :
       {std::pair("serial", ring_options), std::pair("commfuse", ring_options), std::pair("commfuse", direct_options),
        std::pair("fused_kernel", ring_options)}) {
    const Cut cut = Case(8, strategy, options).on(one_switch(8));
    EXPECT_DOUBLE_EQ(cut.seconds, 7e6 / 100e9) << strategy;
  }
}

// A bridge has two GPUs and a wire of 60 GB/s, and each GPU receives 1 MB from each of the six GPUs elsewhere. A ring
// crosses a bridge once per step, seven times, and every port as often.
TEST(CutBound, IsTheBridgeOfATreeWhereManyCrossIt) {
  const Machine tree = wired(test::pcie_tree());
  EXPECT_DOUBLE_EQ(Case(8, "commfuse", ring_options).on(tree).seconds, 7e6 / 60e9);
  const Case direct_case(8, "commfuse", direct_options);
  const CutBound bound(direct_case.program, tree);
  const Cut cut = bound.at(direct_case.program, direct_case.sizes);
  EXPECT_DOUBLE_EQ(cut.seconds, 12e6 / 60e9);
  EXPECT_EQ(cut.wire, "the link between a bridge and a root");
}

// The bridge's rate of 30 GB/s is measured. A transfer in a kernel crosses once for both GPUs of a bridge, so
// the bridge carries 6 MB at 30 GB/s and the wire between the roots 4 MB at 20 GB/s, in the same time.
TEST(CutBound, AKernelTakesAsLongAsItsBusiestWire) {
  const Machine tree = wired(test::pcie_tree());
  for (const std::int32_t blocks : {1, 2, 4}) {
    const Case fused(8, "fused_kernel", {.sub_slices = blocks});
    const std::vector<double> by_op = seconds_per_byte_in_kernel(fused.program, tree);
    double seconds = 0.0;
    for (std::size_t op = 0; op < fused.program.ops.size(); ++op) {
      seconds += fused.program.ops[op].kind == OpKind::exchange ? by_op[op] * 1e6 / blocks : 0.0;
    }
    EXPECT_NEAR(seconds, 4e6 / 20e9, 1e-15) << blocks;
    EXPECT_DOUBLE_EQ(fused.on(tree).seconds, 7e6 / 60e9);
  }
}

// Partial sums that are added on the way cross a wire once too, in the other direction.
TEST(CutBound, SumsInAKernelCrossOnce) {
  const Machine tree = wired(test::pcie_tree());
  const Program program = generate(operation_of(Scope::down, false), 8, fused_kernel_strategy, {.sub_slices = 2});
  const std::vector<KernelSet> sets = kernel_sets_of(program);
  ASSERT_EQ(sets.size(), 2U);
  const CountedWires wires(program, tree);
  for (const KernelSet& set : sets) {
    EXPECT_FALSE(set.gathers);
    EXPECT_EQ(set.ops.size(), 7U);
    const std::vector<double> crossings = crossings_of(program, wires, set);
    EXPECT_EQ(crossings[wires.port(3, false)], 7.0);
    EXPECT_EQ(crossings[wires.port(3, true)], 1.0);
    double busiest_link = 0.0;
    for (std::size_t wire = 0; wire < wires.port(0, false); ++wire) {
      busiest_link = std::max(busiest_link, crossings[wire]);
    }
    EXPECT_EQ(busiest_link, 7.0);  // This is the wire from a GPU to its bridge.
  }
}

TopologyPlan plan_of_two_nodes(int nics) {
  return {.gpus_per_node = 4, .gpu_rate = gigabytes(100), .nodes = 2, .nics_per_node = nics, .nic_rate = gigabytes(10)};
}

// Four ranks per node. A ring sends 7 MB to the next node through one NIC. In the direct form every GPU receives 4 MB
// from the other node, through its own NIC, a NIC that two GPUs share, or the node's only NIC. With a collective or
// a fused kernel, a node receives these bytes once: 4 MB over all NICs.
TEST(CutBound, IsTheNicsBetweenNodes) {
  for (const int nics : {4, 2, 1}) {
    const Machine cluster = wired(plan_of_two_nodes(nics));
    EXPECT_DOUBLE_EQ(Case(8, "commfuse", ring_options).on(cluster).seconds, 7e6 / 10e9) << nics;
    EXPECT_DOUBLE_EQ(Case(8, "commfuse", direct_options).on(cluster).seconds, 4e6 * (4.0 / nics) / 10e9) << nics;
    const Case serial(8, "serial", ring_options);
    EXPECT_DOUBLE_EQ(serial.on(cluster).seconds, std::max(4e6 / (nics * 10e9), 7e6 / 110e9)) << nics;
    EXPECT_DOUBLE_EQ(Case(8, "fused_kernel", ring_options).on(cluster).seconds,
                     std::max(4e6 / (nics * 10e9), 7e6 / 110e9));
  }
}

// One node represents all where possible: three nodes of four ranks, but not nine ranks, whose last node has only one.
TEST(CutBound, IsTheSameForOneNodeAsForAllNodes) {
  TopologyPlan plan = plan_of_two_nodes(4);
  plan.nodes = 3;
  const Machine cluster = wired(plan);
  const Case whole(12, "commfuse", direct_options);
  EXPECT_EQ(CountedWires(whole.program, cluster).counted_ranks(), 4);
  EXPECT_DOUBLE_EQ(whole.on(cluster).seconds, 8e6 / 10e9);
  const Case ragged(9, "commfuse", direct_options);
  EXPECT_EQ(CountedWires(ragged.program, cluster).counted_ranks(), 9);
  EXPECT_DOUBLE_EQ(ragged.on(cluster).seconds, 8e6 / 10e9);  // the last node has one GPU
}

TEST(CutBoundDeathTest, ATimeBelowTheBoundNamesTheWire) {
  const Case direct_case(8, "commfuse", direct_options);
  const CutBound bound(direct_case.program, wired(test::pcie_tree()));
  const Cut cut = bound.at(direct_case.program, direct_case.sizes);
  require_above_cut(std::chrono::nanoseconds(200'001), cut);
  EXPECT_DEATH(require_above_cut(std::chrono::nanoseconds(199'990), cut),
               "nothing is faster than its wires: 199.99 us, where the bytes over the link between a bridge and a root "
               "take 200 us at least");
}

TEST(CutBound, NeedsATopology) { EXPECT_EQ(Case(8, "commfuse", direct_options).on(test::two_nodes()).seconds, 0.0); }

}  // namespace
}  // namespace commfuse
