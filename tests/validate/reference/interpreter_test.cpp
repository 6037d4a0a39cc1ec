// SPDX-License-Identifier: Apache-2.0
// Tests the interpreter on programs written by hand: receivers, order and rounding of data.
#include "validate/reference/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "model/program/builder.h"
#include "tests/validate/reference/matrices.h"

namespace commfuse::validate {
namespace {

using test::matrix;
using test::shared;

/// One tensor x of `ranks` rows of one element, a row on each rank, in a buffer `in` on every rank.
struct RankRows {
  explicit RankRows(std::int32_t ranks, DType dtype = DType::fp32, std::int32_t out_rows = 1)
      : builder("by hand", Mesh{{{"tp", ranks}}}) {
    const Extent rows_extent{builder.dimension("rows", ranks), ranks};
    const Extent one_column{builder.dimension("columns", 1), 1};
    x = builder.input_tensor("x", rows_extent, one_column, dtype);
    in = builder.buffer("in", BufferRole::input, {rows_extent.dimension, 1}, one_column, dtype);
    out = builder.buffer("out", BufferRole::output, {rows_extent.dimension, out_rows}, one_column, dtype);
    builder.initially(builder.whole(in), x, along(builder.mesh(), 0), 0);
  }

  /// Returns `out` on every rank after one iteration, with `values` in x.
  std::vector<Matrix<float>> run(const Matrix<float>& values, const RunOptions& options = {}) {
    const std::int32_t ranks = builder.mesh().ranks();
    Interpreter interpreter(lower(shared(std::move(builder).build())), Sizes{{1, 1}});
    interpreter.prepare({&values, 1});
    interpreter.run(options);
    std::vector<Matrix<float>> results;
    results.reserve(static_cast<std::size_t>(ranks));
    for (Rank rank = 0; rank < ranks; ++rank) {
      results.push_back(interpreter.fetch(rank, out));
    }
    return results;
  }

