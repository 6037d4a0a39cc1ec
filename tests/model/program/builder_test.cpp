// SPDX-License-Identifier: Apache-2.0
#include "model/program/builder.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

/// A builder with operands for GEMMs of one block of rows.
struct Bench {
  ProgramBuilder builder{"bench", Mesh{{{"tp", 4}}}};
  DimensionId tokens = builder.dimension("tokens", 4);
  DimensionId hidden = builder.dimension("hidden", 1);
  DimensionId ffn = builder.dimension("ffn", 4);
  BufferId x = builder.buffer("x", BufferRole::input, {tokens, 4}, {hidden, 1}, DType::bf16);
  BufferId w = builder.buffer("w", BufferRole::weight, {hidden, 1}, {ffn, 2}, DType::bf16);
  BufferId y = builder.buffer("y", BufferRole::output, {tokens, 4}, {ffn, 2}, DType::bf16);

  OpId gemm(const Index& row, const std::vector<OpId>& waits = {}) {
    return builder.gemm(
        {.a = {builder.rows_of(x, row)}, .b = {builder.whole(w)}, .out = {builder.rows_of(y, row)}, .waits = waits});
  }
};

TEST(Builder, ReturnsIdsInOrder) {
  Bench bench;
  EXPECT_EQ(bench.gemm(0), OpId{0});
  EXPECT_EQ(bench.gemm(1, {OpId{0}}), OpId{1});
  const Program program = std::move(bench.builder).build();
  EXPECT_EQ(program.waits_of(program.ops[1]).size(), 1U);
  EXPECT_EQ(program.waits_of(program.ops[1])[0], OpId{0});
}

TEST(Builder, OpsOfOneShapeShareIt) {
  Bench bench;
  bench.gemm(0);
  bench.gemm(1);
  const Program program = std::move(bench.builder).build();
  ASSERT_EQ(program.shapes.size(), 1U);
  const GemmShape expected{.m = {bench.tokens, 1}, .n = {bench.ffn, 2}, .k = {bench.hidden, 1}};
  EXPECT_EQ(std::get<GemmShape>(program.shapes[0]), expected);
  EXPECT_EQ(program.ops[0].shape, program.ops[1].shape);
}

TEST(Builder, ShapesAreNumberedInOrderOfFirstUse) {
  // Two rounds of 100 exchanges with different shifts, wires and halves: shapes with equal hashes must stay distinct.
  ProgramBuilder builder("shifts", Mesh{{{"tp", 25}}});
  const Extent one_token{builder.dimension("tokens", 1), 1};
  const BufferId from = builder.buffer("from", BufferRole::input, one_token, one_token, DType::bf16);
  for (std::int32_t i = 0; i < 200; ++i) {
    const DType wire = i % 100 / 25 % 2 == 0 ? DType::bf16 : DType::fp32;
    const Operand part{builder.whole(from)};
    const bool sends = i % 100 < 50;
    builder.exchange(
        {.shift = i % 25, .send = sends ? part : Operand{}, .receive = sends ? Operand{} : part, .wire = wire});
  }
  const Program program = std::move(builder).build();
  EXPECT_EQ(program.shapes.size(), 100U);
  for (std::uint32_t i = 0; i < 200; ++i) {
    EXPECT_EQ(program.ops[i].shape, i % 100);
  }
}

TEST(Builder, LanesAreNumberedInOrderOfFirstUse) {
  Bench bench;
  bench.builder.exchange({.send = {bench.builder.rows_of(bench.x, 0)}});
  bench.gemm(0);
  bench.builder.exchange({.send = {bench.builder.rows_of(bench.x, 0)}});
  const Program program = std::move(bench.builder).build();
  EXPECT_EQ(program.lanes, (std::vector<Lane>{{LaneKind::comm, 0}, {LaneKind::compute, 0}}));
  EXPECT_EQ(program.ops[2].lane, 0);
}

TEST(Builder, OperandsAreRegionsStackedByRows) {
  Bench bench;
  bench.builder.gemm({.a = {bench.builder.rows_of(bench.x, 0), bench.builder.rows_of(bench.x, 2, 2)},
                      .b = {bench.builder.whole(bench.w)},
                      .out = {bench.builder.rows_of(bench.y, 0, 3)}});
  const Program program = std::move(bench.builder).build();
  EXPECT_EQ(std::get<GemmShape>(program.shapes[0]).m, (Extent{bench.tokens, 3}));  // 1 + 2
  EXPECT_EQ(program.regions_of(program.inputs_of(program.ops[0])[0]).size(), 2U);
  EXPECT_EQ(program.outputs_of(program.ops[0]).size(), 1U);
}

