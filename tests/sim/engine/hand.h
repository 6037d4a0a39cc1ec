// SPDX-License-Identifier: Apache-2.0
// Handwritten programs of a few ops.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/program/builder.h"

namespace commfuse::test {

/// Start and end of an op in picoseconds, as in Span{0, 5 * us}.
using Span = std::pair<std::int64_t, std::int64_t>;
inline constexpr std::int64_t us = 1'000'000;

/// Builds a program over one buffer with four slots per rank.
struct Hand {
  explicit Hand(std::int32_t ranks, std::string axis = "tp")
      : builder("by hand", Mesh{{{std::move(axis), ranks}}}),
        rows{builder.dimension("rows", 4), 4},
        columns{builder.dimension("columns", 1), 1},
        buffer(builder.buffer("b", BufferRole::scratch, rows, columns, DType::fp32)) {}

  Operand slot(std::int32_t row) { return {builder.rows_of(buffer, row)}; }
  OpId work(std::int32_t row, const std::vector<OpId>& waits = {}, Lane lane = {}) {
    return builder.elementwise({.lane = lane,
                                .function = Function::copy,
                                .inputs = {slot(row)},
                                .out = slot(row),
                                .waits = waits,
                                .purpose = Purpose::essential});
  }
  OpId pass_on(std::int32_t from, std::int32_t to, const std::vector<OpId>& waits = {}, std::int32_t shift = 1) {
    return builder.exchange({.shift = shift, .send = slot(from), .receive = slot(to), .waits = waits});
  }

  ProgramBuilder builder;
  Extent rows, columns;
  BufferId buffer;
};

}  // namespace commfuse::test
