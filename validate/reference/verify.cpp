// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/verify.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "validate/reference/collective.h"
#include "validate/reference/data.h"
#include "validate/reference/interpreter.h"
#include "validate/reference/references.h"
#include "validate/reference/rounding.h"
#include "validate/reference/unfused.h"

namespace commfuse::validate {

namespace {

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

/// Calls compare(tensor, row, column, value) for every element of every final content on every rank in this process.
template <class Compare>
void each_final(const Executor& executor, Compare&& compare) {
  const Program& program = executor.program();
  for (const Content& content : program.final) {
    for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
      if (!executor.holds(rank)) {
        continue;
      }
      const Coordinates coordinates = program.mesh.coordinates(rank);
      const Area area = area_of(program, executor.sizes(), content, rank);
      const Matrix<float> computed = executor.fetch(rank, rectangle_of(program, content.here, coordinates));
      for (std::int64_t row = 0; row < computed.rows(); ++row) {
        for (std::int64_t column = 0; column < computed.columns(); ++column) {
          compare(position(content.tensor), area.row + row, area.column + column, computed.at(row, column));
        }
      }
    }
  }
}

Tally compare_bits(const Executor& executor, std::span<const Matrix<float>> expected) {
  Tally tally;
  each_final(executor, [&](std::size_t tensor, std::int64_t row, std::int64_t column, float value) {
    tally.wrong += same_bits(value, expected[tensor].at(row, column)) ? 0 : 1;
    ++tally.elements;
  });
  return tally;
}

Tally compare_bound(const Executor& executor, std::span<const Bounded> expected) {
  Tally tally;
  each_final(executor, [&](std::size_t tensor, std::int64_t row, std::int64_t column, float value) {
    const double error = std::abs(static_cast<double>(value) - expected[tensor].value.at(row, column));
    const double ratio = error == 0.0 ? 0.0 : error / expected[tensor].bound.at(row, column);
    tally.worst = std::max(tally.worst, std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio);
    tally.wrong += ratio <= 1.0 ? 0 : 1;
    ++tally.elements;
  });
  return tally;
}

Tally verify_integers(Interpreter& interpreter, References& references, const VerifyOptions& options) {
  const auto& [inputs, expected] = references.integers(interpreter.program(), interpreter.sizes(), options.seed);
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

/// Returns the executor's buffers of all ranks that `holder` holds in this process.
std::vector<Matrix<float>> memory_of(const Executor& executor, const Executor& holder) {
  const Program& program = executor.program();
  std::vector<Matrix<float>> buffers;
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    if (!holder.holds(rank)) {
      continue;
    }
    for (std::size_t id = 0; id < program.buffers.size(); ++id) {
      const Buffer& buffer = program.buffers[id];
      buffers.push_back(executor.fetch(rank, {.buffer = BufferId{static_cast<std::int32_t>(id)},
                                              .rows = buffer.rows.blocks,
                                              .columns = buffer.columns.blocks}));
    }
  }
  return buffers;
}

Tally compare_memory(const Executor& executor, std::span<const Matrix<float>> expected) {
  Tally tally;
  const std::vector<Matrix<float>> memory = memory_of(executor, executor);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const std::span<const float> values = memory[i].values();
    const std::span<const float> expected_values = expected[i].values();
    for (std::size_t at = 0; at < values.size(); ++at) {
      tally.wrong += same_bits(values[at], expected_values[at]) ? 0 : 1;
    }
    tally.elements += static_cast<std::int64_t>(values.size());
  }
  return tally;
}

/// Returns the number of iterations of a run in this order. After one iteration, a value that was read before it was
/// written is still poison. After two, it may be the value of the first iteration, but a value that was overwritten too
/// early shows.
int iterations_of(int order) { return 1 + order % 2; }

