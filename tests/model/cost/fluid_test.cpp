// SPDX-License-Identifier: Apache-2.0
// Tests the description of a machine that an engine with shared links uses.
#include "model/cost/fluid.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "model/strategies/scope.h"
#include "tests/model/cost/gate_exchanges.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::direct_form;
using test::gate_shard;
using test::mesh_of_wires;
using test::shipped_machine;

/// Prices scope gate_up of Llama-3.1-70B with 32K tokens.
struct Gate {
  Gate(std::int32_t ranks, const StrategyOptions& options, const Machine& on, const char* strategy = "commfuse",
       Forwarding forwarding = Forwarding::cut_through)
      : program(generate(operation_of(Scope::gate_up, true), ranks, *find_strategy(strategy), options)),
        sizes(bind_sizes(program, quantities_of(load_model(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml"),
                                                {.seq = 32768}))),
        fluid(price_fluid(program, meetings_of(program, Order(program, 0)), sizes, on, {},
                          std::make_shared<const Wiring>(wiring_of(program, on, forwarding)))) {}

  [[nodiscard]] Costs priced(const Machine& on, Interference interference) const {
    return price(program, meetings_of(program, Order(program, 0)), sizes, on, {.interference = interference});
  }
  [[nodiscard]] std::size_t first(OpKind kind) const {
    const auto first_op =
        std::find_if(program.ops.begin(), program.ops.end(), [&](const Op& op) { return op.kind == kind; });
    return static_cast<std::size_t>(first_op - program.ops.begin());
  }

  Program program;
  Sizes sizes;
  Fluid fluid;
};

TEST(Fluid, CostsAreForOpsThatRunAlone) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const Gate gate(8, {}, h100);
  EXPECT_EQ(gate.fluid.costs.duration, gate.priced(h100, Interference::none).duration);
  EXPECT_EQ(gate.fluid.costs.issue, gate.priced(h100, Interference::none).issue);
  const Gate seven(8, direct_form(7), h100);
  EXPECT_EQ(seven.fluid.costs.duration[seven.first(OpKind::exchange)], p2p_time(h100.link.peer, gate_shard(8)));
  EXPECT_EQ(seven.fluid.costs.duration, seven.priced(h100, Interference::dynamic).duration);
}

TEST(Fluid, ASpeedIsTheFactorOfStaticInterference) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const Gate gate(8, {}, h100);
  const std::size_t gemm = gate.first(OpKind::gemm);
  const Costs slowed = gate.priced(h100, Interference::constant);
  ASSERT_GT(slowed.duration[gemm], gate.fluid.costs.duration[gemm]);
  EXPECT_EQ(gate.fluid.speed_of(1, 0, gemm), static_cast<double>(gate.fluid.costs.duration[gemm].count()) /
                                                 static_cast<double>(slowed.duration[gemm].count()));
  EXPECT_EQ(gate.fluid.speed_of(1, 0, gate.first(OpKind::exchange)), 1.0);
  EXPECT_EQ(gate.fluid.speed_of(2, 0, gemm), 1.0);  // The program has no collective.
  const Gate serial(8, {}, h100, "serial");
  EXPECT_LT(serial.fluid.speed_of(2, 3, serial.first(OpKind::gemm)), 1.0);
}

/// Returns the cap of a stage of an exchange, followed by the capacities of its links, in GB/s.
std::vector<double> rates_of_stage(const Fluid& fluid, Rank rank, std::size_t op, std::uint32_t stage = 0) {
  const WirePath* path = fluid.wiring->path_of(rank, op);
  const WireStage& wire_stage = fluid.wiring->stages[path->first_stage + stage];
  std::vector<double> capacities{wire_stage.cap / 1e9};
  for (const std::int32_t link : fluid.wiring->links_of(wire_stage)) {
    capacities.push_back(fluid.wiring->capacity[static_cast<std::size_t>(link)] / 1e9);
  }
  return capacities;
}

TEST(Fluid, OnASwitchAPairPassesTwoPortsAndTwoWires) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const Gate gate(8, {}, h100);
  const std::size_t exchange = gate.first(OpKind::exchange);
  EXPECT_EQ(gate.fluid.wiring->path_of(2, exchange)->latency, h100.link.peer.latency.value);
  // The order is cap, port, wire, wire, port.
  EXPECT_EQ(rates_of_stage(gate.fluid, 2, exchange), std::vector<double>(5, 361.0));
}

