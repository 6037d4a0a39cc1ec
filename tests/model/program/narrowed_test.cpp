// SPDX-License-Identifier: Apache-2.0
// Tests which transfers get narrower wires, and which keep theirs.
#include "model/program/narrowed.h"

#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "model/program/builder.h"

namespace commfuse {
namespace {

/// Returns a program with an exchange, a credit and one collective of every kind, in this order.
Program transfers(DType dtype) {
  ProgramBuilder builder("transfers", Mesh{{{"tp", 2}}});
  const DimensionId rows = builder.dimension("rows", 2);
  const DimensionId columns = builder.dimension("columns", 1);
  const BufferId half = builder.buffer("half", BufferRole::input, {rows, 1}, {columns, 1}, dtype);
  const BufferId second_half = builder.buffer("second half", BufferRole::output, {rows, 1}, {columns, 1}, dtype);
  const BufferId whole = builder.buffer("whole", BufferRole::output, {rows, 2}, {columns, 1}, dtype);
  const BufferId second_whole = builder.buffer("second whole", BufferRole::output, {rows, 2}, {columns, 1}, dtype);
  OpId last = builder.exchange({.send = {builder.whole(half)}, .receive = {builder.whole(second_half)}, .wire = dtype});
  last = builder.credit({.shift = -1, .waits = {last}});
  const auto collective = [&](CollectiveKind kind, BufferId in, BufferId out) {
    last = builder.collective(
        {.kind = kind, .in = {builder.whole(in)}, .out = {builder.whole(out)}, .wire = dtype, .waits = {last}});
  };
  collective(CollectiveKind::all_gather, half, whole);
  collective(CollectiveKind::all_to_all, whole, second_whole);
  collective(CollectiveKind::all_reduce, whole, second_whole);
  collective(CollectiveKind::reduce_scatter, whole, second_half);
  return std::move(builder).build();
}

std::vector<DType> wires_of(const Program& program) {
  std::vector<DType> wires;
  for (const Op& op : program.ops) {
    const Shape& shape = program.shapes[op.shape];
    const auto* exchange = std::get_if<ExchangeShape>(&shape);
    wires.push_back(exchange != nullptr ? exchange->wire : std::get<CollectiveShape>(shape).wire);
  }
  return wires;
}

TEST(Narrowed, TransfersWithoutSumsGetNarrowerWires) {
  const Program wide = transfers(DType::bf16);
  const std::vector<DType> before = wires_of(wide);
  const std::vector<DType> expected{DType::fp8, before[1], DType::fp8, DType::fp8, DType::bf16, DType::bf16};
  EXPECT_EQ(wires_of(narrowed(wide, DType::fp8)), expected);
}

TEST(Narrowed, WiresThatAreNoWiderStayUnchanged) {
  const Program wide = transfers(DType::bf16);
  EXPECT_EQ(wires_of(narrowed(wide, DType::fp32)), wires_of(wide));
  EXPECT_EQ(wires_of(narrowed(wide, DType::fp16)), wires_of(wide));
}

}  // namespace
}  // namespace commfuse
