// SPDX-License-Identifier: Apache-2.0
// Accesses of every cell by a proved program, so that hazards of a program that differs in one op are found without
// visiting all other ops.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/order.h"
#include "model/program/program.h"
#include "model/proof/cells.h"

namespace commfuse {

/// Kind of an op's access to a cell, as in check_hazards().
enum class AccessKind : std::uint8_t {
  read,           // the value must exist, and stay until the op ends
  read_in_place,  // the value must exist; the op itself replaces it
  write,
};

/// Determines whether check_hazards() would find a hazard. A hazard of a cell depends on the accesses of that cell and
/// on the order of ops, so only the cells that a change affects are examined.
class HazardTable {
 public:
  /// Keeps references to both arguments, which must outlive the table. Requires `program` to have passed
  /// check_bounds().
  HazardTable(const Program& program, const CellMap& cells);

  /// Returns true if `changed`, which differs from the original only in what `op` reads and writes, has a hazard.
  /// Requires that the original has no hazard.
  [[nodiscard]] bool has_hazard(const Program& changed, OpId op) const;

  /// Returns true if `changed`, whose ops make the same accesses with different waits, lanes or ids, has a hazard.
  /// `new_ids` has an entry for each op of the original: its id in `changed`, or `omitted`. If it is empty, ids are
  /// unchanged. Requires that conflicting ops keep their order.
  [[nodiscard]] bool has_hazard(const Program& changed, std::span<const OpId> new_ids) const;
  static constexpr OpId omitted{-1};

  /// Returns true if both ops access the same cell of the same rank, and at least one of them writes it.
  [[nodiscard]] bool conflict(OpId first, OpId second) const;

 private:
  /// Access by a known op.
  struct Touch {
    Cell cell = 0;
    AccessKind kind = AccessKind::read;
  };
  /// Access to a known cell.
  struct Access {
    OpId op{};
    AccessKind kind = AccessKind::read;
  };
  struct RankTable {
    Coordinates coordinates{};
    std::vector<bool> written_before;         // by cell: it has initial content
    std::vector<std::uint32_t> first_touch;   // by op: index of its first touch
    std::vector<Touch> touches;               // by op, then by cell
    std::vector<std::uint32_t> first_access;  // by cell: index of its first access
    std::vector<Access> accesses;             // by cell, in program order
  };
  class Walk;

  [[nodiscard]] RankTable table_of(Rank rank) const;
  void touch(const Program& program, const Coordinates& coordinates, OpId op, std::vector<Touch>& touches) const;
  [[nodiscard]] const Order& order_of(std::size_t rank) const { return orders_[orders_.size() == 1 ? 0 : rank]; }
  [[nodiscard]] std::span<const Touch> touches_of(const RankTable& table, OpId op) const {
    return std::span(table.touches)
        .subspan(table.first_touch[position(op)],
                 table.first_touch[position(op) + 1] - table.first_touch[position(op)]);
  }
  [[nodiscard]] std::span<const Access> accesses_of(const RankTable& table, Cell cell) const {
    const auto at = static_cast<std::size_t>(cell);
    return std::span(table.accesses)
        .subspan(table.first_access[at], table.first_access[at + 1] - table.first_access[at]);
  }

  const Program& program_;
  const CellMap& cells_;
  bool same_on_all_ranks_;
  std::vector<Order> orders_;  // one for all ranks, or by rank
  std::vector<RankTable> ranks_;
};

}  // namespace commfuse
