// SPDX-License-Identifier: Apache-2.0
// Tests that correct programs pass, and that a small program with each kind of mistake gets the expected message.
#include "model/proof/check_program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/config_error.h"
#include "model/program/builder.h"
#include "model/strategies/generate.h"
#include "model/strategies/scope.h"
#include "model/strategies/stage.h"
#include "model/strategies/strategies.h"
#include "tests/slow_build.h"

namespace commfuse {
namespace {

constexpr Lane comm{LaneKind::comm, 0};

/// Two ranks, whose program has no ops yet. x is 2 x 1: rank r holds row r. y = a b, where a is 2 x 2 and b is 2 x 1:
/// rank r holds column r of a and row r of b.
struct Small {
  ProgramBuilder builder{"small", Mesh{{{"tp", 2}}}};
  DimensionId tokens = builder.dimension("tokens", 2);
  DimensionId hidden = builder.dimension("hidden", 1);
  DimensionId inner = builder.dimension("inner", 2);
  TensorId x = builder.input_tensor("x", {tokens, 2}, {hidden, 1}, DType::bf16);
  TensorId a = builder.input_tensor("a", {tokens, 2}, {inner, 2}, DType::bf16);
  TensorId b = builder.input_tensor("b", {inner, 2}, {hidden, 1}, DType::bf16);
  TensorId y = builder.product_tensor("y", a, b);
  BufferId own_shard = input("own", 1, hidden, x, along(builder.mesh(), 0), 0);
  BufferId left = input("left", 2, inner, a, 0, along(builder.mesh(), 0));
  BufferId right = right_factor();
  BufferId slots = scratch("slots", 2);
  BufferId spare = scratch("spare", 2);

  BufferId input(const char* name, std::int32_t rows, DimensionId columns, TensorId tensor, Index row, Index column) {
    const BufferId id = builder.buffer(name, BufferRole::input, {tokens, rows}, {columns, 1}, DType::bf16);
    builder.initially(builder.whole(id), tensor, row, column);
    return id;
  }
  BufferId right_factor() {
    const BufferId id = builder.buffer("right", BufferRole::weight, {inner, 1}, {hidden, 1}, DType::bf16);
    builder.initially(builder.whole(id), b, along(builder.mesh(), 0), 0);
    return id;
  }
  BufferId scratch(const char* name, std::int32_t rows) {
    return builder.buffer(name, BufferRole::scratch, {tokens, rows}, {hidden, 1}, DType::bf16);
  }

