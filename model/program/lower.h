// SPDX-License-Identifier: Apache-2.0
// The one lowering: a Program becomes one command list per rank. The interpreter, simulators and executors all use it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/program/matching.h"
#include "model/program/program.h"

namespace commfuse {

/// A region on one rank with computed indices, in blocks.
struct Rectangle {
  BufferId buffer{};
  std::int32_t row = 0;
  std::int32_t column = 0;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  friend bool operator==(const Rectangle&, const Rectangle&) = default;
};

/// One op on one rank, with its regions, partners and waits resolved. `waits` refers to commands by their position in
/// the list.
struct Command {
  OpId op{};
  OpKind kind = OpKind::gemm;
  Purpose purpose = Purpose::essential;
  std::uint16_t lane = 0;
  std::uint32_t shape = 0;
  std::vector<std::int32_t> waits;              // positions in the same list, all earlier
  std::vector<std::vector<Rectangle>> inputs;   // stacked by rows
  std::vector<std::vector<Rectangle>> outputs;  // stacked by rows
  // Attention: the block row of its sequence at which each region of queries begins.
  std::vector<std::int32_t> positions;
  Rank target = -1;         // exchange: the rank to which it sends; -1: this half is absent
  Rank source = -1;         // exchange: the rank from which it receives; -1: this half is absent
  OpId target_op{-1};       // the target's op whose receive half matches this send
  OpId source_op{-1};       // the source's op whose send half matches this receive
  std::vector<Rank> group;  // collective: its members, by coordinate
};

/// The part that the lists of all ranks have in common. Simulators use it without creating the lists.
struct Lowered {
  std::shared_ptr<const Program> program{};
  Matching matching;

  [[nodiscard]] bool takes_part(Rank rank, OpId op) const {
    return matching.uniform || program->ops[position(op)].where.holds(program->mesh.coordinates(rank));
  }
};

/// Aborts when the program's matching has problems; run check_program() first. `matching` is this matching, if the
/// caller already has it.
Lowered lower(std::shared_ptr<const Program> program);
Lowered lower(std::shared_ptr<const Program> program, Matching matching);

/// Returns the commands of one rank, in issue order.
std::vector<Command> commands_of(const Lowered& lowered, Rank rank);

Rectangle rectangle_of(const Program& program, const Region& region, const Coordinates& coordinates);

/// Returns the block row of its sequence at which each region of an attention's queries begins.
std::vector<std::int32_t> positions_at(const Program& program, const Op& attention, const Coordinates& coordinates);

}  // namespace commfuse
