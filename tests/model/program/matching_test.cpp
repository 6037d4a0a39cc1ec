// SPDX-License-Identifier: Apache-2.0
#include "model/program/matching.h"

#include <gtest/gtest.h>

#include "model/program/builder.h"
#include "tests/model/program/small_meshes.h"

namespace commfuse {
namespace {

using Problems = std::vector<std::string>;

/// Makes exchanges and all-reduces of rows of one buffer on any mesh.
class MeshSketch {
 public:
  explicit MeshSketch(Mesh mesh) : builder_("sketch", std::move(mesh)) {}

  struct ExchangeOptions {
    bool sends = true;
    bool receives = true;
    std::int32_t shift = 1;
    std::int32_t rows = 1;
    std::uint16_t lane = 0;
    int axis = 0;
    DType wire = DType::bf16;
  };
  OpId exchange(const ExchangeOptions& options) {
    const Operand every_row{builder_.rows_of(buffer_, 0, options.rows)};
    return builder_.exchange({.lane = {LaneKind::comm, options.lane},
                              .axis = options.axis,
                              .shift = options.shift,
                              .send = options.sends ? every_row : Operand{},
                              .receive = options.receives ? every_row : Operand{},
                              .wire = options.wire});
  }
  OpId all_reduce(int axis) {
    const Operand whole{builder_.whole(buffer_)};
    return builder_.collective({.kind = CollectiveKind::all_reduce, .axis = axis, .in = whole, .out = whole});
  }
  void only_where(OpId op, const Predicate& where) { builder_.only_where(op, where); }
  Program build() { return std::move(builder_).build(); }

