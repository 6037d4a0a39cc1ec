// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/verify.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "validate/reference/data.h"
#include "validate/reference/interpreter.h"
#include "validate/reference/unfused.h"

namespace commfuse::validate {

namespace {

/// compare(tensor, row, column, value) for every element of every final content on every rank.
template <class Compare>
void each_final(const Interpreter& interpreter, Compare&& compare) {
  const Program& program = interpreter.program();
  for (const Content& content : program.final) {
    for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
      const Coordinates here = program.mesh.coordinates(rank);
      const Area there = area_of(program, interpreter.sizes(), content, rank);
      const Matrix<float> computed = interpreter.fetch(rank, rectangle_of(program, content.here, here));
      for (std::int64_t row = 0; row < computed.rows(); ++row) {
        for (std::int64_t column = 0; column < computed.columns(); ++column) {
          compare(position(content.tensor), there.row + row, there.column + column, computed.at(row, column));
        }
      }
    }
  }
}

Tally compare_bits(const Interpreter& interpreter, std::span<const Matrix<float>> expected) {
  Tally tally;
  each_final(interpreter, [&](std::size_t tensor, std::int64_t row, std::int64_t column, float value) {
    const float wanted = expected[tensor].at(row, column);
    tally.wrong += std::bit_cast<std::uint32_t>(value) == std::bit_cast<std::uint32_t>(wanted) ? 0 : 1;
    ++tally.elements;
  });
  return tally;
}

Tally compare_bound(const Interpreter& interpreter, std::span<const Bounded> expected) {
  Tally tally;
  each_final(interpreter, [&](std::size_t tensor, std::int64_t row, std::int64_t column, float value) {
    const double off = std::abs(static_cast<double>(value) - expected[tensor].value.at(row, column));
    const double ratio = off == 0.0 ? 0.0 : off / expected[tensor].bound.at(row, column);
    tally.worst = std::max(tally.worst, std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio);
    tally.wrong += ratio <= 1.0 ? 0 : 1;
    ++tally.elements;
  });
  return tally;
}

Tally verify_integers(Interpreter& interpreter, const VerifyOptions& options) {
  const Program& program = interpreter.program();
  const auto [inputs, expected] = integer_data(program, interpreter.sizes(), options.seed);
  Tally tally;
  for (int order = 0; order < options.orders; ++order) {
    const RunOptions run{.functions = Functions::integer, .order = static_cast<std::uint64_t>(order)};
    interpreter.prepare(inputs);
    for (int iteration = 0; iteration < 2; ++iteration) {
      interpreter.run(run);
      tally += compare_bits(interpreter, expected);
    }
  }
  return tally;
}

}  // namespace

Tally& Tally::operator+=(const Tally& other) {
  elements += other.elements;
  wrong += other.wrong;
  worst = std::max(worst, other.worst);
  return *this;
}

Verdict& Verdict::operator+=(const Verdict& other) {
  integers += other.integers;
  bound += other.bound;
  if (other.bitwise) {
    bitwise = bitwise.value_or(Tally{}) += *other.bitwise;
  }
  return *this;
}

bool integers_stay_exact(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  const auto inputs = input_data(program, sizes, DataKind::integers, seed);
  return sums_are_exact(program, unfused(program, sizes, inputs, Functions::integer));
}

bool cuts_no_sum(const Program& program) {
  struct Whole {
    const Program& program;
    [[nodiscard]] bool all(Extent extent) const {
      return extent.blocks == program.dimensions[position(extent.dimension)].blocks;
    }
    bool operator()(const GemmShape& gemm) const { return !gemm.accumulate && all(gemm.k); }
    bool operator()(const AttentionShape& attention) const { return all(attention.keys); }
    bool operator()(const ElementwiseShape& elementwise) const { return elementwise.function != Function::add; }
    bool operator()(const ExchangeShape&) const { return true; }
    bool operator()(const CollectiveShape& collective) const {
      return collective.kind != CollectiveKind::reduce_scatter && collective.kind != CollectiveKind::all_reduce;
    }
  };
  // Rows put together from several places may stand in another order than the unfused sum takes them.
  const auto in_order = [&](const Op& op) {
    const auto* gemm = std::get_if<GemmShape>(&program.shapes[op.shape]);
    const auto inputs = program.inputs_of(op);
    return gemm == nullptr ||
           ((!gemm->transpose_a || inputs[0].count == 1) && (gemm->transpose_b || inputs[1].count == 1));
  };
  return std::ranges::all_of(program.shapes, [&](const Shape& shape) { return std::visit(Whole{program}, shape); }) &&
         std::ranges::all_of(program.ops, in_order);
}

Verdict verify(const std::shared_ptr<const Program>& program, const Sizes& sizes, const VerifyOptions& options) {
  Interpreter interpreter(lower(program), sizes);
  Verdict verdict{.integers = verify_integers(interpreter, options), .bitwise = {}, .bound = {}};
  const auto inputs = input_data(*program, sizes, DataKind::random, options.seed);
  interpreter.prepare(inputs);
  interpreter.run({});
  if (cuts_no_sum(*program)) {
    verdict.bitwise = compare_bits(interpreter, unfused(*program, sizes, inputs, Functions::real));
  }
  verdict.bound = compare_bound(interpreter, bounded(*program, sizes, inputs));
  return verdict;
}

Tally verify_bitwise(const std::shared_ptr<const Program>& program, const Sizes& sizes, std::uint64_t seed) {
  Interpreter interpreter(lower(program), sizes);
  const auto inputs = input_data(*program, sizes, DataKind::random, seed);
  interpreter.prepare(inputs);
  interpreter.run({});
  return compare_bits(interpreter, unfused(*program, sizes, inputs, Functions::real));
}

}  // namespace commfuse::validate