  Region row(BufferId buffer, Index at) const { return builder.rows_of(buffer, at); }
  OpId copy(const Region& from, const Region& to, const std::vector<OpId>& waits = {},
            Lane lane = {LaneKind::compute, 0}) {
    return builder.elementwise(
        {.lane = lane, .function = Function::copy, .inputs = {{from}}, .out = {to}, .waits = waits});
  }
  OpId add(const std::vector<Operand>& inputs, const Region& to) {
    return builder.elementwise({.function = Function::add, .inputs = inputs, .out = {to}});
  }
  OpId zero(const Region& to) { return builder.elementwise({.function = Function::zero, .out = {to}}); }
  OpId multiply(Index shard, const Region& to, bool accumulate = false) {
    return builder.gemm({.a = {row(left, shard)}, .b = {builder.whole(right)}, .out = {to}, .accumulate = accumulate});
  }
  OpId exchange(Operand send, Operand receive, const std::vector<OpId>& waits = {}, std::int32_t shift = 1) {
    return builder.exchange(
        {.lane = comm, .shift = shift, .send = std::move(send), .receive = std::move(receive), .waits = waits});
  }
  OpId collect(CollectiveKind kind, Operand in, Operand out, const std::vector<OpId>& waits = {}) {
    return builder.collective({.kind = kind, .in = std::move(in), .out = std::move(out), .waits = waits});
  }
  Program build() { return std::move(builder).build(); }
};

std::vector<std::string> findings_of(const Program& program) {
  std::vector<std::string> findings;
  for (const Finding& finding : check_program(program).findings) {
    findings.push_back(fmt::format("{}: {}", name_of(finding.kind), finding.sentence));
  }
  return findings;
}

using Sentences = std::vector<std::string>;

// --- correct programs pass ------------------------------------------------------------------------------------------

void every_schedule_passes(const Mesh& mesh, int axis) {
  for (const Scope scope : all_scopes) {
    for (const bool gated : {true, false}) {
      for (const Strategy& strategy : strategies()) {
        const std::int32_t ranks = mesh.axes[static_cast<std::size_t>(axis)].extent;
        for (const StrategyOptions& options : schedules_to_prove(strategy, kinds_of(scope), ranks)) {
          const Program program = generate(operation_of(scope, gated), mesh, axis, strategy, options);
          EXPECT_EQ(findings_of(program), Sentences{}) << program.name << ", " << mesh.ranks() << " ranks";
        }
      }
    }
  }
}

TEST(CheckProgram, PassesEveryScheduleOfEveryScopeOnOneToNineRanksAndOnSixteen) {
  for (const std::int32_t ranks : slow_build ? std::vector{1, 2, 3, 4} : std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9, 16}) {
    every_schedule_passes(Mesh{{{"tp", ranks}}}, 0);
  }
}

TEST(CheckProgram, PassesEveryProvedScheduleOfTheGemmSites) {
  for (const Scope scope : {Scope::qkv, Scope::down, Scope::mlp}) {
    const Operation operation = operation_of(scope, true);
    for (const std::int32_t ranks : {1, 2, 3, 4, 5, 7, 8, 16}) {
      for (const Strategy& strategy : strategies()) {
        for (const StrategyOptions& options : schedules_to_prove(strategy, kinds_of(operation), ranks)) {
          const Program program = generate(operation, ranks, strategy, options);
          EXPECT_EQ(findings_of(program), Sentences{}) << program.name << ", " << ranks << " ranks";
        }
      }
    }
  }
}

TEST(CheckProgram, PassesEveryScheduleAlongEitherAxisOfATwoAxisMesh) {
  // All ranks along the other axis hold equal data.
  every_schedule_passes(Mesh{{{"dp", 2}, {"tp", 4}}}, 1);
  every_schedule_passes(Mesh{{{"tp", 3}, {"dp", 2}}}, 0);
}

TEST(CheckProgram, Passes256RanksOfFuseRs) {
  const Strategy& commfuse = commfuse_strategy;
  for (const StrategyOptions& options : distinct(commfuse, kinds_of(Scope::down), commfuse.variants({}), 256)) {
    const Program program = generate(operation_of(Scope::down, true), Mesh{{{"tp", 256}}}, 0, commfuse, options);
    EXPECT_TRUE(check_program(program).ok());
  }
}

TEST(CheckProgram, PassesAnAllReduceOfPartialProducts) {
  Small small;
  const OpId first = small.multiply(0, small.row(small.slots, 0));
  const OpId second = small.multiply(1, small.row(small.slots, 1));
  small.collect(CollectiveKind::all_reduce, {small.builder.whole(small.slots)}, {small.builder.whole(small.spare)},
                {first, second});
  small.builder.finally(small.builder.whole(small.spare), small.y, 0, 0);
  EXPECT_EQ(findings_of(small.build()), Sentences{});
}

TEST(CheckProgram, PassesAnAllToAllThatTransposesAcrossRanks) {
  // Rank r sends x[r] twice: block i of its input goes to rank i.
  Small small;
  small.collect(CollectiveKind::all_to_all, {small.row(small.own_shard, 0), small.row(small.own_shard, 0)},
                {small.builder.whole(small.spare)});
  small.builder.finally(small.builder.whole(small.spare), small.x, 0, 0);
  EXPECT_EQ(findings_of(small.build()), Sentences{});
}

TEST(CheckProgram, PassesAnAllGatherInPlaceFromTheRanksOwnPart) {
  Small small;
  const Region part = small.row(small.slots, along(small.builder.mesh(), 0));
  const OpId placed = small.copy(small.row(small.own_shard, 0), part);
  small.collect(CollectiveKind::all_gather, {part}, {small.builder.whole(small.slots)}, {placed});
  small.builder.finally(small.builder.whole(small.slots), small.x, 0, 0);
  EXPECT_EQ(findings_of(small.build()), Sentences{});
}

TEST(CheckProgram, PassesAGemmThatAccumulatesOntoReceivedData) {
  // The GEMM of this ring accumulates onto the sum that the rank has just received: slow, but correct.
  Small small;
  const OpId first = small.multiply(along(small.builder.mesh(), 0, 1), small.row(small.slots, 0));
  const OpId moved = small.exchange({small.row(small.slots, 0)}, {small.row(small.slots, 1)}, {first});
  small.builder.gemm({.a = {small.row(small.left, along(small.builder.mesh(), 0))},
                      .b = {small.builder.whole(small.right)},
                      .out = {small.row(small.slots, 1)},
                      .accumulate = true,
                      .waits = {moved}});
  small.builder.finally(small.row(small.slots, 1), small.y, along(small.builder.mesh(), 0), 0);
  EXPECT_EQ(findings_of(small.build()), Sentences{});
}

TEST(CheckProgram, PassesAnExchangeWhoseHalvesRunOnDifferentRanks) {
  // Rank 0 sends, rank 1 receives: two ops, one rank each.
  Small small;
  const OpId sends = small.exchange({small.row(small.own_shard, 0)}, {});
  const OpId receives = small.exchange({}, {small.row(small.slots, 0)});
  Program program = small.build();
  program.ops[position(sends)].where = {Relation::equal, 0, 0};
  program.ops[position(receives)].where = {Relation::equal, 0, 1};
  EXPECT_EQ(findings_of(program), Sentences{});
}

// --- bounds ---------------------------------------------------------------------------------------------------------

TEST(CheckProgram, FindsARegionThatLeavesItsBufferOnOneRank) {
  Small small;
  small.copy(small.row(small.own_shard, 0), small.row(small.slots, along(small.builder.mesh(), 0) + 1));
  EXPECT_EQ(
      findings_of(small.build()),
      Sentences{
          "bounds: op 0 (elementwise) on rank 1 reaches outside slots, which has 2 x 1 blocks: its region has 1 x 1 "
          "from (2, 0)"});
}

TEST(CheckProgram, FindsTooManyDifferentRanksToProve) {
  ProgramBuilder builder{"many", Mesh{{{"tp", 1 << 20}}}};
  const DimensionId rows = builder.dimension("rows", 1);
  const BufferId sent = builder.buffer("own", BufferRole::input, {rows, 1}, {rows, 1}, DType::bf16);
  for (int i = 0; i < 20; ++i) {
    const OpId sends = builder.exchange({.send = {builder.whole(sent)}});
    builder.only_where(sends, {Relation::equal, 0, 0});
  }
  EXPECT_EQ(findings_of(std::move(builder).build()),
            Sentences{"bounds: the ops of all ranks access more than 134217728 blocks; cut the dimensions into fewer "
                      "blocks, or use fewer ranks"});
}

TEST(CheckProgram, FindsAWaitForALaterOp) {
  Small small;
  small.copy(small.row(small.own_shard, 0), small.row(small.slots, 0));
  small.copy(small.row(small.own_shard, 0), small.row(small.slots, 1), {OpId{0}});
  Program program = small.build();
  program.waits[0] = OpId{1};
  EXPECT_EQ(findings_of(program), Sentences{"bounds: op 1 (elementwise) waits for op 1, which is not earlier"});
}

TEST(CheckProgram, FindsAStackedOperandThatDoesNotFitItsShape) {
  Small small;
  small.copy(small.row(small.own_shard, 0), small.row(small.slots, 0));
  Program program = small.build();
  program.regions[0].rows = 2;
  EXPECT_EQ(findings_of(program), Sentences{"bounds: the operands of op 0 (elementwise) do not fit its shape"});
}

TEST(CheckProgram, FindsAnExchangeThatDoesNothing) {
  Small small;
  small.exchange({small.row(small.own_shard, 0)}, {});
  Program program = small.build();
  std::get<ExchangeShape>(program.shapes[0]).sends = false;
  program.ops[0].inputs.count = 0;
  EXPECT_EQ(findings_of(program), Sentences{"bounds: the operands of op 0 (exchange) do not fit its shape"});
}

TEST(CheckProgram, FindsUndefinedIds) {
  Small small;
  small.copy(small.row(small.own_shard, 0), small.row(small.slots, 0));
  Program program = small.build();
  program.regions[0].buffer = BufferId{99};
  EXPECT_EQ(
      findings_of(program),
      Sentences{"bounds: op 0 (elementwise) refers to a lane, shape, operand, buffer or axis that does not exist"});
  program = Small{}.build();
  program.initial[0].tensor = TensorId{99};
  EXPECT_EQ(findings_of(program),
            Sentences{"bounds: an initial or final content refers to a buffer or tensor that does not exist"});
}

TEST(CheckProgram, FindsAContentOutsideItsTensor) {
  Small small;
  small.builder.finally(small.builder.whole(small.slots), small.x, 1, 0);
  EXPECT_EQ(findings_of(small.build()), Sentences{"bounds: the final content of slots lies outside tensor x"});
}

// --- matching -------------------------------------------------------------------------------------------------------

TEST(CheckProgram, FindsASendThatNothingReceives) {
  Small small;
  small.exchange({small.row(small.own_shard, 0)}, {});
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"unmatched: the send of op 0 (exchange) on lane comm by shift 1 (rank "
                      "0 to rank 1, and likewise on every rank) has no matching receive"});
}

