// SPDX-License-Identifier: Apache-2.0
// A handwritten program that moves data between neighbours, with both halves of the exchange or only one.
#pragma once

#include <cstdint>
#include <utility>

#include "model/program/builder.h"

namespace commfuse::validate::test {

/// Rows of one element, one on each rank, that move from `in` to the `out` of the next rank.
struct Shift {
  explicit Shift(std::int32_t ranks) : builder("by hand", Mesh{{{"tp", ranks}}}) {
    const Extent rows_extent{builder.dimension("rows", ranks), ranks};
    const Extent one_column{builder.dimension("columns", 1), 1};
    x = builder.input_tensor("x", rows_extent, one_column, DType::fp32);
    in = builder.buffer("in", BufferRole::input, {rows_extent.dimension, 1}, one_column, DType::fp32);
    out = builder.buffer("out", BufferRole::output, {rows_extent.dimension, 1}, one_column, DType::fp32);
    builder.initially(builder.whole(in), x, along(builder.mesh(), 0), 0);
  }
  /// Adds an exchange that sends and receives.
  void exchange(Protocol protocol = Protocol::rendezvous) {
    builder.exchange({.shift = 1,
                      .send = {builder.whole(in)},
                      .receive = {builder.whole(out)},
                      .wire = DType::fp32,
                      .protocol = protocol});
  }
  void send_only() { builder.exchange({.shift = 1, .send = {builder.whole(in)}, .wire = DType::fp32}); }
  void receive_only() { builder.exchange({.shift = 1, .receive = {builder.whole(out)}, .wire = DType::fp32}); }
  /// Returns the program; call it once.
  Program program() { return std::move(builder).build(); }

  ProgramBuilder builder;
  TensorId x{};
  BufferId in{}, out{};
};

}  // namespace commfuse::validate::test
