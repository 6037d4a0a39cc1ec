// SPDX-License-Identifier: Apache-2.0
// The smallest program that moves something, written by hand, whole or with halves missing.
#pragma once

#include <cstdint>
#include <utility>

#include "model/program/builder.h"

namespace commfuse::validate::test {

/// Rows of one element, one a rank, that go from `in` to the `out` of the next rank.
struct Shift {
  explicit Shift(std::int32_t ranks) : builder("by hand", Mesh{{{"tp", ranks}}}) {
    const Extent all{builder.dimension("rows", ranks), ranks};
    const Extent one{builder.dimension("columns", 1), 1};
    x = builder.input_tensor("x", all, one, DType::fp32);
    in = builder.buffer("in", BufferRole::input, {all.dimension, 1}, one, DType::fp32);
    out = builder.buffer("out", BufferRole::output, {all.dimension, 1}, one, DType::fp32);
    builder.initially(builder.whole(in), x, along(builder.mesh(), 0), 0);
  }
  void exchange(bool sends, bool receives, Protocol protocol = Protocol::rendezvous) {
    ExchangeSpec spec{.shift = 1, .wire = DType::fp32, .protocol = protocol};
    if (sends) {
      spec.send = {builder.whole(in)};
    }
    if (receives) {
      spec.receive = {builder.whole(out)};
    }
    builder.exchange(spec);
  }
  /// What was built, once.
  Program program() { return std::move(builder).build(); }

  ProgramBuilder builder;
  TensorId x{};
  BufferId in{}, out{};
};

}  // namespace commfuse::validate::test