/// Runs the executor on these inputs, and compares its memory with the oracle's in every order.
Tally verify_memory(Executor& executor, Executor& oracle, std::span<const Matrix<float>> inputs, Functions functions,
                    std::uint64_t first, int orders) {
  oracle.prepare(inputs);
  std::array<std::vector<Matrix<float>>, 2> expected;
  for (std::vector<Matrix<float>>& after : expected) {
    oracle.run({.functions = functions});
    after = memory_of(oracle, executor);
  }
  Tally tally;
  for (int order = 0; order < orders; ++order) {
    const int iterations = iterations_of(order);
    executor.prepare(inputs);
    executor.run(
        {.functions = functions, .order = first + static_cast<std::uint64_t>(order), .iterations = iterations});
    tally += compare_memory(executor, expected[static_cast<std::size_t>(iterations - 1)]);
  }
  return tally;
}

Verdict verify_executor(Executor& executor, Executor& oracle, References& references, const VerifyOptions& options) {
  const Program& program = executor.program();
  const Sizes& sizes = executor.sizes();
  Verdict verdict;
  verdict.moved = verify_memory(executor, oracle, input_data(program, sizes, DataKind::tags, options.seed),
                                Functions::none, options.chaos, 2);
  const auto& [integers, unfused_integers] = references.integers(program, sizes, options.seed);
  for (int order = 0; order < 2; ++order) {
    executor.prepare(integers);
    executor.run({.functions = Functions::integer,
                  .order = options.chaos + static_cast<std::uint64_t>(order),
                  .iterations = iterations_of(order)});
    verdict.integers += compare_bits(executor, unfused_integers);
  }
  const auto& inputs = references.inputs(program, sizes, options.seed);
  if (options.library_sums && has_collective_sums(program)) {
    executor.prepare(inputs);
    executor.run({.order = options.chaos});
  } else {
    verdict.same_order = verify_memory(executor, oracle, inputs, Functions::real, options.chaos, options.orders);
  }
  if (cuts_no_sum(program)) {
    verdict.bitwise = compare_bits(executor, references.unfused(program, sizes, options.seed));
  }
  verdict.bound = compare_bound(executor, references.bounded(program, sizes, options.seed));
  return verdict;
}

/// Returns whether the condition holds for the buffers of all these operands.
template <class Condition>
bool all_buffers(const Program& program, std::span<const Slice> operands, Condition&& condition) {
  return std::ranges::all_of(operands, [&](Slice operand) {
    return std::ranges::all_of(program.regions_of(operand), [&](const Region& region) {
      return condition(program.buffers[position(region.buffer)]);
    });
  });
}

/// Returns whether every output of the op has the dtype of each tensor of which it may be a part.
bool rounds_to_tensors(const Program& program, const Op& op) {
  using Definition = Tensor::Definition;
  const Definition definition = op.kind == OpKind::gemm        ? Definition::product
                                : op.kind == OpKind::attention ? Definition::attention
                                                               : Definition::function;
  return all_buffers(program, program.outputs_of(op), [&](const Buffer& buffer) {
    return std::ranges::none_of(program.tensors, [&](const Tensor& tensor) {
      return tensor.definition == definition && tensor.dtype != buffer.dtype &&
             tensor.rows.dimension == buffer.rows.dimension && tensor.columns.dimension == buffer.columns.dimension;
    });
  });
}

