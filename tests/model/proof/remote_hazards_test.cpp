// SPDX-License-Identifier: Apache-2.0
// Pushes and pulls access another rank's memory while no op of that rank holds it. Tests which waits, lanes and
// messages order these accesses, and the message if nothing orders them.
#include "model/proof/remote_hazards.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "model/program/builder.h"
#include "model/proof/check_program.h"

namespace commfuse {
namespace {

/// A ring of `ranks` ranks. x has one row for each rank; rank r begins with row r and ends with all rows, in
/// `gathered`.
struct Ring {
  explicit Ring(std::int32_t ranks)
      : builder("ring", Mesh{{{"tp", ranks}}}),
        tokens(builder.dimension("tokens", ranks)),
        hidden(builder.dimension("hidden", 1)),
        x(builder.input_tensor("x", {tokens, ranks}, {hidden, 1}, DType::bf16)),
        shard(builder.buffer("own", BufferRole::input, {tokens, 1}, {hidden, 1}, DType::bf16)),
        gathered(builder.buffer("gathered", BufferRole::output, {tokens, ranks}, {hidden, 1}, DType::bf16)) {
    builder.initially(builder.whole(shard), x, along(builder.mesh(), 0), 0);
    builder.finally(builder.whole(gathered), x, 0, 0);
  }

  Region row(std::int32_t step) { return builder.rows_of(gathered, along(builder.mesh(), 0, step)); }
  OpId copy_own() {
    return builder.elementwise({.function = Function::copy, .inputs = {{builder.whole(shard)}}, .out = {row(0)}});
  }
  /// Step 0 forwards the rank's own row, step 1 the row received in step 0, and so on.
  OpId forward(std::int32_t step, Protocol protocol, OpId after) {
    return builder.exchange(
        {.send = {row(-step)}, .receive = {row(-step - 1)}, .protocol = protocol, .waits = {after}});
  }