TEST(CheckProgram, FindsACollectiveThatOnlySomeOfItsGroupJoin) {
  Small small;
  const OpId gather =
      small.collect(CollectiveKind::all_gather, {small.row(small.own_shard, 0)}, {small.builder.whole(small.slots)});
  Program program = small.build();
  program.ops[position(gather)].where = {Relation::equal, 0, 0};
  EXPECT_EQ(findings_of(program),
            Sentences{"collective_order: only some ranks of its group join op 0 (collective): rank 0 "
                      "does, rank 1 does not; a collective needs all ranks along its axis"});
}

TEST(CheckProgram, ACollectiveWhosePredicateIsAlwaysTrueSplitsNoGroup) {
  Small small;
  const OpId gather =
      small.collect(CollectiveKind::all_gather, {small.row(small.own_shard, 0)}, {small.builder.whole(small.slots)});
  Program program = small.build();
  program.ops[position(gather)].where = {Relation::at_least, 0, 0};
  EXPECT_EQ(findings_of(program), Sentences{});
}

// --- deadlock -------------------------------------------------------------------------------------------------------

TEST(CheckProgram, FindsARingInWhichAllSendBeforeTheyReceive) {
  Small small;
  small.exchange({small.row(small.own_shard, 0)}, {});
  small.exchange({}, {small.row(small.slots, 0)});
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"deadlock: no rank can proceed: rank 0 in op 0 (exchange) waits for op 1 (exchange) of rank 1; "
                      "rank 1 in op 0 (exchange) waits for op 1 (exchange) of rank 0"});
}

TEST(CheckProgram, FindsACollectiveBehindAnExchangeThatWaitsForIt) {
  // Rank 0 gathers first and then sends; rank 1 receives first. Each waits for the other.
  Small small;
  const OpId receives = small.exchange({}, {small.row(small.spare, 0)});
  const OpId gather =
      small.collect(CollectiveKind::all_gather, {small.row(small.own_shard, 0)}, {small.builder.whole(small.slots)});
  const OpId sends = small.exchange({small.row(small.own_shard, 0)}, {});
  Program program = small.build();
  program.ops[position(receives)].where = {Relation::equal, 0, 1};
  program.ops[position(sends)].where = {Relation::equal, 0, 0};
  ASSERT_EQ(gather, OpId{1});
  EXPECT_EQ(
      findings_of(program),
      Sentences{"deadlock: no rank can proceed: rank 0 in op 1 (collective) waits for op 1 (collective) of rank 1; "
                "rank 1 in op 0 (exchange) waits for op 2 (exchange) of rank 0"});
}

TEST(CheckProgram, NamesFourStuckRanksAndCountsTheOthers) {
  ProgramBuilder builder("ring", Mesh{{{"tp", 6}}});
  const Extent one_token{builder.dimension("tokens", 1), 1};
  const BufferId from = builder.buffer("from", BufferRole::scratch, one_token, one_token, DType::bf16);
  const BufferId to = builder.buffer("to", BufferRole::scratch, one_token, one_token, DType::bf16);
  builder.exchange({.send = {builder.whole(from)}, .receive = {}, .waits = {}});
  builder.exchange({.send = {}, .receive = {builder.whole(to)}, .waits = {}});
  EXPECT_EQ(findings_of(std::move(builder).build()),
            Sentences{"deadlock: no rank can proceed: rank 0 in op 0 (exchange) waits for op 1 (exchange) of rank 1; "
                      "rank 1 in op 0 (exchange) waits for op 1 (exchange) of rank 2; "
                      "rank 2 in op 0 (exchange) waits for op 1 (exchange) of rank 3; "
                      "rank 3 in op 0 (exchange) waits for op 1 (exchange) of rank 4; and 2 more ranks"});
}

// --- hazards --------------------------------------------------------------------------------------------------------

TEST(CheckProgram, FindsAReadOfUnwrittenData) {
  Small small;
  small.copy(small.row(small.slots, 1), small.row(small.spare, 0));
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"hazard: op 0 (elementwise) on rank 0 reads row 1 of slots, which nothing has written"});
}

TEST(CheckProgram, FindsAnAccumulationOntoUnwrittenData) {
  Small small;
  small.multiply(0, small.row(small.slots, 0), true);
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"hazard: op 0 (gemm) on rank 0 reads row 0 of slots, which nothing has written"});
}

TEST(CheckProgram, FindsAReadConcurrentWithAWrite) {
  Small small;
  small.exchange({small.row(small.own_shard, 0)}, {small.row(small.slots, 0)});
  small.copy(small.row(small.slots, 0), small.row(small.spare, 0));
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"hazard: op 1 (elementwise) on rank 0 reads row 0 of slots while op 0 "
                      "(exchange) may still be writing it"});
}

TEST(CheckProgram, FindsAnOverwriteConcurrentWithARead) {
  Small small;
  const OpId filled = small.copy(small.row(small.own_shard, 0), small.row(small.slots, 0));
  small.exchange({small.row(small.slots, 0)}, {small.row(small.spare, 0)}, {filled});
  small.copy(small.row(small.own_shard, 0), small.row(small.slots, 0));
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"hazard: op 2 (elementwise) on rank 0 writes row 0 of slots while op 1 "
                      "(exchange) may still be reading it"});
}

TEST(CheckProgram, FindsTwoConcurrentWrites) {
  Small small;
  small.copy(small.row(small.own_shard, 0), small.row(small.slots, 0));
  small.copy(small.row(small.own_shard, 0), small.row(small.slots, 0), {}, copy_lane);
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"hazard: op 1 (elementwise) on rank 0 writes row 0 of slots while op 0 "
                      "(elementwise) may still be writing it"});
}

