// SPDX-License-Identifier: Apache-2.0
// An all-gather whose input is a part of its output; its wire dtype may be narrower than the stored dtype.
#pragma once

#include <utility>

#include "model/program/builder.h"

namespace commfuse::validate::test {

/// Every rank copies its rows of x into its part of the output, then gathers in place. A narrower wire dtype rounds all
/// rows, including the rank's own.
inline Program gather_in_place(std::int32_t ranks, DType stored, DType wire) {
  ProgramBuilder builder("gather_in_place", Mesh{{{"tp", ranks}}});
  const DimensionId tokens = builder.dimension("tokens", ranks);
  const DimensionId hidden = builder.dimension("hidden", 1);
  const TensorId x = builder.input_tensor("x", {tokens, ranks}, {hidden, 1}, stored);
  const BufferId own_block = builder.buffer("own", BufferRole::input, {tokens, 1}, {hidden, 1}, stored);
  const BufferId gathered = builder.buffer("gathered", BufferRole::output, {tokens, ranks}, {hidden, 1}, stored);
  builder.initially(builder.whole(own_block), x, along(builder.mesh(), 0), 0);
  builder.finally(builder.whole(gathered), x, 0, 0);
  const Operand own_rows{builder.rows_of(gathered, along(builder.mesh(), 0))};
  const OpId copied =
      builder.elementwise({.function = Function::copy, .inputs = {{builder.whole(own_block)}}, .out = own_rows});
  builder.collective({.kind = CollectiveKind::all_gather,
                      .in = own_rows,
                      .out = {builder.whole(gathered)},
                      .wire = wire,
                      .waits = {copied}});
  return std::move(builder).build();
}

}  // namespace commfuse::validate::test
