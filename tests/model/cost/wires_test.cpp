// SPDX-License-Identifier: Apache-2.0
// Tests that exchanges of several lanes share a GPU's port and its wires.
#include "model/cost/wires.h"

#include <gtest/gtest.h>

#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "model/cost/price.h"
#include "model/hardware/topology.h"
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
struct PricedGate {
  PricedGate(std::int32_t ranks, const StrategyOptions& options, const Machine& on,
             const PriceOptions& price_options = {})
      : program(generate(operation_of(Scope::gate_up, true), ranks, commfuse_strategy, options)),
        sizes(bind_sizes(program, quantities_of(load_model(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml"),
                                                {.seq = 32768}))),
        costs(price(program, meetings_of(program, Order(program, 0)), sizes, on, price_options)) {}

  /// Returns the exchanges, in program order.
  [[nodiscard]] std::vector<std::size_t> exchanges() const {
    std::vector<std::size_t> ops;
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      if (program.ops[op].kind == OpKind::exchange) {
        ops.push_back(op);
      }
    }
    return ops;
  }

  Program program;
  Sizes sizes;
  Costs costs;
};

constexpr StrategyOptions halves{.lanes = 2, .directions = Directions::halves};

BytesPerSecond part(const Parameter<BytesPerSecond>& rate, int of) { return {rate.value.value / of}; }

// Seven peers on two lanes: three pairs of transfers, then a single transfer to the last peer.
TEST(Wires, AreOnePortForAllLanesOfASwitch) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  for (const std::int32_t lanes : {1, 2, 7}) {
    const PricedGate priced(8, direct_form(lanes), h100);
    const std::vector<std::size_t> exchanges = priced.exchanges();
    ASSERT_EQ(exchanges.size(), 7U);
    for (std::size_t i = 0; i < 7; ++i) {
      const int concurrent = lanes == 2 && i == 6 ? 1 : lanes;
      EXPECT_EQ(priced.costs.duration[exchanges[i]],
                p2p_time(h100.link.peer, gate_shard(8), part(h100.link.peer.rate, concurrent)))
          << lanes;
      EXPECT_EQ(priced.costs.undisturbed[exchanges[i]], priced.costs.duration[exchanges[i]]);
    }
  }
}

TEST(Wires, AreOnePerPeerOfAMeshUpToTheirSum) {
  const Machine mesh = mesh_of_wires();
  for (const std::int32_t lanes : {1, 4, 7}) {  // 4 x 28 is less than 137, 7 x 28 is not
    const PricedGate priced(8, direct_form(lanes), mesh);
    for (const std::size_t op : priced.exchanges()) {
      EXPECT_EQ(priced.costs.duration[op],
                p2p_time(mesh.link.peer, gate_shard(8), BytesPerSecond{std::min(28e9, 137e9 / lanes)}))
          << lanes;
    }
  }
}

TEST(Wires, AreSharedByLanesToTheSamePeer) {
  // With two ranks, both halves go to the same peer over one wire. With four ranks, they use two wires.
  const Machine mesh = mesh_of_wires();
  const PricedGate two(2, halves, mesh);
  const PricedGate four(4, halves, mesh);
  PeerParameters half = mesh.link.peer;
  half.rate.value.value /= 2;
  for (const std::size_t op : two.exchanges()) {
    EXPECT_EQ(two.costs.duration[op], p2p_time(half, Bytes{gate_shard(2).count / 2}));
  }
  for (const std::size_t op : four.exchanges()) {
    EXPECT_EQ(four.costs.duration[op], p2p_time(mesh.link.peer, Bytes{gate_shard(4).count / 2}));
  }
}

TEST(Wires, AreSharedWithoutInterferenceToo) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const PricedGate disturbed(8, direct_form(7), h100);
  const PricedGate undisturbed(8, direct_form(7), h100, {.interference = Interference::none});
  for (const std::size_t op : disturbed.exchanges()) {
    EXPECT_EQ(disturbed.costs.duration[op], undisturbed.costs.duration[op]);
  }
}

TEST(Wires, AcrossNodesDifferFromWiresInsideANode) {
  // In nested rings the outer transfer has the network to itself, and the inner transfers have the node.
  const Machine cluster = shipped_machine("clusters/dgx-h100-x2.yaml");
  const PricedGate nested(16, {.inner = 8}, cluster);
  for (const std::size_t op : nested.exchanges()) {
    const auto& exchange = std::get<ExchangeShape>(nested.program.shapes[nested.program.ops[op].shape]);
    const PeerParameters& peer = exchange.axis == 0 ? cluster.network->peer : cluster.link.peer;
    EXPECT_EQ(nested.costs.of(3, op), p2p_time(peer, gate_shard(16)));
  }
  // A ring in both directions: rank 7 sends across to rank 8 and inside to rank 6; rank 3 sends both messages inside.
  const PricedGate ring(16, halves, cluster);
  const Bytes half{gate_shard(16).count / 2};
  const std::vector<std::size_t> ops = ring.exchanges();
  EXPECT_EQ(ring.costs.of(7, ops[0]), p2p_time(cluster.network->peer, half));
  // Rank 6 receives from ranks 7 and 5 through one port, though rank 7 sends nothing else inside its node.
  EXPECT_EQ(ring.costs.of(7, ops[1]), p2p_time(cluster.link.peer, half, part(cluster.link.peer.rate, 2)));
  EXPECT_EQ(ring.costs.of(3, ops[0]), p2p_time(cluster.link.peer, half, part(cluster.link.peer.rate, 2)));
  EXPECT_EQ(ring.costs.of(8, ops[1]), p2p_time(cluster.network->peer, half));
}