TEST(CheckProgram, FindsAnExchangeThatReceivesIntoWhatItSends) {
  Small small;
  small.exchange({small.row(small.own_shard, 0)}, {small.row(small.own_shard, 0)});
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"hazard: op 0 (exchange) on rank 0 reads and writes row 0 of own simultaneously"});
}

TEST(CheckProgram, FindsAnInPlaceAllGatherFromAnotherPart) {
  Small small;
  const Region other = small.row(small.slots, along(small.builder.mesh(), 0, 1));
  const OpId placed = small.copy(small.row(small.own_shard, 0), other);
  small.collect(CollectiveKind::all_gather, {other}, {small.builder.whole(small.slots)}, {placed});
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"hazard: op 1 (collective) on rank 0 reads and writes row 1 of slots simultaneously"});
}

TEST(CheckProgram, SumsMayBeTakenInPlace) {
  Small reduced;
  const OpId gemm = reduced.multiply(0, reduced.row(reduced.slots, 0));
  reduced.collect(CollectiveKind::all_reduce, {reduced.row(reduced.slots, 0)}, {reduced.row(reduced.slots, 0)}, {gemm});
  EXPECT_EQ(findings_of(reduced.build()), Sentences{});
  Small scattered;
  std::vector<OpId> gemms;
  for (std::int32_t i = 0; i < 2; ++i) {
    gemms.push_back(scattered.multiply(i, scattered.row(scattered.slots, i)));
  }
  const Region own_row = scattered.row(scattered.slots, along(scattered.builder.mesh(), 0));
  scattered.collect(CollectiveKind::reduce_scatter, {scattered.builder.whole(scattered.slots)}, {own_row}, gemms);
  EXPECT_EQ(findings_of(scattered.build()), Sentences{});
}

TEST(CheckProgram, FindsAReduceScatterIntoAnotherPartOfItsInput) {
  Small small;
  std::vector<OpId> gemms;
  for (std::int32_t i = 0; i < 2; ++i) {
    gemms.push_back(small.multiply(i, small.row(small.slots, i)));
  }
  const Region other = small.row(small.slots, along(small.builder.mesh(), 0, 1));
  small.collect(CollectiveKind::reduce_scatter, {small.builder.whole(small.slots)}, {other}, gemms);
  EXPECT_EQ(findings_of(small.build()).front(),
            "hazard: op 2 (collective) on rank 0 reads and writes row 1 of slots simultaneously");
}

TEST(CheckProgram, FindsAnOverwriteOfTheInputOfAReduceScatterInPlace) {
  Small small;
  std::vector<OpId> gemms;
  for (std::int32_t i = 0; i < 2; ++i) {
    gemms.push_back(small.multiply(i, small.row(small.slots, i)));
  }
  const Region own_row = small.row(small.slots, along(small.builder.mesh(), 0));
  small.collect(CollectiveKind::reduce_scatter, {small.builder.whole(small.slots)}, {own_row}, gemms);
  small.copy(small.row(small.own_shard, 0), small.row(small.slots, along(small.builder.mesh(), 0, 1)), gemms,
             copy_lane);
  EXPECT_EQ(
      findings_of(small.build()).front(),
      "hazard: op 3 (elementwise) on rank 0 writes row 1 of slots while op 2 (collective) may still be reading it");
}

TEST(CheckProgram, FindsAnOperandThatIsWrittenTwiceByOneOp) {
  Small small;
  small.collect(CollectiveKind::all_gather, {small.row(small.own_shard, 0)},
                {small.row(small.slots, 0), small.row(small.slots, 0)});
  EXPECT_EQ(findings_of(small.build()), Sentences{"hazard: op 0 (collective) on rank 0 writes row 0 of slots twice"});
}

TEST(CheckProgram, FindsAnElementwiseOpThatShiftsInPlace) {
  Small small;
  const BufferId three = small.scratch("three", 3);
  const Region low{three, 0, 0, 2, 1};
  const Region high{three, 1, 0, 2, 1};
  small.collect(CollectiveKind::all_gather, {small.row(small.own_shard, 0)}, {low});
  small.copy(low, high, {OpId{0}});
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"hazard: op 1 (elementwise) on rank 0 reads and writes row 1 of three simultaneously"});
}

TEST(CheckProgram, ListsOneFindingPerKindAndOpAndCountsOtherRanks) {
  Small small;
  small.copy(small.row(small.slots, 1), small.row(small.spare, 0));
  const CheckReport report = check_program(small.build());
  EXPECT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.more, 1);
}

TEST(CheckProgram, ListsTwentyFindings) {
  Small small;
  for (int i = 0; i < 15; ++i) {
    small.copy(small.row(small.slots, 1), small.row(small.spare, 0));
    small.copy(small.row(small.slots, 0), small.row(small.spare, 1));
  }
  const CheckReport report = check_program(small.build());
  EXPECT_EQ(report.findings.size(), 20U);
  EXPECT_EQ(report.more, 40);
}

// --- contents -------------------------------------------------------------------------------------------------------

TEST(CheckProgram, FindsAMissingContribution) {
  Small small;
  small.multiply(0, small.row(small.slots, 0));
  small.builder.finally(small.row(small.slots, 0), small.y, 0, 0);
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"contents: rank 0 ends with y[0]{0} in row 0 of slots instead of y[0]"});
}

TEST(CheckProgram, FindsAMissingFinalContent) {
  Small small;
  small.builder.finally(small.row(small.slots, 1), small.x, 1, 0);
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"contents: rank 0 ends with nothing in row 1 of slots instead of x[1]"});
}

TEST(CheckProgram, FindsAContributionCountedTwice) {
  Small small;
  small.multiply(0, small.row(small.slots, 0));
  small.add({{small.row(small.slots, 0)}, {small.row(small.slots, 0)}}, small.row(small.spare, 0));
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"contents: op 1 (elementwise) on rank 0 counts contribution 0 to y[0] twice"});
}

TEST(CheckProgram, FindsAnInputAddedToItself) {
  Small small;
  small.add({{small.row(small.own_shard, 0)}, {small.row(small.own_shard, 0)}}, small.row(small.spare, 0));
  EXPECT_EQ(findings_of(small.build()), Sentences{"contents: op 0 (elementwise) on rank 0 counts x[0] twice"});
}