  ProgramBuilder builder;
  TensorId x{};
  BufferId in{}, out{};
};

TEST(Interpreter, AnExchangeByOneMovesEveryRowToTheNextRank) {
  RankRows rows(3);
  rows.builder.exchange({.shift = 1,
                         .send = {rows.builder.whole(rows.in)},
                         .receive = {rows.builder.whole(rows.out)},
                         .wire = DType::fp32});
  EXPECT_EQ(rows.run(matrix({{10}, {11}, {12}})), (std::vector{matrix({{12}}), matrix({{10}}), matrix({{11}})}));
}

TEST(Interpreter, ARankThatExchangesWithItselfReceivesItsOwnRows) {
  RankRows rows(1);
  rows.builder.exchange({.shift = 1,
                         .send = {rows.builder.whole(rows.in)},
                         .receive = {rows.builder.whole(rows.out)},
                         .wire = DType::fp32});
  EXPECT_EQ(rows.run(matrix({{7}})), (std::vector{matrix({{7}})}));
}

TEST(Interpreter, ASendAndAReceiveMayBeDifferentOpsOnDifferentRanks) {
  // Only rank 0 sends and only rank 1 receives; the buffer of rank 2 stays unwritten.
  RankRows rows(3);
  ProgramBuilder& builder = rows.builder;
  builder.exchange({.shift = 1, .send = {builder.whole(rows.in)}, .wire = DType::fp32});
  builder.exchange({.shift = 1, .receive = {builder.whole(rows.out)}, .wire = DType::fp32});
  const BufferId out = rows.out;
  Program program = std::move(builder).build();
  program.ops[0].where = {.relation = Relation::equal, .axis = 0, .value = 0};
  program.ops[1].where = {.relation = Relation::equal, .axis = 0, .value = 1};
  Interpreter interpreter(lower(shared(program)), Sizes{{1, 1}});
  const Matrix<float> values = matrix({{5}, {6}, {7}});
  interpreter.prepare({&values, 1});
  interpreter.run({});
  EXPECT_EQ(interpreter.fetch(1, out), matrix({{5}}));
  EXPECT_TRUE(std::isnan(interpreter.fetch(0, out).at(0, 0)));
  EXPECT_TRUE(std::isnan(interpreter.fetch(2, out).at(0, 0)));
}

TEST(Interpreter, PushesAndPullsMoveTheSameDataAsARendezvous) {
  for (const Protocol protocol : {Protocol::rendezvous, Protocol::push, Protocol::pull}) {
    for (std::uint64_t order = 0; order < 5; ++order) {
      RankRows rows(3);
      rows.builder.exchange({.shift = 1,
                             .send = {rows.builder.whole(rows.in)},
                             .receive = {rows.builder.whole(rows.out)},
                             .wire = DType::fp32,
                             .protocol = protocol});
      rows.builder.credit({.shift = -1});
      EXPECT_EQ(rows.run(matrix({{10}, {11}, {12}}), {.order = order}),
                (std::vector{matrix({{12}}), matrix({{10}}), matrix({{11}})}));
    }
  }
}

TEST(Interpreter, OneSidedSendsMayAllComeBeforeTheirReceives) {
  for (const Protocol protocol : {Protocol::push, Protocol::pull}) {
    RankRows rows(2);
    rows.builder.exchange(
        {.shift = 1, .send = {rows.builder.whole(rows.in)}, .wire = DType::fp32, .protocol = protocol});
    rows.builder.exchange(
        {.shift = 1, .receive = {rows.builder.whole(rows.out)}, .wire = DType::fp32, .protocol = protocol});
    EXPECT_EQ(rows.run(matrix({{1}, {2}})), (std::vector{matrix({{2}}), matrix({{1}})}));
  }
}

TEST(Interpreter, AMissingCreditShowsInSomeOrder) {
  // Two pushes go into one buffer, which the receiver copies after each push. Without the credit the second push may
  // arrive before the first copy.
  const auto spoiled = [](bool credit, std::uint64_t order) {
    RankRows rows(2, DType::fp32, 2);
    ProgramBuilder& builder = rows.builder;
    const BufferId inbox =
        builder.buffer("room", BufferRole::scratch, {DimensionId{0}, 1}, {DimensionId{1}, 1}, DType::fp32);
    const BufferId other =
        builder.buffer("other", BufferRole::scratch, {DimensionId{0}, 1}, {DimensionId{1}, 1}, DType::fp32);
    builder.elementwise(
        {.lane = {LaneKind::comm, 0}, .function = Function::zero, .inputs = {}, .out = {builder.whole(other)}});
    std::vector<OpId> waits;
    for (const BufferId from : {rows.in, other}) {
      const OpId arrived = builder.exchange({.send = {builder.whole(from)},
                                             .receive = {builder.whole(inbox)},
                                             .wire = DType::fp32,
                                             .protocol = Protocol::push,
                                             .waits = waits});
      const OpId copied = builder.elementwise({.function = Function::copy,
                                               .inputs = {{builder.whole(inbox)}},
                                               .out = {builder.rows_of(rows.out, from == rows.in ? 0 : 1)},
                                               .waits = {arrived}});
      waits = {credit ? builder.credit({.lane = {LaneKind::comm, 1}, .shift = 1, .waits = {copied}}) : copied};
    }
    return rows.run(matrix({{1}, {2}}), {.order = order}) != std::vector{matrix({{2}, {0}}), matrix({{1}, {0}})};
  };
  int spoiled_with_credit = 0;
  int spoiled_without_credit = 0;
  for (std::uint64_t order = 0; order < 20; ++order) {
    spoiled_with_credit += spoiled(true, order) ? 1 : 0;
    spoiled_without_credit += spoiled(false, order) ? 1 : 0;
  }
  EXPECT_EQ(spoiled_with_credit, 0);
  EXPECT_GT(spoiled_without_credit, 0);
}

TEST(Interpreter, SendsThatAllComeBeforeTheirReceivesOnOneLaneAreStuck) {
  RankRows rows(2);
  rows.builder.exchange({.shift = 1, .send = {rows.builder.whole(rows.in)}, .wire = DType::fp32});
  rows.builder.exchange({.shift = 1, .receive = {rows.builder.whole(rows.out)}, .wire = DType::fp32});
  try {
    rows.run(matrix({{1}, {2}}));
    FAIL() << "must not end";
  } catch (const Stuck& stuck) {
    EXPECT_STREQ(stuck.what(), "no op can run: rank 0 is stuck at op 0 (exchange), rank 1 is stuck at op 0 (exchange)");
  }
}

TEST(Interpreter, ManyStuckRanksAreCounted) {
  RankRows rows(9);
  rows.builder.exchange({.shift = 1, .send = {rows.builder.whole(rows.in)}, .wire = DType::fp32});
  rows.builder.exchange({.shift = 1, .receive = {rows.builder.whole(rows.out)}, .wire = DType::fp32});
  const Matrix<float> values(9, 1, 1.0F);
  try {
    rows.run(values);
    FAIL() << "must not end";
  } catch (const Stuck& stuck) {
    EXPECT_TRUE(std::string{stuck.what()}.ends_with("rank 3 is stuck at op 0 (exchange), and 5 more")) << stuck.what();
  }
}

TEST(Interpreter, TheWireRoundsItsData) {
  RankRows rows(2);
  rows.builder.exchange({.shift = 1,
                         .send = {rows.builder.whole(rows.in)},
                         .receive = {rows.builder.whole(rows.out)},
                         .wire = DType::bf16});
  EXPECT_EQ(rows.run(matrix({{257}, {259}})), (std::vector{matrix({{260}}), matrix({{256}})}));
}

TEST(Interpreter, StackedBuffersOfTwoDtypesAreConvertedSeparately) {
  RankRows rows(1, DType::fp32, 4);
  ProgramBuilder& builder = rows.builder;
  const auto buffer_of = [&](const char* name, DType dtype) {
    return builder.whole(builder.buffer(name, BufferRole::scratch, {DimensionId{0}, 1}, {DimensionId{1}, 1}, dtype));
  };
  const Region in = builder.whole(rows.in);
  const Region fine = buffer_of("fine", DType::fp32);
  const Region coarse = buffer_of("coarse", DType::bf16);
  builder.exchange({.send = {in, in}, .receive = {fine, coarse}, .wire = DType::fp32});
  builder.exchange({.send = {fine, coarse}, .receive = {builder.rows_of(rows.out, 0, 2)}, .wire = DType::fp32});
  builder.collective({.in = {coarse, fine}, .out = {builder.rows_of(rows.out, 2, 2)}, .wire = DType::bf16});
  EXPECT_EQ(rows.run(matrix({{257}})).front(), matrix({{257}, {256}, {256}, {256}}));  // 257 is not a bf16 number
}

TEST(Interpreter, SumsAreTakenInFp32AndRoundedWhenStored) {
  // In bf16, 256 + 1 would be 256, and adding 1 again would also give 256. In fp32 the sum is 258, which bf16 can
  // store.
  RankRows rows(3, DType::bf16);
  ProgramBuilder& builder = rows.builder;
  const BufferId inbox =
      builder.buffer("inbox", BufferRole::scratch, {DimensionId{0}, 3}, {DimensionId{1}, 1}, DType::bf16);
  const OpId gathered = builder.collective({.kind = CollectiveKind::all_gather,
                                            .in = {builder.whole(rows.in)},
                                            .out = {builder.whole(inbox)},
                                            .wire = DType::bf16});
  builder.elementwise(
      {.function = Function::add,
       .inputs = {{builder.rows_of(inbox, 0)}, {builder.rows_of(inbox, 1)}, {builder.rows_of(inbox, 2)}},
       .out = {builder.whole(rows.out)},
       .waits = {gathered}});
  EXPECT_EQ(rows.run(matrix({{256}, {1}, {1}})).front(), matrix({{258}}));
}

TEST(Interpreter, AZeroFillsItsRegionAndNothingElse) {
  RankRows rows(1, DType::fp32, 2);
  rows.builder.elementwise({.function = Function::zero, .out = {rows.builder.rows_of(rows.out, 1)}});
  const std::vector<Matrix<float>> results = rows.run(matrix({{5}}));
  EXPECT_TRUE(std::isnan(results[0].at(0, 0)));  // no op wrote it
  EXPECT_EQ(results[0].at(1, 0), 0.0F);
}

TEST(Interpreter, AnOperandIsStackedFromItsRegionsInOrder) {
  RankRows rows(1, DType::fp32, 3);
  ProgramBuilder& builder = rows.builder;
  // The rows dimension of one rank has one block; a buffer may still have three.
  builder.elementwise({.function = Function::copy,
                       .inputs = {{builder.whole(rows.in), builder.whole(rows.in)}},
                       .out = {builder.rows_of(rows.out, 2), builder.rows_of(rows.out, 0)}});
  const std::vector<Matrix<float>> results = rows.run(matrix({{5}}));
  EXPECT_EQ(results[0].at(0, 0), 5.0F);
  EXPECT_TRUE(std::isnan(results[0].at(1, 0)));  // no op wrote it
  EXPECT_EQ(results[0].at(2, 0), 5.0F);
}

TEST(Interpreter, UnwrittenDataSpoilsTheResult) {
  RankRows rows(2);
  ProgramBuilder& builder = rows.builder;
  const BufferId unwritten =
      builder.buffer("never", BufferRole::scratch, {DimensionId{0}, 1}, {DimensionId{1}, 1}, DType::fp32);
  builder.elementwise({.function = Function::add,
                       .inputs = {{builder.whole(rows.in)}, {builder.whole(unwritten)}},
                       .out = {builder.whole(rows.out)}});
  for (const Matrix<float>& result : rows.run(matrix({{1}, {2}}))) {
    EXPECT_TRUE(std::isnan(result.at(0, 0)));
  }
}

TEST(Interpreter, AGemmThatAccumulatesAddsItsWholeSum) {
  ProgramBuilder builder("by hand", Mesh{{{"tp", 1}}});
  const Extent one_element{builder.dimension("one", 1), 1};
  const TensorId x = builder.input_tensor("x", one_element, one_element, DType::fp32);
  const BufferId in = builder.buffer("in", BufferRole::input, one_element, one_element, DType::fp32);
  const BufferId out = builder.buffer("out", BufferRole::output, one_element, one_element, DType::fp32);
  builder.initially(builder.whole(in), x, 0, 0);
  for (const bool accumulate : {false, true, true}) {
    builder.gemm(
        {.a = {builder.whole(in)}, .b = {builder.whole(in)}, .out = {builder.whole(out)}, .accumulate = accumulate});
  }
  Interpreter interpreter(lower(shared(std::move(builder).build())), Sizes{{2}});
  const Matrix<float> values = matrix({{1, 2}, {0, 1}});
  interpreter.prepare({&values, 1});
  interpreter.run({});
  EXPECT_EQ(interpreter.fetch(0, out), matrix({{3, 12}, {0, 3}}));
}

TEST(Interpreter, AGemmTransposesAFactorOnRequest) {
  ProgramBuilder builder("by hand", Mesh{{{"tp", 1}}});
  const Extent one_element{builder.dimension("one", 1), 1};
  const TensorId x = builder.input_tensor("x", one_element, one_element, DType::fp32);
  const BufferId in = builder.buffer("in", BufferRole::input, one_element, one_element, DType::fp32);
  const BufferId left = builder.buffer("left", BufferRole::output, one_element, one_element, DType::fp32);
  const BufferId right = builder.buffer("right", BufferRole::output, one_element, one_element, DType::fp32);
  builder.initially(builder.whole(in), x, 0, 0);
  const Operand whole{builder.whole(in)};
  builder.gemm({.a = whole, .b = whole, .out = {builder.whole(left)}, .transpose_a = true});
  builder.gemm({.a = whole, .b = whole, .out = {builder.whole(right)}, .transpose_b = true});
  Interpreter interpreter(lower(shared(std::move(builder).build())), Sizes{{2}});
  const Matrix<float> values = matrix({{1, 2}, {0, 1}});
  interpreter.prepare({&values, 1});
  interpreter.run({});
  EXPECT_EQ(interpreter.fetch(0, left), matrix({{1, 2}, {2, 5}}));
  EXPECT_EQ(interpreter.fetch(0, right), matrix({{5, 2}, {2, 1}}));
}

TEST(Interpreter, AMissingWaitShowsInSomeOrder) {
  // The copy on lane aux must wait for the exchange. Without the wait it may run first and copy poison.
  const auto spoiled = [](bool waits, std::uint64_t order) {
    RankRows rows(2);
    ProgramBuilder& builder = rows.builder;
    const BufferId inbox =
        builder.buffer("inbox", BufferRole::scratch, {DimensionId{0}, 1}, {DimensionId{1}, 1}, DType::fp32);
    const OpId arrived = builder.exchange(
        {.shift = 1, .send = {builder.whole(rows.in)}, .receive = {builder.whole(inbox)}, .wire = DType::fp32});
    builder.elementwise({.lane = {LaneKind::aux, 0},
                         .function = Function::copy,
                         .inputs = {{builder.whole(inbox)}},
                         .out = {builder.whole(rows.out)},
                         .waits = waits ? std::vector{arrived} : std::vector<OpId>{}});
    return std::isnan(rows.run(matrix({{1}, {2}}), {.order = order}).front().at(0, 0));
  };
  int spoiled_with_wait = 0;
  int spoiled_without_wait = 0;
  for (std::uint64_t order = 0; order < 20; ++order) {
    spoiled_with_wait += spoiled(true, order) ? 1 : 0;
    spoiled_without_wait += spoiled(false, order) ? 1 : 0;
  }
  EXPECT_EQ(spoiled_with_wait, 0);
  EXPECT_GT(spoiled_without_wait, 3);
  EXPECT_LT(spoiled_without_wait, 17);
}

TEST(Interpreter, CorrectProgramsGiveTheSameBitsInEveryOrder) {
  const CheckPoint point{&checked_operations()[2], &commfuse_strategy, {}, 4, 1};
  const auto program = shared(program_of(point));
  const Sizes sizes = checked_sizes(*program).front();
  const BufferId output = program->final.front().here.buffer;
  std::vector<Matrix<float>> tensors;
  for (const Tensor& tensor : program->tensors) {
    tensors.emplace_back(sizes.elements(tensor.rows), sizes.elements(tensor.columns), 0.3F);
  }
  Interpreter interpreter(lower(program), sizes);
  interpreter.prepare(tensors);
  interpreter.run({});
  const Matrix<float> first = interpreter.fetch(3, output);
  EXPECT_FALSE(std::isnan(first.at(0, 0)));
  for (const std::uint64_t order : {0U, 1U, 2U, 3U}) {
    interpreter.prepare(tensors);
    interpreter.run({.order = order});
    EXPECT_EQ(interpreter.fetch(3, output), first) << "order " << order;
  }
}

TEST(Interpreter, ReportsUnsupportedPrograms) {
  ProgramBuilder builder("by hand", Mesh{{{"tp", 1}}});
  const Extent one_element{builder.dimension("one", 1), 1};
  builder.buffer("x", BufferRole::input, one_element, one_element, DType::fp8);
  try {
    const Interpreter interpreter(lower(shared(std::move(builder).build())), Sizes{{1}});
    FAIL() << "must refuse";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "the reference executor does not store fp8, the dtype of buffer x");
  }
}

}  // namespace
}  // namespace commfuse::validate