TEST(Fluid, OnAMeshAPairHasAWireAndPortsCarryMore) {
  const Machine mesh = mesh_of_wires();
  const Gate gate(8, direct_form(7), mesh);
  EXPECT_EQ(rates_of_stage(gate.fluid, 2, gate.first(OpKind::exchange)),
            (std::vector<double>{28.0, 137.0, 28.0, 137.0}));
}

TEST(Fluid, TransfersOfOppositeDirectionsUseDifferentLinks) {
  const Machine mesh = mesh_of_wires();
  const Gate gate(2, {}, mesh);
  const std::size_t exchange = gate.first(OpKind::exchange);
  const Wiring& wiring = *gate.fluid.wiring;
  const auto links = wiring.links_of(wiring.stages[wiring.path_of(0, exchange)->first_stage]);
  const auto back = wiring.links_of(wiring.stages[wiring.path_of(1, exchange)->first_stage]);
  for (const std::int32_t link : links) {
    EXPECT_EQ(std::count(back.begin(), back.end(), link), 0);
  }
}

TEST(Fluid, AcrossNodesAPairHasTheNetworksRate) {
  const Machine cluster = shipped_machine("clusters/dgx-h100-x2.yaml");
  const Gate gate(16, {}, cluster);
  const std::size_t exchange = gate.first(OpKind::exchange);
  const double network = cluster.network->peer.rate.value.value / 1e9;
  EXPECT_EQ(rates_of_stage(gate.fluid, 7, exchange)[0], network);
  EXPECT_EQ(rates_of_stage(gate.fluid, 6, exchange)[0], 361.0);
  EXPECT_EQ(gate.fluid.wiring->path_of(7, exchange)->latency, cluster.network->peer.latency.value);
  EXPECT_EQ(gate.fluid.costs.of(7, exchange), p2p_time(cluster.network->peer, gate_shard(16)));
}

TEST(Fluid, NoLinkIsSlowerThanALoneTransfer) {
  for (const char* file :
       {"hardware/h100-sxm.yaml", "hardware/pcie-rtx-pro-6000.yaml", "hardware/ascend-910b-mesh.yaml"}) {
    const Machine on = shipped_machine(file);
    for (const Forwarding forwarding : {Forwarding::cut_through, Forwarding::store_and_forward}) {
      const Gate gate(8, direct_form(7), on, "commfuse", forwarding);
      const Wiring& wiring = *gate.fluid.wiring;
      for (const WireStage& stage : wiring.stages) {
        for (const std::int32_t link : wiring.links_of(stage)) {
          EXPECT_GE(wiring.capacity[static_cast<std::size_t>(link)], stage.cap) << file;
        }
      }
    }
  }
}

TEST(Fluid, StoreAndForwardSendsTheBytesOncePerHop) {
  // A transfer through a switch has two hops, each at the peer's rate: twice the time of the bytes.
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const Gate gate(8, {}, h100, "commfuse", Forwarding::store_and_forward);
  const std::size_t exchange = gate.first(OpKind::exchange);
  const WirePath* path = gate.fluid.wiring->path_of(5, exchange);
  ASSERT_EQ(path->stages, 2U);
  EXPECT_EQ(gate.fluid.wiring->stages[path->first_stage].until, 0.5);
  const Duration latency = h100.link.peer.latency.value;
  const Duration once = p2p_time(h100.link.peer, gate_shard(8)) - latency;
  EXPECT_NEAR(static_cast<double>(gate.fluid.costs.of(5, exchange).count()),
              static_cast<double>((latency + 2 * once).count()), 1.0);
}

TEST(Fluid, TransfersInsideAKernelHoldNoWires) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const Gate fused(8, {}, h100, "fused_kernel");
  bool has_kernel_lane = false;
  for (std::size_t op = 0; op < fused.program.ops.size(); ++op) {
    if (fused.program.lanes[fused.program.ops[op].lane].kind == LaneKind::kernel) {
      EXPECT_EQ(fused.fluid.wiring->path_of(0, op), nullptr);
      has_kernel_lane = true;
    }
  }
  EXPECT_TRUE(has_kernel_lane);
}

}  // namespace
}  // namespace commfuse