TEST(CheckProgram, FindsASumOfDifferentBlocks) {
  Small small;
  small.multiply(0, small.row(small.slots, 0));
  small.multiply(1, small.row(small.slots, 1));
  small.add({{small.row(small.slots, 0)}, {small.row(small.slots, 1)}}, small.row(small.spare, 0));
  EXPECT_EQ(findings_of(small.build()), Sentences{"contents: op 2 (elementwise) on rank 0 adds y[1]{0} to y[0]{0}"});
}

TEST(CheckProgram, FindsFactorsOfDifferentContractionBlocks) {
  // Rank r multiplies column r of a by the neighbour's row of b, which it has just received.
  Small small;
  const BufferId theirs =
      small.builder.buffer("theirs", BufferRole::scratch, {small.inner, 1}, {small.hidden, 1}, DType::bf16);
  const OpId moved = small.exchange({small.builder.whole(small.right)}, {small.builder.whole(theirs)});
  small.builder.gemm({.a = {small.row(small.left, 0)},
                      .b = {small.builder.whole(theirs)},
                      .out = {small.row(small.slots, 0)},
                      .waits = {moved}});
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"contents: op 1 (gemm) on rank 1 multiplies a[0,1] by b[0], which are "
                      "different blocks of the contraction"});
}

TEST(CheckProgram, FindsAGemmThatTheOperationDoesNotHave) {
  Small small;
  const TensorId c = small.builder.input_tensor("c", {small.inner, 2}, {small.hidden, 1}, DType::bf16);
  const BufferId other =
      small.builder.buffer("other", BufferRole::weight, {small.inner, 1}, {small.hidden, 1}, DType::bf16);
  small.builder.initially(small.builder.whole(other), c, along(small.builder.mesh(), 0), 0);
  small.builder.gemm(
      {.a = {small.row(small.left, 1)}, .b = {small.builder.whole(other)}, .out = {small.row(small.slots, 0)}});
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"contents: op 0 (gemm) on rank 0 multiplies a[1,0] by c[0], which is not a "
                      "product of the operation"});
}

TEST(CheckProgram, FindsACollectiveThatReducesDifferentBlocks) {
  Small small;
  const OpId gemm = small.multiply(along(small.builder.mesh(), 0), small.row(small.slots, 0));
  small.collect(CollectiveKind::all_reduce, {small.row(small.slots, 0)}, {small.row(small.spare, 0)}, {gemm});
  EXPECT_EQ(findings_of(small.build()), Sentences{"contents: op 1 (collective) on rank 0 adds y[1]{1} to y[0]{0}"});
}

TEST(CheckProgram, FindsAResultThatOnlyTheFirstIterationGetsRight) {
  // The neighbour's x replaces the rank's shard; the second iteration moves it back.
  Small small;
  const OpId kept = small.copy(small.row(small.own_shard, 0), small.row(small.slots, 0));
  small.exchange({small.row(small.slots, 0)}, {small.row(small.own_shard, 0)}, {kept});
  small.builder.finally(small.row(small.own_shard, 0), small.x, along(small.builder.mesh(), 0, 1), 0);
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"contents: in a second iteration, rank 0 ends with x[0] in row 0 of own instead of x[1]"});
}

TEST(CheckProgram, FindsTwoInitialContentsInOnePlace) {
  Small small;
  small.builder.initially(small.row(small.own_shard, 0), small.x, 0, 0);
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"contents: rank 1 would hold both x[1] and x[0] in row 0 of own before the first op"});
}

TEST(CheckProgram, PassesSumsThatBeginAsZeros) {
  // Each rank sends zeros to the other, which adds its partial product of row 0; an all-reduce then adds both sums.
  Small small;
  const OpId zero = small.zero(small.row(small.slots, 0));
  const OpId moved = small.exchange({small.row(small.slots, 0)}, {small.row(small.slots, 1)}, {zero});
  const OpId gemm = small.multiply(0, small.row(small.spare, 0));
  const OpId added = small.builder.elementwise({.function = Function::add,
                                                .inputs = {{small.row(small.slots, 1)}, {small.row(small.spare, 0)}},
                                                .out = {small.row(small.spare, 1)},
                                                .waits = {moved, gemm}});
  small.collect(CollectiveKind::all_reduce, {small.row(small.spare, 1)}, {small.row(small.spare, 0)}, {added});
  small.builder.finally(small.row(small.spare, 0), small.y, 0, 0);
  EXPECT_EQ(findings_of(small.build()), Sentences{});
}

TEST(CheckProgram, FindsZerosWhereAResultBelongs) {
  Small small;
  small.zero(small.row(small.slots, 0));
  small.add({{small.row(small.slots, 0)}, {small.row(small.slots, 0)}}, small.row(small.spare, 0));
  small.builder.finally(small.row(small.spare, 0), small.y, 0, 0);
  EXPECT_EQ(findings_of(small.build()),
            Sentences{"contents: rank 0 ends with zeros in row 0 of spare instead of y[0]"});
}

/// One rank that holds all of a and b, in two blocks of the contraction: y = a b, z = gelu(y), v = swiglu(a).
struct Nonlinear {
  ProgramBuilder builder{"nonlinear", Mesh{{{"tp", 1}}}};
  DimensionId tokens = builder.dimension("tokens", 1);
  DimensionId inner = builder.dimension("inner", 2);
  TensorId a = builder.input_tensor("a", {tokens, 1}, {inner, 2}, DType::bf16);
  TensorId b = builder.input_tensor("b", {inner, 2}, {inner, 2}, DType::bf16);
  TensorId y = builder.product_tensor("y", a, b);
  TensorId z = builder.function_tensor("z", Function::gelu, y);
  TensorId v = builder.function_tensor("v", Function::swiglu, a);
  BufferId buffer_a = buffer("buffer_a", {tokens, 1}, {inner, 2});
  BufferId buffer_b = buffer("buffer_b", {inner, 2}, {inner, 2});
  BufferId slots = buffer("slots", {tokens, 1}, {inner, 2});
  BufferId out = buffer("out", {tokens, 1}, {inner, 2});

  Nonlinear() {
    builder.initially(builder.whole(buffer_a), a, 0, 0);
    builder.initially(builder.whole(buffer_b), b, 0, 0);
  }
  BufferId buffer(const char* name, Extent rows, Extent columns) {
    return builder.buffer(name, BufferRole::scratch, rows, columns, DType::bf16);
  }
  /// Multiplies `blocks` contraction blocks starting at `first`, for both columns of y.
  OpId multiply(std::int32_t first, std::int32_t blocks, bool accumulate = false) {
    return builder.gemm({.a = {Region{buffer_a, 0, first, 1, blocks}},
                         .b = {Region{buffer_b, first, 0, blocks, 2}},
                         .out = {builder.whole(slots)},
                         .accumulate = accumulate});
  }
  OpId apply(Function function, const Operand& in, const Region& to) {
    return builder.elementwise({.function = function, .inputs = {in}, .out = {to}});
  }
  Program build() { return std::move(builder).build(); }
};

