// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/kernels.h"

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "validate/reference/attention.h"
#include "validate/reference/collective.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate {

namespace {

template <class Kind>
const Kind& shape_of(const Program& program, const Place& at) {
  return std::get<Kind>(program.shapes[at.command->shape]);
}

Matrix<float> rounded(DType wire, Matrix<float> value) {
  for (float& element : value.values()) {
    element = stored(wire, element);
  }
  return value;
}

/// Converts factors to fp32 once, or uses them in place if they are fp32. Also computes an fp32 result in place, unless
/// the GEMM accumulates.
void run_blocked(const GemmShape& shape, Memory& memory, const Place& at, Room& room) {
  const Command& command = *at.command;
  const std::vector<Rectangle>& to = command.outputs[0];
  const Rows<const float> a = memory.rows(at.rank, command.inputs[0], room.a);
  const Rows<const float> b = memory.rows(at.rank, command.inputs[1], room.b);
  if (const std::optional<Rows<float>> out = memory.place_of(at.rank, to); out && !shape.accumulate) {
    blocked_product(a, shape.transpose_a, b, shape.transpose_b, *out);
    return;
  }
  const std::int64_t rows = shape.transpose_a ? a.columns : a.rows;
  const std::int64_t columns = shape.transpose_b ? b.rows : b.columns;
  if (room.out.rows() != rows || room.out.columns() != columns) {
    room.out = Matrix<float>(rows, columns);
  }
  blocked_product(a, shape.transpose_a, b, shape.transpose_b, {room.out.values().data(), rows, columns, columns});
  if (shape.accumulate) {
    const std::array terms{memory.read(at.rank, to), room.out};
    memory.write(at.rank, to, sum(terms));
  } else {
    memory.write(at.rank, to, room.out);
  }
}

}  // namespace

void run_gemm(const Program& program, Memory& memory, const Place& at, const RunOptions& options) {
  if (options.functions == Functions::none) {
    return;
  }
  const Command& command = *at.command;
  const auto& shape = shape_of<GemmShape>(program, at);
  if (options.sum_order == SumOrder::blocked) {
    std::unique_ptr<Room> room = memory.rooms().take();
    run_blocked(shape, memory, at, *room);
    memory.rooms().give(std::move(room));
    return;
  }
  Matrix<float> out = product(factor(memory.read(at.rank, command.inputs[0]), shape.transpose_a),
                              factor(memory.read(at.rank, command.inputs[1]), shape.transpose_b));
  if (shape.accumulate) {
    const std::array terms{memory.read(at.rank, command.outputs[0]), std::move(out)};
    out = sum(terms);
  }
  memory.write(at.rank, command.outputs[0], out);
}

void run_elementwise(const Program& program, const Sizes& sizes, Memory& memory, const Place& at,
                     const RunOptions& options) {
  const Command& command = *at.command;
  const auto& shape = shape_of<ElementwiseShape>(program, at);
  if (options.functions == Functions::none && shape.function != Function::copy) {
    return;
  }
  std::vector<Matrix<float>> inputs;
  for (const std::vector<Rectangle>& input : command.inputs) {
    inputs.push_back(memory.read(at.rank, input));
  }
  const std::int64_t block = sizes.block[position(shape.columns.dimension)];
  const auto result = [&] {
    switch (shape.function) {
      case Function::add: return sum(inputs);
      case Function::residual: return residual(options.functions, inputs[0], inputs[1]);
      case Function::zero: return Matrix<float>(sizes.elements(shape.rows), sizes.elements(shape.columns));
      default: return apply(shape.function, options.functions, block, inputs[0]);
    }
  };
  memory.write(at.rank, command.outputs[0], result());
}

void run_attention(const Program& program, const Sizes& sizes, Memory& memory, const Place& at,
                   const RunOptions& options) {
  if (options.functions == Functions::none) {
    return;
  }
  const auto& shape = shape_of<AttentionShape>(program, at);
  const Command& command = *at.command;
  const std::int64_t block = sizes.block[position(shape.queries.dimension)];
  std::vector<std::int64_t> rows;  // rows of the queries in the whole matrix
  for (std::size_t i = 0; i < command.positions.size(); ++i) {
    for (std::int64_t row = 0; row < command.inputs[0][i].rows * block; ++row) {
      rows.push_back(command.positions[i] * block + row);
    }
  }
  memory.write(at.rank, command.outputs[0],
               attention(layout_of(sizes, shape), options.functions, memory.read(at.rank, command.inputs[0]), rows,
                         memory.read(at.rank, command.inputs[1])));
}

Matrix<float> sent_by(const Program& program, const Memory& memory, const Place& from) {
  return rounded(shape_of<ExchangeShape>(program, from).wire, memory.read(from.rank, from.command->inputs[0]));
}

void run_transfer(const Program& program, Memory& memory, const Place& from, const Place& to) {
  const std::vector<Rectangle>& source = from.command->inputs[0];
  const std::vector<Rectangle>& target = to.command->outputs[0];
  const DType wire = shape_of<ExchangeShape>(program, from).wire;
  if (memory.is_stored_in(wire, source) && memory.is_stored_in(wire, target)) {
    memory.copy(from.rank, source, to.rank, target);
    return;
  }
  memory.write(to.rank, target, sent_by(program, memory, from));
}

std::optional<Matrix<float>> given_by(const Program& program, const Memory& memory, const Place& member,
                                      const RunOptions& options) {
  const auto& shape = shape_of<CollectiveShape>(program, member);
  if (options.functions == Functions::none && adds(shape.kind)) {
    return std::nullopt;
  }
  const std::vector<Rectangle>& input = member.command->inputs[0];
  Matrix<float> value = memory.read(member.rank, input);
  return memory.is_stored_in(shape.wire, input) ? std::move(value) : rounded(shape.wire, std::move(value));
}

void run_collective(const Program& program, Memory& memory, std::span<const Place> members, const RunOptions& options) {
  std::vector<Matrix<float>> inputs;
  for (const Place& member : members) {
    std::optional<Matrix<float>> input = given_by(program, memory, member, options);
    if (!input) {
      return;
    }
    inputs.push_back(std::move(*input));
  }
  const std::vector<Matrix<float>> results =
      collective(shape_of<CollectiveShape>(program, members.front()).kind, inputs);
  for (std::size_t i = 0; i < members.size(); ++i) {
    memory.write(members[i].rank, members[i].command->outputs[0], results[i]);
  }
}

}  // namespace commfuse::validate