/// Returns whether the op rounds values only as the unfused operation does: once when it computes a tensor, to the
/// dtype of the tensor, and never when it moves data.
bool rounds_as_unfused(const Program& program, const Op& op) {
  const auto inputs_are_no_finer = [&](DType dtype) {
    return all_buffers(program, program.inputs_of(op),
                       [&](const Buffer& buffer) { return !is_coarser(dtype, buffer.dtype); });
  };
  const auto outputs_are_no_coarser = [&](DType dtype) {
    return all_buffers(program, program.outputs_of(op),
                       [&](const Buffer& buffer) { return !is_coarser(buffer.dtype, dtype); });
  };
  const Shape& shape = program.shapes[op.shape];
  if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    return inputs_are_no_finer(exchange->wire) && outputs_are_no_coarser(exchange->wire);
  }
  if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
    return inputs_are_no_finer(collective->wire) && outputs_are_no_coarser(collective->wire);
  }
  const auto* elementwise = std::get_if<ElementwiseShape>(&shape);
  if (elementwise != nullptr && elementwise->function == Function::copy) {
    return all_buffers(program, program.outputs_of(op),
                       [&](const Buffer& buffer) { return inputs_are_no_finer(buffer.dtype); });
  }
  return rounds_to_tensors(program, op);
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
  const auto add = [](std::optional<Tally>& to, const std::optional<Tally>& addend) {
    if (addend) {
      to = to.value_or(Tally{}) += *addend;
    }
  };
  add(bitwise, other.bitwise);
  add(moved, other.moved);
  add(same_order, other.same_order);
  return *this;
}

bool integers_stay_exact(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  const auto inputs = input_data(program, sizes, DataKind::integers, seed);
  return sums_are_exact(program, unfused(program, sizes, inputs, Functions::integer));
}

bool cuts_no_sum(const Program& program) {
  struct Whole {
    const Program& program;
    [[nodiscard]] bool is_whole(Extent extent) const {
      return extent.blocks == program.dimensions[position(extent.dimension)].blocks;
    }
    bool operator()(const GemmShape& gemm) const { return !gemm.accumulate && is_whole(gemm.k); }
    bool operator()(const AttentionShape& attention) const { return is_whole(attention.keys); }
    bool operator()(const ElementwiseShape& elementwise) const { return elementwise.function != Function::add; }
    bool operator()(const ExchangeShape&) const { return true; }
    bool operator()(const CollectiveShape& collective) const { return !adds(collective.kind); }
  };
  // Rows gathered from several places may be in a different order than in the unfused sum.
  const auto in_order = [&](const Op& op) {
    const auto* gemm = std::get_if<GemmShape>(&program.shapes[op.shape]);
    const auto inputs = program.inputs_of(op);
    return gemm == nullptr ||
           ((!gemm->transpose_a || inputs[0].count == 1) && (gemm->transpose_b || inputs[1].count == 1));
  };
  return std::ranges::all_of(program.shapes, [&](const Shape& shape) { return std::visit(Whole{program}, shape); }) &&
         std::ranges::all_of(program.ops, in_order) &&
         std::ranges::all_of(program.ops, [&](const Op& op) { return rounds_as_unfused(program, op); });
}

bool has_collective_sums(const Program& program) {
  return std::ranges::any_of(program.shapes, [&](const Shape& shape) {
    const auto* collective = std::get_if<CollectiveShape>(&shape);
    return collective != nullptr && adds(collective->kind) &&
           program.mesh.axes[static_cast<std::size_t>(collective->axis)].extent > 2;
  });
}

Verdict verify(const std::shared_ptr<const Program>& program, const Sizes& sizes, const VerifyOptions& options) {
  References local;
  References& references = options.references == nullptr ? local : *options.references;
  Interpreter interpreter(lower(program), sizes);
  if (options.executor) {
    const std::unique_ptr<Executor> oracle = options.oracle ? options.oracle(lower(program), sizes) : nullptr;
    return verify_executor(*options.executor(lower(program), sizes), oracle ? *oracle : interpreter, references,
                           options);
  }
  Verdict verdict{.integers = verify_integers(interpreter, references, options), .bitwise = {}, .bound = {}};
  interpreter.prepare(references.inputs(*program, sizes, options.seed));
  interpreter.run({});
  if (cuts_no_sum(*program)) {
    verdict.bitwise = compare_bits(interpreter, references.unfused(*program, sizes, options.seed));
  }
  verdict.bound = compare_bound(interpreter, references.bounded(*program, sizes, options.seed));
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