TEST(CheckProgram, PassesANonlinearFunctionOfASumMadeInTwoSteps) {
  Nonlinear nonlinear;
  nonlinear.multiply(0, 1);
  nonlinear.multiply(1, 1, true);
  nonlinear.apply(Function::gelu, {nonlinear.builder.whole(nonlinear.slots)}, nonlinear.builder.whole(nonlinear.out));
  nonlinear.builder.finally(nonlinear.builder.whole(nonlinear.out), nonlinear.z, 0, 0);
  EXPECT_EQ(findings_of(nonlinear.build()), Sentences{});
}

TEST(CheckProgram, FindsANonlinearFunctionOfAPartialSum) {
  Nonlinear nonlinear;
  nonlinear.multiply(1, 1);
  nonlinear.apply(Function::gelu, {nonlinear.builder.whole(nonlinear.slots)}, nonlinear.builder.whole(nonlinear.out));
  EXPECT_EQ(findings_of(nonlinear.build()),
            Sentences{"contents: op 1 (elementwise) on rank 0 applies a nonlinear function to "
                      "y[:,0]{1}, which is not complete"});
}

TEST(CheckProgram, FindsAFunctionThatTheOperationDoesNotApply) {
  Nonlinear nonlinear;
  nonlinear.apply(Function::gelu, {nonlinear.builder.whole(nonlinear.buffer_a)},
                  nonlinear.builder.whole(nonlinear.out));
  EXPECT_EQ(
      findings_of(nonlinear.build()),
      Sentences{
          "contents: op 0 (elementwise) on rank 0 applies to a[:,0] a function that the operation does not apply"});
}

TEST(CheckProgram, FindsGateAndUpInTheWrongOrder) {
  Nonlinear nonlinear;
  nonlinear.apply(Function::copy, {Region{nonlinear.buffer_a, 0, 1, 1, 1}}, Region{nonlinear.slots, 0, 0, 1, 1});
  nonlinear.apply(Function::copy, {Region{nonlinear.buffer_a, 0, 0, 1, 1}}, Region{nonlinear.slots, 0, 1, 1, 1});
  nonlinear.apply(Function::swiglu, {nonlinear.builder.whole(nonlinear.slots)}, Region{nonlinear.out, 0, 0, 1, 1});
  EXPECT_EQ(findings_of(nonlinear.build()),
            Sentences{"contents: op 2 (elementwise) on rank 0 pairs a[:,1] with a[:,0] as gate and up"});
}

TEST(CheckProgram, FindsAFactorThatIsAPartialSum) {
  Nonlinear nonlinear;
  nonlinear.multiply(0, 1);
  nonlinear.builder.gemm({.a = {nonlinear.builder.whole(nonlinear.slots)},
                          .b = {nonlinear.builder.whole(nonlinear.buffer_b)},
                          .out = {nonlinear.builder.whole(nonlinear.out)}});
  EXPECT_EQ(findings_of(nonlinear.build()),
            Sentences{"contents: op 1 (gemm) on rank 0 multiplies y[:,0]{0}, which is not complete"});
}

TEST(CheckProgram, FindsABlockThatIsMultipliedTwice) {
  // The second block of the left factor repeats the first.
  Nonlinear nonlinear;
  nonlinear.apply(Function::copy, {Region{nonlinear.buffer_a, 0, 0, 1, 1}}, Region{nonlinear.slots, 0, 0, 1, 1});
  nonlinear.apply(Function::copy, {Region{nonlinear.buffer_a, 0, 0, 1, 1}}, Region{nonlinear.slots, 0, 1, 1, 1});
  nonlinear.builder.gemm({.a = {nonlinear.builder.whole(nonlinear.slots)},
                          .b = {nonlinear.builder.whole(nonlinear.buffer_b)},
                          .out = {nonlinear.builder.whole(nonlinear.out)}});
  EXPECT_EQ(findings_of(nonlinear.build()),
            Sentences{"contents: op 2 (gemm) on rank 0 multiplies a[:,0] by b[1,0], which are "
                      "different blocks of the contraction"});
}

/// One rank with two blocks of tokens, and q, k and v of one block of heads.
struct AttentionCheck {
  explicit AttentionCheck(bool causal_tensor = true) {
    const TensorId qkv = builder.input_tensor("qkv", tokens, columns, DType::bf16);
    const TensorId attended = builder.attention_tensor("attended", qkv, heads, causal_tensor);
    builder.initially(builder.whole(in), qkv, 0, 0);
    builder.finally(builder.whole(out), attended, 0, 0);
  }
  /// Adds attention of `rows` query rows starting at `row`, at their own positions.
  AttentionCheck& attend(std::int32_t row, std::int32_t rows, const Operand& keys, bool causal = true) {
    return attend_as(row, row, rows, keys, causal);
  }
  /// Adds attention of `rows` query rows starting at `row`, which are stated to start at `position`.
  AttentionCheck& attend_as(Index position, std::int32_t row, std::int32_t rows, const Operand& keys,
                            bool causal = true) {
    builder.attention({.queries = {builder.rows_of(in, row, rows)},
                       .keys = keys,
                       .out = {builder.rows_of(out, row, rows)},
                       .positions = {position},
                       .batch = batch,
                       .head = head,
                       .causal = causal});
    return *this;
  }
  [[nodiscard]] Operand every_row() const { return {builder.whole(in)}; }
  [[nodiscard]] Region row(std::int32_t at) const { return builder.rows_of(in, at); }
  std::vector<std::string> findings() { return findings_of(std::move(builder).build()); }

  ProgramBuilder builder{"attending", Mesh{{{"tp", 1}}}};
  Extent tokens{builder.dimension("tokens", 2), 2};
  Extent columns{builder.dimension("qkv", 1), 1};
  Extent heads{builder.dimension("attention", 1), 1};
  DimensionId batch = builder.dimension("batch", 1);
  DimensionId head = builder.dimension("head", 1);
  BufferId in = builder.buffer("qkv", BufferRole::input, tokens, columns, DType::bf16);
  BufferId out = builder.buffer("out", BufferRole::output, tokens, heads, DType::bf16);
};

