// SPDX-License-Identifier: Apache-2.0
// Exchanges of several lanes share what a GPU's port and its wires carry.
#include "model/cost/wires.h"

#include <gtest/gtest.h>

#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "model/cost/price.h"
#include "model/schedule/scope.h"

namespace commfuse {
namespace {

Machine machine(const char* file) { return load_machine(std::string{COMMFUSE_SOURCE_DIR "/configs/"} + file); }

/// Gate and up of Llama-3.1-70B, 32K tokens.
struct Priced {
  Priced(std::int32_t ranks, const StrategyOptions& options, const Machine& on, const PriceOptions& how = {})
      : program(generate(operation_of(Scope::gate_up, true), ranks, *find_strategy("commfuse"), options)),
        sizes(bind_sizes(program, quantities_of(load_model(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml"),
                                                {.seq = 32768}))),
        costs(price(program, meetings_of(program, Order(program, 0)), sizes, on, how)) {}

  /// The exchanges, in program order.
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

Bytes shard(std::int32_t ranks) { return Bytes{32768LL / ranks * 8192 * 2}; }
StrategyOptions direct(std::int32_t lanes) { return {.form = Form::direct, .lanes = lanes}; }
constexpr StrategyOptions halves{.lanes = 2, .directions = Directions::halves};

TEST(Wires, OfASwitchAreOnePortForAllLanes) {
  const Machine h100 = machine("hardware/h100-sxm.yaml");
  for (const std::int32_t lanes : {1, 2, 7}) {
    const Priced priced(8, direct(lanes), h100);
    PeerParameters share = h100.link.peer;
    share.rate.value.value /= lanes;
    for (const std::size_t op : priced.exchanges()) {
      EXPECT_EQ(priced.costs.duration[op], p2p_time(share, shard(8))) << lanes;
      EXPECT_EQ(priced.costs.undisturbed[op], priced.costs.duration[op]);
    }
  }
}

TEST(Wires, OfAMeshAreOneAPeerUpToWhatTheyCarryTogether) {
  const Machine mesh = machine("hardware/ascend-910b-mesh.yaml");
  for (const std::int32_t lanes : {1, 4, 7}) {  // 4 x 28 is less than 137, 7 x 28 is not
    const Priced priced(8, direct(lanes), mesh);
    PeerParameters share = mesh.link.peer;
    share.rate.value.value = std::min(28e9, 137e9 / lanes);
    for (const std::size_t op : priced.exchanges()) {
      EXPECT_EQ(priced.costs.duration[op], p2p_time(share, shard(8))) << lanes;
    }
  }
}

TEST(Wires, ToTheSamePeerAreTheSameWire) {
  // Both halves of two ranks go to the other rank; of four they take two wires.
  const Machine mesh = machine("hardware/ascend-910b-mesh.yaml");
  const Priced two(2, halves, mesh);
  const Priced four(4, halves, mesh);
  PeerParameters half = mesh.link.peer;
  half.rate.value.value /= 2;
  for (const std::size_t op : two.exchanges()) {
    EXPECT_EQ(two.costs.duration[op], p2p_time(half, Bytes{shard(2).count / 2}));
  }
  for (const std::size_t op : four.exchanges()) {
    EXPECT_EQ(four.costs.duration[op], p2p_time(mesh.link.peer, Bytes{shard(4).count / 2}));
  }
}

TEST(Wires, AreSharedWithoutInterferenceToo) {
  const Machine h100 = machine("hardware/h100-sxm.yaml");
  const Priced with(8, direct(7), h100);
  const Priced without(8, direct(7), h100, {.interference = Interference::none});
  for (const std::size_t op : with.exchanges()) {
    EXPECT_EQ(with.costs.duration[op], without.costs.duration[op]);
  }
}

TEST(Wires, AcrossNodesAreNotThoseInside) {
  // Nested rings: the outer transfer has the network for itself, the inner ones the node.
  const Machine cluster = machine("clusters/dgx-h100-x2.yaml");
  const Priced nested(16, {.inner = 8}, cluster);
  for (const std::size_t op : nested.exchanges()) {
    const auto& exchange = std::get<ExchangeShape>(nested.program.shapes[nested.program.ops[op].shape]);
    const PeerParameters& peer = exchange.axis == 0 ? cluster.network->peer : cluster.link.peer;
    EXPECT_EQ(nested.costs.of(3, op), p2p_time(peer, shard(16)));
  }
  // Both ways round one ring: rank 7 sends across to rank 8 and inside to rank 6; rank 3 sends both inside.
  const Priced ring(16, halves, cluster);
  const Bytes half{shard(16).count / 2};
  const std::vector<std::size_t> ops = ring.exchanges();
  EXPECT_EQ(ring.costs.of(7, ops[0]), p2p_time(cluster.network->peer, half));
  EXPECT_EQ(ring.costs.of(7, ops[1]), p2p_time(cluster.link.peer, half));
  EXPECT_EQ(ring.costs.of(3, ops[0]), p2p_time(cluster.link.peer, half, {.port = 2}));
  EXPECT_EQ(ring.costs.of(8, ops[1]), p2p_time(cluster.network->peer, half));
}

TEST(Wires, ThatAreSharedAreLeantOn) {
  // One lane never asks what all peers get together.
  Machine h100 = machine("hardware/h100-sxm.yaml");
  h100.link.peer.aggregate_rate.provenance = Provenance::measured;
  const auto measured = [&](const StrategyOptions& options) {
    return leans_on(Priced(8, options, h100).program, h100, {})[static_cast<std::size_t>(Provenance::measured)];
  };
  EXPECT_FALSE(measured({}));
  EXPECT_FALSE(measured(direct(1)));
  EXPECT_TRUE(measured(direct(2)));
  EXPECT_TRUE(measured(halves));
}

TEST(Wires, SixtyFourRanksOnSixtyThreeLanesArePricedAtOnce) {
  const Program program = generate(operation_of(Scope::gate_up, true), 64, *find_strategy("commfuse"), direct(63));
  const std::vector<Meetings> meetings = meetings_of(program, Order(program, 0));
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    EXPECT_EQ(meetings[op].rivals.size(), program.ops[op].kind == OpKind::exchange ? 62U : 0U);
  }
}

}  // namespace
}  // namespace commfuse
