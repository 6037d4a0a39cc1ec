// SPDX-License-Identifier: Apache-2.0
// Tests that a collective and the exchanges that run at the same time share the wires.
#include "model/cost/contention.h"

#include <gtest/gtest.h>

#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "model/cost/fluid.h"
#include "model/cost/price.h"
#include "model/program/builder.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::shipped_machine;

/// A program with exchanges of `rows` rows on lane 0 along `axis`, and an all-gather on lane 1 along `gathered`.
struct ConcurrentOps {
  ConcurrentOps(const Machine& on, const Mesh& mesh, int exchanges, std::int64_t rows, std::int8_t axis = 0,
                std::int8_t gathered = 0)
      : machine(on) {
    ProgramBuilder builder("concurrent", mesh);
    const std::int32_t members = mesh.axes[static_cast<std::size_t>(gathered)].extent;
    const Extent block{builder.dimension("block", 1), 1};
    const Extent sent{builder.dimension("sent", 1), 1};
    const Extent every_row{builder.dimension("rows", members), members};
    const BufferId shard = builder.buffer("shard", BufferRole::scratch, {every_row.dimension, 1}, block, DType::bf16);
    const BufferId whole = builder.buffer("whole", BufferRole::scratch, every_row, block, DType::bf16);
    const BufferId from = builder.buffer("from", BufferRole::scratch, sent, block, DType::bf16);
    const BufferId to = builder.buffer("to", BufferRole::scratch, sent, block, DType::bf16);
    for (int i = 0; i < exchanges; ++i) {
      builder.exchange({.lane = {LaneKind::comm, 0},
                        .axis = axis,
                        .shift = 1,
                        .send = {builder.whole(from)},
                        .receive = {builder.whole(to)}});
    }
    builder.collective({.lane = {LaneKind::comm, 1},
                        .kind = CollectiveKind::all_gather,
                        .axis = gathered,
                        .in = {builder.whole(shard)},
                        .out = {builder.whole(whole)}});
    program = std::move(builder).build();
    const std::array<Quantity, 3> quantities{{{"block", 4096}, {"sent", rows}, {"rows", members * 1024}}};
    sizes = bind_sizes(program, quantities);
    meetings = meetings_of(program, Order(program, 0));
  }

  [[nodiscard]] Costs costs(bool concurrent = true) const {
    return price(program, concurrent ? meetings : std::vector<Meetings>(meetings.size()), sizes, machine,
                 {.launch = Launch::graph});
  }
  [[nodiscard]] std::size_t collective() const { return program.ops.size() - 1; }

  Machine machine;
  Program program;
  Sizes sizes;
  std::vector<Meetings> meetings;
};

Mesh ring_mesh(std::int32_t ranks) { return Mesh{{{"tp", ranks}}}; }

// Each kernel is delayed by the time for which the shorter one needs the port.
TEST(Contention, DelaysBothKernelsByTheShorterOne) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  for (const std::int64_t rows : {256, 1 << 20}) {
    const ConcurrentOps concurrent(h100, ring_mesh(8), 1, rows);
    const Costs uncontended = concurrent.costs(false);
    const Costs contended = concurrent.costs();
    const Duration gap = h100.accelerator.graph_node_gap.value;
    const Duration exchange = uncontended.duration[0] - gap - p2p_time(h100.link, Bytes{});
    const Duration gather = uncontended.duration[1] - gap - all_gather_time(h100.link.collective, 8, Bytes{});
    EXPECT_EQ(exchange < gather, rows == 256);
    const Duration shorter = std::min(exchange, gather);
    EXPECT_EQ(contended.duration[0], uncontended.duration[0] + shorter);
    EXPECT_EQ(contended.duration[1], uncontended.duration[1] + shorter);
    EXPECT_EQ(contended.undisturbed[0], contended.duration[0]);
    EXPECT_EQ(contended.undisturbed[1], contended.duration[1]);
  }
}

// The latency of the network uses no wires, so an exchange between nodes does not pay it twice.
TEST(Contention, BetweenNodesOmitsTheLatencyOfTheNetwork) {
  const Machine cluster = shipped_machine("clusters/dgx-h100-x2.yaml");
  const Mesh nested{{{"node", 2}, {"gpu", 8}}};
  const Duration latency = p2p_time(cluster.network->peer, Bytes{});
  ASSERT_NE(latency, p2p_time(cluster.link.peer, Bytes{}));
  const ConcurrentOps concurrent(cluster, nested, 1, 16);
  const Costs uncontended = concurrent.costs(false);
  const Costs contended = concurrent.costs();
  const Duration on_wires = uncontended.of(0, 0) - cluster.accelerator.graph_node_gap.value - latency;
  ASSERT_GT(on_wires, Duration{});
  EXPECT_EQ(contended.of(0, 0) - uncontended.of(0, 0), on_wires);
  EXPECT_EQ(contended.of(0, 1) - uncontended.of(0, 1), on_wires);
}

TEST(Contention, AddsUpOverConsecutiveSends) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const ConcurrentOps sends(h100, ring_mesh(8), 3, 256);
  const Costs uncontended = sends.costs(false);
  const Costs contended = sends.costs();
  const Duration lost = contended.duration[0] - uncontended.duration[0];
  EXPECT_GT(lost, Duration{});
  EXPECT_EQ(contended.duration[sends.collective()] - uncontended.duration[sends.collective()], 3 * lost);
}

// The engine itself shares wires among exchanges; a collective holds none of the engine's links.
TEST(Contention, IsTheSameForTheEngine) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const ConcurrentOps concurrent(h100, ring_mesh(8), 2, 4096);
  const Fluid fluid =
      price_fluid(concurrent.program, concurrent.meetings, concurrent.sizes, h100, {.launch = Launch::graph},
                  std::make_shared<const Wiring>(wiring_of(concurrent.program, h100)));
  EXPECT_EQ(fluid.costs.duration, concurrent.costs().duration);
}

// One axis is inside the nodes, and the other one crosses them. A gather inside a node does not share wires with sends
// between nodes.
TEST(Contention, IsBetweenOpsOnTheSameWires) {
  const Machine cluster = shipped_machine("clusters/dgx-h100-x2.yaml");
  const Mesh nested{{{"node", 2}, {"gpu", 8}}};
  const auto differs = [&](std::int8_t axis, std::int8_t gathered) {
    const ConcurrentOps concurrent(cluster, nested, 1, 4096, axis, gathered);
    const Costs uncontended = concurrent.costs(false);
    const Costs contended = concurrent.costs();
    const bool exchange = contended.of(0, 0) != uncontended.of(0, 0);
    EXPECT_EQ(contended.of(0, 1) != uncontended.of(0, 1), exchange);
    return exchange;
  };
  EXPECT_FALSE(differs(0, 1));
  EXPECT_FALSE(differs(1, 0));
  EXPECT_TRUE(differs(0, 0));
  EXPECT_TRUE(differs(1, 1));
}

}  // namespace
}  // namespace commfuse