  ProgramBuilder builder;
  DimensionId tokens, hidden;
  TensorId x;
  BufferId shard, gathered;
};

std::vector<std::string> sentences_of(const CheckReport& report) {
  std::vector<std::string> texts;
  for (const Finding& finding : report.findings) {
    texts.push_back(finding.sentence);
  }
  return texts;
}

/// Returns the findings of the proof on all ranks, after checking that the proof on one rank agrees.
std::vector<std::string> check_both_ways(const Program& program) {
  const CheckReport all_ranks = check_every_rank(program);
  const std::optional<CheckReport> one_rank = check_one_rank(program);
  EXPECT_TRUE(one_rank.has_value());
  EXPECT_TRUE(!one_rank || one_rank->ok() == all_ranks.ok());
  return sentences_of(all_ranks);
}

Program ring_program(std::int32_t ranks, Protocol protocol, bool credit) {
  Ring ring(ranks);
  OpId last = ring.copy_own();
  for (std::int32_t step = 0; step + 1 < ranks; ++step) {
    last = ring.forward(step, protocol, last);
  }
  if (credit) {
    ring.builder.credit({.shift = -1, .waits = {last}});
  }
  return std::move(ring.builder).build();
}

TEST(RemoteHazards, ARingOfPushesNeedsACreditBeforeTheNextIteration) {
  EXPECT_EQ(check_both_ways(ring_program(4, Protocol::push, true)), std::vector<std::string>{});
  const std::vector<std::string> sentences = check_both_ways(ring_program(4, Protocol::push, false));
  ASSERT_FALSE(sentences.empty());
  EXPECT_EQ(sentences.front(),
            "op 2 (exchange) on rank 3 of the next iteration writes row 2 of gathered of rank 0 while op 3 (exchange) "
            "on rank "
            "0 may still be reading it; order them with a credit");
}

TEST(RemoteHazards, ARingOfRendezvousNeedsNoCredit) {
  EXPECT_EQ(check_both_ways(ring_program(4, Protocol::rendezvous, false)), std::vector<std::string>{});
}

TEST(RemoteHazards, PulledDataMayNotBeOverwrittenBeforeThePullersCredit) {
  // The copy of the next iteration overwrites row r of rank r, which its neighbour may still be pulling.
  const std::vector<std::string> sentences = check_both_ways(ring_program(2, Protocol::pull, false));
  ASSERT_FALSE(sentences.empty());
  EXPECT_EQ(
      sentences.front(),
      "op 0 (elementwise) on rank 0 of the next iteration writes row 0 of gathered of rank 0 while op 1 (exchange) on "
      "rank 1 may still be reading it; order them with a credit");
  EXPECT_EQ(check_both_ways(ring_program(2, Protocol::pull, true)), std::vector<std::string>{});
  EXPECT_EQ(check_both_ways(ring_program(5, Protocol::pull, true)), std::vector<std::string>{});
}

TEST(RemoteHazards, ACreditInTheWrongDirectionOrdersNothing) {
  Ring wrong(3);
  OpId last = wrong.copy_own();
  last = wrong.forward(0, Protocol::push, last);
  last = wrong.forward(1, Protocol::push, last);
  wrong.builder.credit({.shift = 1, .waits = {last}});
  // In a ring of three ranks the credits of two iterations reach the right rank, but one step late.
  EXPECT_FALSE(check_both_ways(std::move(wrong.builder).build()).empty());
}

TEST(RemoteHazards, ACreditThatDoesNotWaitForTheReaderOrdersNothing) {
  Ring early(3);
  const OpId copied = early.copy_own();
  early.forward(1, Protocol::push, early.forward(0, Protocol::push, copied));
  early.builder.credit({.lane = {LaneKind::comm, 1}, .shift = -1, .waits = {copied}});
  EXPECT_FALSE(check_both_ways(std::move(early.builder).build()).empty());
}

TEST(RemoteHazards, APushIntoMemoryInUseIsFoundWithinAnIteration) {
  // The second of two pushes overwrites the row that the receiver is still copying, unless it waits for a credit.
  for (const bool credit : {false, true}) {
    ProgramBuilder builder("slot", Mesh{{{"tp", 2}}});
    const DimensionId tokens = builder.dimension("tokens", 4);
    const DimensionId hidden = builder.dimension("hidden", 1);
    const TensorId x = builder.input_tensor("x", {tokens, 4}, {hidden, 1}, DType::bf16);
    const BufferId own_rows = builder.buffer("own", BufferRole::input, {tokens, 2}, {hidden, 1}, DType::bf16);
    const BufferId slot = builder.buffer("slot", BufferRole::scratch, {tokens, 1}, {hidden, 1}, DType::bf16);
    const BufferId out = builder.buffer("out", BufferRole::output, {tokens, 2}, {hidden, 1}, DType::bf16);
    builder.initially(builder.whole(own_rows), x, along(builder.mesh(), 0) * 2, 0);
    builder.finally(builder.whole(out), x, along(builder.mesh(), 0, 1) * 2, 0);
    std::vector<OpId> waits;
    for (std::int32_t step = 0; step < 2; ++step) {
      const OpId arrived = builder.exchange({.send = {builder.rows_of(own_rows, step)},
                                             .receive = {builder.whole(slot)},
                                             .protocol = Protocol::push,
                                             .waits = waits});
      const OpId copied = builder.elementwise({.function = Function::copy,
                                               .inputs = {{builder.whole(slot)}},
                                               .out = {builder.rows_of(out, step)},
                                               .waits = {arrived}});
      waits = {copied};
      if (credit) {
        waits = {builder.credit({.lane = {LaneKind::comm, 1}, .shift = 1, .waits = {copied}})};
      }
    }
    const std::vector<std::string> sentences = check_both_ways(std::move(builder).build());
    EXPECT_EQ(sentences.empty(), credit) << (sentences.empty() ? "" : sentences.front());
  }
}

TEST(RemoteHazards, OnlyPushesAndPullsAccessRemotely) {
  EXPECT_TRUE(accesses_remotely(ring_program(2, Protocol::push, false)));
  EXPECT_TRUE(accesses_remotely(ring_program(2, Protocol::pull, false)));
  EXPECT_FALSE(accesses_remotely(ring_program(2, Protocol::rendezvous, true)));
}

TEST(RemoteHazards, AProgramTooLargeToProveIsReportedAsAFinding) {
  // Two iterations of 513 ops, each with a clock of 512 ranks x 2 lanes, fit; eight times the ranks do not.
  EXPECT_TRUE(check_program(ring_program(512, Protocol::push, true)).ok());
  const std::optional<CheckReport> report = check_one_rank(ring_program(4096, Protocol::push, true));
  ASSERT_TRUE(report && !report->ok());
  EXPECT_EQ(report->findings.front().sentence,
            "4097 ops on 4096 ranks are too many to prove the order of their pushes and pulls; use fewer ranks");
}

}  // namespace
}  // namespace commfuse