TEST(Builder, OperandsShareOneOfTheLastTwoRegionsOfTheirBuffer) {
  Bench bench;
  ProgramBuilder& builder = bench.builder;
  const auto send = [&](std::int32_t from) { builder.exchange({.send = {builder.rows_of(bench.x, from)}}); };
  for (const std::int32_t row : {0, 1, 0, 1, 2, 1, 0}) {
    send(row);
  }
  const Program program = std::move(builder).build();
  EXPECT_EQ(program.regions.size(), 4U);  // 0, 1, 2, and 0 again
  const Program unshared_program = unshared(program);
  EXPECT_EQ(unshared_program.regions.size(), 7U);
  for (std::size_t i = 0; i < program.operands.size(); ++i) {
    EXPECT_EQ(program.regions_of(program.operands[i]).front(),
              unshared_program.regions_of(unshared_program.operands[i]).front());
    EXPECT_EQ(unshared_program.operands[i], (Slice{static_cast<std::uint32_t>(i), 1}));
  }
}

TEST(Builder, WrapsShiftsIntoTheAxis) {
  Bench bench;
  for (const std::int32_t shift : {-1, 3, 7}) {  // All are one step back on 4 ranks.
    bench.builder.exchange({.shift = shift, .send = {bench.builder.rows_of(bench.x, 0)}});
  }
  const Program program = std::move(bench.builder).build();
  ASSERT_EQ(program.shapes.size(), 1U);
  EXPECT_EQ(std::get<ExchangeShape>(program.shapes[0]).shift, 3);
}

TEST(Builder, CollectivesAreSizedByTheirLargerSide) {
  Bench bench;
  const Operand shard{bench.builder.rows_of(bench.x, 0)};
  const Operand whole{bench.builder.whole(bench.x)};
  bench.builder.collective({.kind = CollectiveKind::all_gather, .in = shard, .out = whole});
  bench.builder.collective({.kind = CollectiveKind::reduce_scatter, .in = whole, .out = shard});
  const Program program = std::move(bench.builder).build();
  EXPECT_EQ(std::get<CollectiveShape>(program.shapes[0]).rows, (Extent{bench.tokens, 4}));
  EXPECT_EQ(std::get<CollectiveShape>(program.shapes[1]).rows, (Extent{bench.tokens, 4}));
}

TEST(Builder, TensorsFollowFromTheirInputs) {
  Bench bench;
  ProgramBuilder& builder = bench.builder;
  const TensorId a = builder.input_tensor("a", {bench.tokens, 4}, {bench.hidden, 1}, DType::fp16);
  const TensorId b = builder.input_tensor("b", {bench.hidden, 1}, {bench.ffn, 8}, DType::fp16);
  const TensorId product = builder.product_tensor("product", a, b);
  const TensorId activated = builder.function_tensor("activated", Function::swiglu, product);
  EXPECT_EQ(builder.tensor(product).rows, (Extent{bench.tokens, 4}));
  EXPECT_EQ(builder.tensor(product).columns, (Extent{bench.ffn, 8}));
  EXPECT_EQ(builder.tensor(activated).columns, (Extent{bench.ffn, 4}));  // pairs of gate and up
  EXPECT_EQ(builder.tensor(activated).dtype, DType::fp16);
}

TEST(Builder, AGemmOfTransposedFactorsSumsOverTheirOtherSide) {
  Bench bench;
  ProgramBuilder& builder = bench.builder;
  const TensorId x = builder.input_tensor("x", {bench.tokens, 4}, {bench.hidden, 1}, DType::bf16);
  const TensorId w = builder.input_tensor("w", {bench.hidden, 1}, {bench.ffn, 8}, DType::bf16);
  const TensorId dy = builder.input_tensor("dy", {bench.tokens, 4}, {bench.ffn, 8}, DType::bf16);
  const Tensor dw = builder.tensor(builder.product_tensor("dw", x, dy, {.transpose_a = true, .dtype = DType::fp32}));
  EXPECT_EQ(dw.rows, (Extent{bench.hidden, 1}));
  EXPECT_EQ(dw.columns, (Extent{bench.ffn, 8}));
  EXPECT_EQ(dw.dtype, DType::fp32);
  EXPECT_EQ(contraction_of(dw, builder.tensor(x)), (Extent{bench.tokens, 4}));
  const Tensor dx = builder.tensor(builder.product_tensor("dx", dy, w, {.transpose_b = true}));
  EXPECT_EQ(dx.rows, (Extent{bench.tokens, 4}));
  EXPECT_EQ(dx.columns, (Extent{bench.hidden, 1}));
  EXPECT_EQ(contraction_of(dx, builder.tensor(dy)), (Extent{bench.ffn, 8}));
}