 private:
  ProgramBuilder builder_;
  Extent rows_{builder_.dimension("rows", 2), 2};
  Extent columns_{builder_.dimension("columns", 1), 1};
  BufferId buffer_ = builder_.buffer("x", BufferRole::scratch, rows_, columns_, DType::bf16);
};

using test::four;
const Mesh two_by_two{{{"node", 2}, {"tp", 2}}};

TEST(Matching, AnExchangeOfBothHalvesMatchesItselfOnTheNeighbours) {
  MeshSketch sketch(four);
  const OpId op = sketch.exchange({});
  const Program program = sketch.build();
  const Matching matching = match(program);
  EXPECT_TRUE(matching.uniform);
  EXPECT_EQ(matching.problems, Problems{});
  EXPECT_EQ(matching.receiver(2, op), 0);
  EXPECT_EQ(matching.sender(2, op), 0);
}

// Ops 0 and 1 send, ops 2 and 3 receive: the first send meets the first receive, the second meets the second.
TEST(Matching, PairsTheKthSendWithTheKthReceive) {
  MeshSketch sketch(four);
  const OpId first = sketch.exchange({.receives = false});
  const OpId second = sketch.exchange({.receives = false});
  sketch.exchange({.sends = false});
  sketch.exchange({.sends = false});
  const Matching matching = match(sketch.build());
  EXPECT_EQ(matching.problems, Problems{});
  EXPECT_EQ(matching.receive_of_send, (std::vector<std::int32_t>{2, 3, -1, -1}));
  EXPECT_EQ(matching.send_of_receive, (std::vector<std::int32_t>{-1, -1, 0, 1}));
  EXPECT_EQ(matching.receiver(3, first), 2);
  EXPECT_EQ(matching.receiver(0, second), 3);
}

TEST(Matching, DistinguishesLanesAndShifts) {
  MeshSketch sketch(four);
  sketch.exchange({.receives = false, .lane = 1});
  sketch.exchange({.sends = false, .lane = 2});
  EXPECT_EQ(match(sketch.build()).problems, (Problems{"the send of op 0 (exchange) on lane comm1 by shift 1 (rank 0 to "
                                                      "rank 1, and likewise on every rank) has no matching receive",
                                                      "the receive of op 1 (exchange) on lane comm2 by shift 1 (rank 0 "
                                                      "to rank 1, and likewise on every rank) has no matching send"}));

  MeshSketch second(four);
  second.exchange({.receives = false, .shift = 1});
  second.exchange({.sends = false, .shift = 2});
  EXPECT_EQ(match(second.build()).problems, (Problems{"the send of op 0 (exchange) on lane comm by shift 1 (rank 0 to "
                                                      "rank 1, and likewise on every rank) has no matching receive",
                                                      "the receive of op 1 (exchange) on lane comm by shift 2 (rank 0 "
                                                      "to rank 2, and likewise on every rank) has no matching send"}));
}

TEST(Matching, DistinguishesAxes) {
  MeshSketch sketch(two_by_two);
  sketch.exchange({.receives = false, .axis = 0});
  sketch.exchange({.sends = false, .axis = 1});
  EXPECT_EQ(match(sketch.build()).problems.size(), 2U);
}

TEST(Matching, MatchedHalvesCarryTheSameRows) {
  MeshSketch sketch(four);
  sketch.exchange({.receives = false, .rows = 1});
  sketch.exchange({.sends = false, .rows = 2});
  EXPECT_EQ(match(sketch.build()).problems,
            (Problems{"op 0 (exchange) and op 1 (exchange) meet on lane comm by shift 1 (rank 0 to rank 1, and "
                      "likewise on every rank) but do not carry the same "
                      "extents"}));

  MeshSketch second(four);
  second.exchange({.receives = false, .wire = DType::bf16});
  second.exchange({.sends = false, .wire = DType::fp8});
  EXPECT_EQ(match(second.build()).problems.size(), 1U);
}

// Four ranks form a line: ranks 0, 1 and 2 send forward, ranks 1, 2 and 3 receive.
TEST(Matching, WithPredicatesEveryRankHasItsOwnPartners) {
  MeshSketch sketch(four);
  const OpId send = sketch.exchange({.receives = false});
  const OpId receive = sketch.exchange({.sends = false});
  sketch.only_where(send, {Relation::less, 0, 3});
  sketch.only_where(receive, {Relation::at_least, 0, 1});
  const Matching matching = match(sketch.build());
  EXPECT_FALSE(matching.uniform);
  EXPECT_EQ(matching.problems, Problems{});
  EXPECT_EQ(matching.receiver(0, send), 1);
  EXPECT_EQ(matching.receiver(2, send), 1);
  EXPECT_EQ(matching.receiver(3, send), -1);
  EXPECT_EQ(matching.sender(0, receive), -1);
  EXPECT_EQ(matching.sender(3, receive), 0);
}

TEST(Matching, NamesTheRanksOfAnUnmatchedHalf) {
  MeshSketch sketch(four);
  const OpId send = sketch.exchange({.receives = false});
  const OpId receive = sketch.exchange({.sends = false});
  sketch.only_where(send, {Relation::less, 0, 3});
  sketch.only_where(receive, {Relation::at_least, 0, 2});
  EXPECT_EQ(match(sketch.build()).problems,
            (Problems{"the send of op 0 (exchange) on lane comm from rank 0 to rank 1 has no matching receive"}));
}

// A shift of 0 sends to the rank itself, along whichever axis.
TEST(Matching, TheOwnRankIsTheSameNeighbourOnEveryAxis) {
  MeshSketch sketch(two_by_two);
  sketch.exchange({.receives = false, .shift = 0, .axis = 0});
  sketch.exchange({.sends = false, .shift = 0, .axis = 1});
  const Matching matching = match(sketch.build());
  EXPECT_EQ(matching.problems, Problems{});
  EXPECT_EQ(matching.receive_of_send, (std::vector<std::int32_t>{1, -1}));
}

TEST(Matching, ACollectiveNeedsItsWholeGroup) {
  MeshSketch sketch(two_by_two);
  const OpId within_nodes = sketch.all_reduce(1);
  sketch.only_where(within_nodes, {Relation::equal, 0, 1});  // One node as a whole takes part.
  EXPECT_EQ(match(sketch.build()).problems, Problems{});

  MeshSketch second(two_by_two);
  second.only_where(second.all_reduce(1), {Relation::equal, 1, 0});  // Half of every node takes part.
  EXPECT_EQ(match(second.build()).problems,
            (Problems{"only some ranks of its group join op 0 (collective): rank 0 does, rank 1 does not; a collective "
                      "needs all ranks along its axis"}));
}

TEST(Matching, PartnersAreAShiftAwayInBothDirections) {
  MeshSketch sketch(two_by_two);
  const OpId op = sketch.exchange({.shift = 1, .axis = 0});
  const Program program = sketch.build();
  const auto& exchange = std::get<ExchangeShape>(program.shapes[program.ops[position(op)].shape]);
  EXPECT_EQ(target_of(program, exchange, 1), 3);  // node 0, tp 1 -> node 1, tp 1
  EXPECT_EQ(source_of(program, exchange, 1), 3);  // The source is in the other of the two nodes.
  EXPECT_EQ(op_in_words(program, op), "op 0 (exchange)");
}

}  // namespace
}  // namespace commfuse
