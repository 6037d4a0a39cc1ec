// SPDX-License-Identifier: Apache-2.0
#include "model/program/lower.h"

#include <utility>

#include "model/check.h"

namespace commfuse {

namespace {

std::vector<std::vector<Rectangle>> rectangles(const Program& program, std::span<const Slice> operands,
                                               const Coordinates& coordinates) {
  std::vector<std::vector<Rectangle>> result;
  for (const Slice operand : operands) {
    result.emplace_back();
    for (const Region& region : program.regions_of(operand)) {
      result.back().push_back(rectangle_of(program, region, coordinates));
    }
  }
  return result;
}

void add_partners(const Lowered& lowered, const ExchangeShape& exchange, Rank rank, Command& command) {
  if (exchange.sends) {
    command.target = target_of(*lowered.program, exchange, rank);
    command.target_op = OpId{lowered.matching.receiver(rank, command.op)};
  }
  if (exchange.receives) {
    command.source = source_of(*lowered.program, exchange, rank);
    command.source_op = OpId{lowered.matching.sender(rank, command.op)};
  }
}

void add_group(const Program& program, const CollectiveShape& collective, Rank rank, Command& command) {
  const std::int32_t extent = program.mesh.axes[static_cast<std::size_t>(collective.axis)].extent;
  for (std::int32_t coordinate = 0; coordinate < extent; ++coordinate) {
    command.group.push_back(program.mesh.member(rank, collective.axis, coordinate));
  }
}

}  // namespace

Rectangle rectangle_of(const Program& program, const Region& region, const Coordinates& coordinates) {
  return {region.buffer, region.row.at(program.mesh, coordinates), region.column.at(program.mesh, coordinates),
          region.rows, region.columns};
}

Lowered lower(std::shared_ptr<const Program> program) {
  Matching matching = match(*program);
  return lower(std::move(program), std::move(matching));
}

Lowered lower(std::shared_ptr<const Program> program, Matching matching) {
  check(matching.problems.empty(), "a program is checked before it is lowered");
  return {std::move(program), std::move(matching)};
}

std::vector<Command> commands_of(const Lowered& lowered, Rank rank) {
  const Program& program = *lowered.program;
  const Coordinates coordinates = program.mesh.coordinates(rank);
  std::vector<std::int32_t> command_of_op(program.ops.size(), -1);
  std::vector<Command> commands;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (!op.where.holds(coordinates)) {
      continue;
    }
    Command command{.op = OpId{static_cast<std::int32_t>(i)},
                    .kind = op.kind,
                    .purpose = op.purpose,
                    .lane = op.lane,
                    .shape = op.shape};
    for (const OpId wait : program.waits_of(op)) {
      if (command_of_op[position(wait)] >= 0) {
        command.waits.push_back(command_of_op[position(wait)]);
      }
    }
    command.inputs = rectangles(program, program.inputs_of(op), coordinates);
    command.outputs = rectangles(program, program.outputs_of(op), coordinates);
    if (const auto* exchange = std::get_if<ExchangeShape>(&program.shapes[op.shape])) {
      add_partners(lowered, *exchange, rank, command);
    } else if (const auto* collective = std::get_if<CollectiveShape>(&program.shapes[op.shape])) {
      add_group(program, *collective, rank, command);
    } else if (op.kind == OpKind::attention) {
      command.positions = positions_at(program, op, coordinates);
    }
    command_of_op[i] = static_cast<std::int32_t>(commands.size());
    commands.push_back(std::move(command));
  }
  return commands;
}

std::vector<std::int32_t> positions_at(const Program& program, const Op& attention, const Coordinates& coordinates) {
  std::vector<std::int32_t> positions;
  for (const Index& position : program.positions_of(attention)) {
    positions.push_back(position.at(program.mesh, coordinates));
  }
  if (positions.empty()) {
    std::int32_t above = 0;
    for (const Region& region : program.regions_of(program.inputs_of(attention).front())) {
      positions.push_back(above);
      above += region.rows;
    }
  }
  return positions;
}

}  // namespace commfuse