TEST(CheckProgram, PassesAttentionOfAllRowsAndOfOneQueryBlockAtATime) {
  AttentionCheck whole;
  EXPECT_EQ(whole.attend(0, 2, whole.every_row()).findings(), Sentences{});
  AttentionCheck sliced;  // with a causal mask the first block of queries needs no later key
  EXPECT_EQ(sliced.attend(0, 1, {sliced.row(0)}).attend(1, 1, sliced.every_row()).findings(), Sentences{});
  AttentionCheck unmasked(false);
  EXPECT_EQ(unmasked.attend(0, 1, unmasked.every_row(), false).attend(1, 1, unmasked.every_row(), false).findings(),
            Sentences{});
}

TEST(CheckProgram, IgnoresMaskedKeys) {
  AttentionCheck attending;
  EXPECT_EQ(attending.attend(0, 1, {attending.row(0), attending.row(0)}).attend(1, 1, attending.every_row()).findings(),
            Sentences{});
}

TEST(CheckProgram, FindsAttentionThatMissesKeys) {
  AttentionCheck full(false);
  EXPECT_EQ(full.attend(0, 1, {full.row(0)}, false).attend(1, 1, full.every_row(), false).findings(),
            (Sentences{"contents: op 0 (attention) on rank 0 attends with qkv[0] without key rows 1",
                       "contents: rank 0 ends with a wrong value in row 0 of out instead of attended[0]"}));
}

TEST(CheckProgram, FindsKeysInTheWrongRow) {
  AttentionCheck swapped;
  EXPECT_EQ(swapped.attend(0, 2, {swapped.row(1), swapped.row(0)}).findings(),
            (Sentences{"contents: op 0 (attention) on rank 0 attends with qkv[0] to qkv[1] as key row 0",
                       "contents: rank 0 ends with a wrong value in row 0 of out instead of attended[0]"}));
  AttentionCheck twice(false);
  EXPECT_EQ(twice.attend(0, 2, {twice.row(0), twice.row(1), twice.row(1)}, false).findings().front(),
            "contents: op 0 (attention) on rank 0 attends with qkv[0] to qkv[1] as key row 2");
}

TEST(CheckProgram, FindsQueriesAtTheWrongPosition) {
  AttentionCheck late;
  EXPECT_EQ(late.attend(0, 1, late.every_row()).attend_as(0, 1, 1, late.every_row()).findings(),
            (Sentences{"contents: op 1 (attention) on rank 0 attends with qkv[1] as row 0",
                       "contents: rank 0 ends with a wrong value in row 1 of out instead of attended[1]"}));
}

TEST(CheckProgram, FindsQueriesBeyondTheKeysOnAnyRank) {
  AttentionCheck late;
  EXPECT_EQ(late.attend(0, 1, late.every_row()).attend(1, 1, {late.row(0)}).findings(),
            Sentences{"bounds: op 1 (attention) on rank 0 has queries of block row 1, but its keys are 0"});
  AttentionCheck early;
  EXPECT_EQ(early.attend_as(-1, 0, 1, early.every_row()).findings(),
            Sentences{"bounds: op 0 (attention) on rank 0 has queries of block row -1, but its keys are 0 to 1"});
  AttentionCheck implicit;  // without positions the queries are rows 0 and 1
  implicit.builder.attention({.queries = implicit.every_row(),
                              .keys = {implicit.row(0)},
                              .out = {implicit.builder.whole(implicit.out)},
                              .batch = implicit.batch,
                              .head = implicit.head});
  EXPECT_EQ(implicit.findings(),
            Sentences{"bounds: op 0 (attention) on rank 0 has queries of block row 1, but its keys are 0"});
}

TEST(CheckProgram, FindsPositionsThatDoNotBelongToTheirQueries) {
  AttentionCheck attending;
  attending.attend(0, 1, attending.every_row()).attend(1, 1, attending.every_row());
  Program program = std::move(attending.builder).build();
  program.ops[1].positions.count = 2;
  EXPECT_EQ(findings_of(program),
            Sentences{"bounds: op 1 (attention) refers to a lane, shape, operand, buffer or axis that does not exist"});
}

TEST(CheckProgram, FindsAMaskThatTheOperationDoesNotHave) {
  AttentionCheck full(false);
  EXPECT_EQ(
      full.attend(0, 2, full.every_row(), true).findings(),
      (Sentences{"contents: op 0 (attention) on rank 0 attends with qkv[0], which the unfused operation does not do",
                 "contents: rank 0 ends with a wrong value in row 0 of out instead of attended[0]"}));
}

TEST(CheckProgram, FindsAttentionWithSwappedBatchAndHeadDimensions) {
  Program program = generate(operation_of(Scope::attention, true), Mesh{{{"tp", 2}}}, 0, serial_strategy, {});
  for (Shape& shape : program.unfused) {
    if (auto* attention = std::get_if<AttentionShape>(&shape)) {
      std::swap(attention->batch, attention->head);
    }
  }
  const CheckReport report = check_program(program);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].kind, FindingKind::bounds);
  EXPECT_EQ(report.findings[0].sentence,
            "attention ops into attention take q, k and v, sequences or heads from different dimensions");
}

// --- transposed factors ---------------------------------------------------------------------------------------------

/// One rank with two blocks of tokens: dw = x^T dy sums over these blocks.
struct Gradient {
  ProgramBuilder builder{"gradient", Mesh{{{"tp", 1}}}};
  Extent tokens{builder.dimension("tokens", 2), 2};
  Extent hidden{builder.dimension("hidden", 1), 1};
  Extent ffn{builder.dimension("ffn", 1), 1};
  BufferId x = input("x", hidden);
  BufferId dy = input("dy", ffn);
  TensorId dw = builder.product_tensor("dw", TensorId{0}, TensorId{1}, {.transpose_a = true, .dtype = DType::fp32});
  BufferId out = builder.buffer("out", BufferRole::output, hidden, ffn, DType::fp32);
  BufferId transposed = builder.buffer("transposed", BufferRole::scratch, ffn, hidden, DType::fp32);