TEST(Builder, AGemmOfTransposedFactorsTakesItsOutputsDtypeFromTheBuffer) {
  Bench bench;
  ProgramBuilder& builder = bench.builder;
  const BufferId gradient =
      builder.buffer("gradient", BufferRole::output, {bench.hidden, 1}, {bench.ffn, 2}, DType::fp32);
  builder.gemm({.a = {builder.rows_of(bench.x, 1)},
                .b = {builder.rows_of(bench.y, 1)},
                .out = {builder.whole(gradient)},
                .transpose_a = true});
  builder.gemm({.a = {builder.rows_of(bench.y, 1)},
                .b = {builder.whole(bench.w)},
                .out = {builder.rows_of(bench.x, 1)},
                .transpose_b = true});
  const Program program = std::move(bench.builder).build();
  EXPECT_EQ(std::get<GemmShape>(program.shapes[0]), (GemmShape{.m = {bench.hidden, 1},
                                                               .n = {bench.ffn, 2},
                                                               .k = {bench.tokens, 1},
                                                               .transpose_a = true,
                                                               .out = DType::fp32}));
  EXPECT_EQ(std::get<GemmShape>(program.shapes[1]),
            (GemmShape{.m = {bench.tokens, 1}, .n = {bench.hidden, 1}, .k = {bench.ffn, 2}, .transpose_b = true}));
}

TEST(Builder, APartOfAKernelNamesItsRowsOrItsColumns) {
  Bench bench;
  ProgramBuilder& builder = bench.builder;
  builder.gemm({.a = {builder.rows_of(bench.x, 0)},
                .b = {builder.whole(bench.w)},
                .out = {builder.rows_of(bench.y, 0)},
                .kernel_rows = 4});
  builder.gemm({.a = {builder.whole(bench.x)},
                .b = {builder.column_of(bench.w, 1)},
                .out = {builder.column_of(bench.y, 1)},
                .kernel_columns = 2});
  EXPECT_EQ(builder.column_of(bench.y, 1), (Region{bench.y, 0, 1, 4, 1}));
  const Program program = std::move(bench.builder).build();
  const auto& rows = std::get<GemmShape>(program.shapes[0]);
  const auto& columns = std::get<GemmShape>(program.shapes[1]);
  EXPECT_EQ(
      rows,
      (GemmShape{.m = {bench.tokens, 1}, .n = {bench.ffn, 2}, .k = {bench.hidden, 1}, .kernel_m = {bench.tokens, 4}}));
  EXPECT_EQ(
      columns,
      (GemmShape{.m = {bench.tokens, 4}, .n = {bench.ffn, 1}, .k = {bench.hidden, 1}, .kernel_n = {bench.ffn, 2}}));
  EXPECT_EQ(kernel_cut_of(rows).part, 1);
  EXPECT_EQ(kernel_cut_of(rows).whole, 4);
  EXPECT_EQ(kernel_cut_of(columns).part, 1);
  EXPECT_EQ(kernel_cut_of(columns).whole, 2);
  EXPECT_FALSE(is_part_of_kernel(GemmShape{.m = {bench.tokens, 4}, .n = {bench.ffn, 2}, .k = {bench.hidden, 1}}));
}

TEST(Builder, FindsADimensionByName) {
  Bench bench;
  EXPECT_EQ(bench.builder.dimension("hidden", 1), bench.hidden);
}

TEST(Builder, AnOpCanBeLimitedToSomeRanks) {
  Bench bench;
  const OpId op = bench.gemm(0);
  bench.builder.only_where(op, {Relation::less, 0, 2});
  const Program program = std::move(bench.builder).build();
  EXPECT_EQ(program.ops[0].where, (Predicate{Relation::less, 0, 2}));
}

TEST(BuilderDeathTest, RefusesProgrammingErrors) {
  Bench bench;
  ProgramBuilder& builder = bench.builder;
  const Operand x{builder.whole(bench.x)};
  const Operand row{builder.rows_of(bench.x, 0)};
  EXPECT_DEATH(bench.gemm(0, {OpId{0}}), "an op waits only for ops added before it");
  EXPECT_DEATH(builder.dimension("hidden", 2), "a dimension is cut in one way");
  EXPECT_DEATH(builder.gemm({.a = x, .b = x, .out = x}), "the rows of b are the columns of a");
  EXPECT_DEATH(builder.gemm({.a = x, .b = {builder.whole(bench.w)}, .out = x, .transpose_a = true}),
               "the rows of b are the columns of a");
  GemmSpec part{.a = x, .b = {builder.whole(bench.w)}, .out = {builder.whole(bench.y)}, .kernel_columns = 3};
  EXPECT_DEATH(builder.gemm(part), "a kernel has equal parts");
  part.kernel_columns = 4;
  part.kernel_rows = 8;
  EXPECT_DEATH(builder.gemm(part), "a kernel is cut by rows or by columns, not by both");
  EXPECT_DEATH(builder.exchange({}), "an exchange sends or receives");
  EXPECT_DEATH(builder.exchange({.send = x, .receive = row}), "both halves of an exchange carry the same extents");
  EXPECT_DEATH(builder.collective({.kind = CollectiveKind::all_gather, .in = x, .out = x}),
               "an all-gather puts out ranks times its input");
  EXPECT_DEATH(builder.elementwise({.function = Function::copy, .inputs = {row, row}, .out = row}),
               "an add takes any number of inputs, a residual two, a zero none, other functions one");
  EXPECT_DEATH(static_cast<void>(ProgramBuilder("none", Mesh{})), "a mesh has one to three axes");
}

}  // namespace
}  // namespace commfuse
