// SPDX-License-Identifier: Apache-2.0
// A program of pushes or pulls, which no strategy generates.
#pragma once

#include <cstdint>
#include <utility>

#include "model/program/builder.h"

namespace commfuse::validate::test {

/// Returns a program in which the rows of every rank go round a ring, so that every rank ends with the rows of all. A
/// push may write into a rank's memory, and a pull may read that memory, until a credit reports that the neighbour has
/// finished.
inline Program ring(std::int32_t ranks, Protocol protocol, DType stored = DType::bf16, DType wire = DType::bf16) {
  ProgramBuilder builder("ring", Mesh{{{"tp", ranks}}});
  const DimensionId tokens = builder.dimension("tokens", ranks);
  const DimensionId hidden = builder.dimension("hidden", 1);
  const TensorId x = builder.input_tensor("x", {tokens, ranks}, {hidden, 1}, stored);
  const BufferId own_rows = builder.buffer("own", BufferRole::input, {tokens, 1}, {hidden, 1}, stored);
  const BufferId gathered = builder.buffer("all", BufferRole::output, {tokens, ranks}, {hidden, 1}, stored);
  builder.initially(builder.whole(own_rows), x, along(builder.mesh(), 0), 0);
  builder.finally(builder.whole(gathered), x, 0, 0);
  const auto row = [&](std::int32_t step) { return builder.rows_of(gathered, along(builder.mesh(), 0, step)); };
  OpId last = builder.elementwise({.function = Function::copy, .inputs = {{builder.whole(own_rows)}}, .out = {row(0)}});
  for (std::int32_t step = 0; step + 1 < ranks; ++step) {
    last = builder.exchange(
        {.send = {row(-step)}, .receive = {row(-step - 1)}, .wire = wire, .protocol = protocol, .waits = {last}});
  }
  builder.credit({.shift = -1, .waits = {last}});
  return std::move(builder).build();
}

}  // namespace commfuse::validate::test