  BufferId input(const char* name, Extent columns) {
    const TensorId tensor = builder.input_tensor(name, tokens, columns, DType::bf16);
    const BufferId id = builder.buffer(name, BufferRole::input, tokens, columns, DType::bf16);
    builder.initially(builder.whole(id), tensor, 0, 0);
    return id;
  }
  Gradient& multiply(const Operand& a, const Operand& b, BufferId to, bool accumulate = false) {
    builder.gemm({.a = a, .b = b, .out = {builder.whole(to)}, .accumulate = accumulate, .transpose_a = true});
    return *this;
  }
  Operand x_row(std::int32_t row) const { return {builder.rows_of(x, row)}; }
  Operand dy_row(std::int32_t row) const { return {builder.rows_of(dy, row)}; }
  Program build() {
    builder.finally(builder.whole(out), dw, 0, 0);
    return std::move(builder).build();
  }
};

TEST(CheckProgram, PassesAGradientSummedAsAWholeOrBlockByBlock) {
  Gradient whole;
  EXPECT_EQ(
      findings_of(whole.multiply({whole.builder.whole(whole.x)}, {whole.builder.whole(whole.dy)}, whole.out).build()),
      Sentences{});
  Gradient blocks;
  blocks.multiply(blocks.x_row(1), blocks.dy_row(1), blocks.out);
  EXPECT_EQ(findings_of(blocks.multiply(blocks.x_row(0), blocks.dy_row(0), blocks.out, true).build()), Sentences{});
}

TEST(CheckProgram, FindsAGradientOfDifferentTokens) {
  Gradient crossed;
  EXPECT_EQ(findings_of(crossed.multiply(crossed.x_row(0), crossed.dy_row(1), crossed.out).build()),
            (Sentences{"contents: op 0 (gemm) on rank 0 multiplies x[0]^T by dy[1], which are different blocks of the "
                       "contraction",
                       "contents: rank 0 ends with a wrong value in row 0 of out instead of dw[0]"}));
}

TEST(CheckProgram, FindsAGradientThatMissesTokensOrCountsThemTwice) {
  Gradient half;
  EXPECT_EQ(findings_of(half.multiply(half.x_row(1), half.dy_row(1), half.out).build()),
            (Sentences{"contents: rank 0 ends with dw[0]{1} in row 0 of out instead of dw[0]"}));
  Gradient twice;
  twice.multiply(twice.x_row(1), twice.dy_row(1), twice.out);
  EXPECT_EQ(findings_of(twice.multiply(twice.x_row(1), twice.dy_row(1), twice.out, true).build()),
            (Sentences{"contents: op 1 (gemm) on rank 0 counts contribution 1 to dw[0] twice",
                       "contents: rank 0 ends with a wrong value in row 0 of out instead of dw[0]"}));
}

TEST(CheckProgram, FindsTheTransposeOfAGemm) {
  Gradient gradient;
  gradient.multiply({gradient.builder.whole(gradient.x)}, {gradient.builder.whole(gradient.dy)}, gradient.out);
  EXPECT_EQ(
      findings_of(gradient
                      .multiply({gradient.builder.whole(gradient.dy)}, {gradient.builder.whole(gradient.x)},
                                gradient.transposed)
                      .build()),
      Sentences{"contents: op 1 (gemm) on rank 0 multiplies dy[0]^T by x[0], which is not a product of the operation"});
}

TEST(CheckProgram, FindsOperandsThatFitOnlyTransposed) {
  Gradient gradient;
  gradient.multiply({gradient.builder.whole(gradient.x)}, {gradient.builder.whole(gradient.dy)}, gradient.out);
  Program program = gradient.build();
  std::get<GemmShape>(program.shapes[0]).transpose_a = false;
  EXPECT_EQ(findings_of(program), Sentences{"bounds: the operands of op 0 (gemm) do not fit its shape"});
}

TEST(CheckProgram, FindsAKernelThatItsPartsDoNotFill) {
  Gradient gradient;
  gradient.multiply({gradient.builder.whole(gradient.x)}, {gradient.builder.whole(gradient.dy)}, gradient.out);
  const Extent two_rows{gradient.hidden.dimension, 2};
  const Extent two_columns{gradient.ffn.dimension, 2};
  Program program = gradient.build();
  auto& shape = std::get<GemmShape>(program.shapes[0]);
  shape.kernel_n = two_columns;
  EXPECT_EQ(findings_of(program), Sentences{});
  shape.kernel_m = two_rows;  // cut in both directions
  EXPECT_EQ(findings_of(program), Sentences{"bounds: the operands of op 0 (gemm) do not fit its shape"});
  shape.kernel_m = {};
  shape.kernel_n = two_rows;  // blocks of another dimension
  EXPECT_EQ(findings_of(program), Sentences{"bounds: the operands of op 0 (gemm) do not fit its shape"});
}

TEST(CheckProgram, FindsATensorWhoseFactorsFitOnlyTransposed) {
  Gradient gradient;
  Program program = gradient.build();
  program.tensors.back().transpose_a = false;
  EXPECT_EQ(findings_of(program), Sentences{"bounds: tensor dw has an invalid extent or definition"});
}

/// Returns the message that refuses a generated schedule; empty if it is proved, "wrong" if the proof finds a mistake.
std::string proof_refusal(Scope scope, std::int32_t ranks, const char* strategy, const StrategyOptions& options) {
  try {
    const Program program = generate(operation_of(scope, true), ranks, *find_strategy(strategy), options);
    return prove_generated(program).report.ok() ? "" : "wrong";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(ProveGenerated, RefusesAScheduleTooLargeToProveWithoutCallingItWrong) {
  const StrategyOptions balanced{.slices = 1, .attention = AttentionCut::zigzag};
  EXPECT_EQ(proof_refusal(Scope::attention, 64, "sliced", balanced), "");
  EXPECT_EQ(proof_refusal(Scope::attention, 512, "sliced", balanced),
            "sliced (k=1, zig-zag) attention on 512 ranks is too large to prove: more than 134217728 blocks; choose "
            "fewer ranks");
  EXPECT_EQ(
      proof_refusal(Scope::data_parallel, 1024, "sliced", {.slices = 8}),
      "sliced (k=8) data_parallel on 1024 ranks is too large to prove: more than 536870912 blocks; choose fewer ranks");
}

TEST(ProveGenerated, RefusesAProgramTooLargeForMemory) {
  EXPECT_EQ(proof_refusal(Scope::attention, 1024, "commfuse",
                          {.sub_slices = 4, .form = Form::ring, .lanes = 2, .attention = AttentionCut::zigzag}),
            "commfuse (ring, m=4, 2 lanes, zig-zag) attention on 1024 ranks needs more than 2097152 buffer regions; "
            "choose fewer ranks");
}

}  // namespace
}  // namespace commfuse