/// Returns two roots, each with one bridge of four GPUs. A pair gets 20 of a wire's 25 GB/s, or 8 of the 10 GB/s
/// between the roots.
Machine two_roots() {
  Machine machine = shipped_machine("hardware/h100-sxm.yaml");
  machine.link.peer.rate.value = BytesPerSecond{20e9};
  machine.link.peer.aggregate_rate.value = BytesPerSecond{20e9};
  machine.link.peer.small.reset();
  const Topology topology = build_topology({.kind = NodeKind::pcie_tree,
                                            .gpus_per_node = 8,
                                            .gpu_rate = BytesPerSecond{25e9},
                                            .gpus_per_bridge = 4,
                                            .bridges_per_root = 1,
                                            .bridge_rate = {.value = BytesPerSecond{25e9}},
                                            .root_rate = Parameter<BytesPerSecond>{.value = BytesPerSecond{10e9}}});
  machine.pair_peers = pair_peers_of(topology, 8, machine.link.peer);
  machine.topology = std::make_shared<const Topology>(topology);
  return machine;
}

// In step s a GPU sends to the GPU s places ahead, so min(s, 8 - s) GPUs of each root send across to the other root. A
// single transfer between the roots has 20 x 10 / 25 = 8 GB/s, which is also the total rate of all transfers between
// them.
TEST(Wires, BetweenRootsAreSharedByAllTransfersAcross) {
  const Machine tree = two_roots();
  const PricedGate priced(8, direct_form(1), tree);
  const std::vector<std::size_t> exchanges = priced.exchanges();
  for (std::size_t i = 0; i < exchanges.size(); ++i) {
    const int step = static_cast<int>(i) + 1;
    const int crossing = std::min(step, 8 - step);
    for (const Rank rank : {0, 3, 4, 7}) {
      const bool crosses = (rank % 4 + step) / 4 % 2 == 1;
      const BytesPerSecond rate{crosses ? 8e9 / crossing : 20e9};
      EXPECT_EQ(priced.costs.of(rank, exchanges[i]), p2p_time(tree.link.peer, gate_shard(8), rate))
          << step << ' ' << rank;
    }
  }
}

// A node has eight GPUs and two NICs; in the step of distance eight, all GPUs send to the other node, four through each
// NIC.
TEST(Wires, IncludeNicsThatTheGpusOfANodeShare) {
  const Machine cluster = shipped_machine("clusters/a100-100g-x2.yaml");
  const PricedGate priced(16, direct_form(1), cluster);
  const std::vector<std::size_t> exchanges = priced.exchanges();
  const PeerParameters& nic = cluster.network->peer;
  for (const Rank rank : {0, 7, 8, 15}) {
    EXPECT_EQ(priced.costs.of(rank, exchanges[7]), p2p_time(nic, gate_shard(16), part(nic.rate, 4))) << rank;
  }
  EXPECT_EQ(priced.costs.of(7, exchanges[0]),
            p2p_time(nic, gate_shard(16)));  // Only this GPU of its node sends across.
}

// The engine itself shares wires, so its prices are for exchanges that run alone.
TEST(Wires, AreNotSharedInPricesForTheEngine) {
  const Machine cluster = shipped_machine("clusters/a100-100g-x2.yaml");
  const PricedGate priced(16, direct_form(1), cluster, {.interference = Interference::dynamic});
  EXPECT_EQ(priced.costs.of(0, priced.exchanges()[7]), p2p_time(cluster.network->peer, gate_shard(16)));
}

// Nodes repeat, so the prices of the first node hold for all.
TEST(Wires, HaveEqualPricesInEqualNodes) {
  const Machine cluster = shipped_machine("clusters/dgx-h100-x2.yaml");
  const PricedGate priced(16, direct_form(3), cluster);
  EXPECT_EQ(priced.costs.by_rank.size(), 8 * priced.program.ops.size());
  EXPECT_EQ(priced.costs.of(3, 5), priced.costs.of(11, 5));
}

TEST(Wires, CountTowardsProvenanceWhereTheyAreShared) {
  // One lane never uses the rate that all peers get together.
  Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  h100.link.peer.aggregate_rate.provenance = Provenance::measured;
  const auto measured = [&](const StrategyOptions& options) {
    return provenances_of(PricedGate(8, options, h100).program, h100,
                          {})[static_cast<std::size_t>(Provenance::measured)];
  };
  EXPECT_FALSE(measured({}));
  EXPECT_FALSE(measured(direct_form(1)));
  EXPECT_TRUE(measured(direct_form(2)));
  EXPECT_TRUE(measured(halves));
}

TEST(Wires, SixtyFourRanksOnSixtyThreeLanesHaveSixtyTwoRivals) {
  const Program program = generate(operation_of(Scope::gate_up, true), 64, commfuse_strategy, direct_form(63));
  const std::vector<Meetings> meetings = meetings_of(program, Order(program, 0));
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    EXPECT_EQ(meetings[op].rivals.size(), program.ops[op].kind == OpKind::exchange ? 62U : 0U);
  }
}

}  // namespace
}  // namespace commfuse
