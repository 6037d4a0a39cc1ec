// SPDX-License-Identifier: Apache-2.0
#include "model/proof/hazard_table.h"

#include <algorithm>
#include <numeric>

#include "model/proof/hazards.h"

namespace commfuse {

/// State of one cell while ops access it in program order; see RankHazards in hazards.cpp.
class HazardTable::Walk {
 public:
  explicit Walk(std::size_t lanes) : readers_(lanes, -1) {}

  void begin(const Order& order, bool written_before) {
    order_ = &order;
    writer_ = written_before ? existed_before : no_writer;
    std::fill(readers_.begin(), readers_.end(), -1);
  }

  /// Returns true if the access is a hazard.
  bool visit(OpId op, AccessKind kind) {
    const std::int32_t* finished = order_->finished(op);
    return kind == AccessKind::write ? write(op, finished) : read(op, finished, kind);
  }

 private:
  [[nodiscard]] bool ended(OpId op, const std::int32_t* finished) const {
    return order_->position_on_lane(op) < finished[order_->lane(op)];
  }

  bool read(OpId op, const std::int32_t* finished, AccessKind kind) {
    if (kind == AccessKind::read) {
      std::int32_t& last = readers_[order_->lane(op)];
      last = std::max(last, order_->position_on_lane(op));
    }
    return writer_ == no_writer || (writer_ >= OpId{0} && writer_ != op && !ended(writer_, finished));
  }

  bool write(OpId op, const std::int32_t* finished) {
    if (writer_ == op || (writer_ >= OpId{0} && !ended(writer_, finished))) {
      return true;
    }
    writer_ = op;
    for (std::size_t lane = 0; lane < readers_.size(); ++lane) {
      if (readers_[lane] >= finished[lane]) {
        return true;
      }
      readers_[lane] = -1;
    }
    return false;
  }

  const Order* order_ = nullptr;
  OpId writer_ = no_writer;
  std::vector<std::int32_t> readers_;  // by lane: place of the last reader since the last write, or -1
};

HazardTable::HazardTable(const Program& program, const CellMap& cells)
    : program_(program), cells_(cells), same_on_all_ranks_(same_on_all_ranks(program)) {
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    if (rank == 0 || !same_on_all_ranks_) {
      orders_.emplace_back(program, rank);
    }
    ranks_.push_back(table_of(rank));
  }
}

void HazardTable::touch(const Program& program, const Coordinates& coordinates, OpId id,
                        std::vector<Touch>& touches) const {
  const Op& op = program.ops[position(id)];
  const auto for_each_cell = [&](Slice operand, const auto& visit) {
    for (const Region& region : program.regions_of(operand)) {
      cells_.for_each(region, coordinates, visit);
    }
  };
  const bool perhaps_in_place = op.kind == OpKind::elementwise || op.kind == OpKind::collective;
  std::vector<Cell> written;
  std::vector<Cell> read;
  for (const Slice operand : program.outputs_of(op)) {
    for_each_cell(operand, [&](Cell cell) { written.push_back(cell); });
  }
  for (const Slice operand : program.inputs_of(op)) {
    read.clear();
    for_each_cell(operand, [&](Cell cell) { read.push_back(cell); });
    const bool in_place = perhaps_in_place && may_work_in_place(program, op, coordinates, read, written);
    // A reduce-scatter leaves a part of its input unchanged.
    const bool replaces_all = in_place && read.size() <= written.size();
    for (const Cell cell : read) {
      const bool replaced =
          in_place && (replaces_all || std::find(written.begin(), written.end(), cell) != written.end());
      touches.push_back({cell, replaced ? AccessKind::read_in_place : AccessKind::read});
    }
  }
  const bool accumulates = op.kind == OpKind::gemm && std::get<GemmShape>(program.shapes[op.shape]).accumulate;
  for (const Cell cell : written) {
    if (accumulates) {
      touches.push_back({cell, AccessKind::read_in_place});
    }
    touches.push_back({cell, AccessKind::write});
  }
}

HazardTable::RankTable HazardTable::table_of(Rank rank) const {
  RankTable table{.coordinates = program_.mesh.coordinates(rank)};
  const auto count = static_cast<std::size_t>(cells_.count());
  table.written_before.resize(count);
  for (const Content& content : program_.initial) {
    cells_.for_each(content.here, table.coordinates,
                    [&](Cell cell) { table.written_before[static_cast<std::size_t>(cell)] = true; });
  }
  table.first_touch.push_back(0);
  table.first_access.resize(count + 1);
  for (std::size_t i = 0; i < program_.ops.size(); ++i) {
    if (program_.ops[i].where.holds(table.coordinates)) {
      const std::size_t before = table.touches.size();
      touch(program_, table.coordinates, OpId{static_cast<std::int32_t>(i)}, table.touches);
      std::stable_sort(table.touches.begin() + static_cast<std::ptrdiff_t>(before), table.touches.end(),
                       [](const Touch& a, const Touch& b) { return a.cell < b.cell; });
    }
    table.first_touch.push_back(static_cast<std::uint32_t>(table.touches.size()));
  }
  for (const Touch& touched : table.touches) {
    ++table.first_access[static_cast<std::size_t>(touched.cell) + 1];
  }
  std::partial_sum(table.first_access.begin(), table.first_access.end(), table.first_access.begin());
  table.accesses.resize(table.touches.size());
  std::vector<std::uint32_t> next = table.first_access;
  for (std::size_t i = 0; i < program_.ops.size(); ++i) {
    const OpId op{static_cast<std::int32_t>(i)};
    for (const Touch& touched : touches_of(table, op)) {
      table.accesses[next[static_cast<std::size_t>(touched.cell)]++] = {op, touched.kind};
    }
  }
  return table;
}

bool HazardTable::has_hazard(const Program& changed, OpId op) const {
  Walk walk(program_.lanes.size());
  std::vector<Touch> touches;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankTable& table = ranks_[rank];
    const Order& order = order_of(rank);
    if (!order.takes_part(op)) {
      continue;
    }
    touches.clear();
    touch(changed, table.coordinates, op, touches);
    std::stable_sort(touches.begin(), touches.end(), [](const Touch& a, const Touch& b) { return a.cell < b.cell; });
    const std::span<const Touch> before = touches_of(table, op);
    auto left = before.begin();
    auto right = touches.begin();
    while (left != before.end() || right != touches.end()) {
      const Cell cell =
          right == touches.end() || (left != before.end() && left->cell < right->cell) ? left->cell : right->cell;
      const auto first = right;
      for (; left != before.end() && left->cell == cell; ++left) {
      }
      for (; right != touches.end() && right->cell == cell; ++right) {
      }
      walk.begin(order, table.written_before[static_cast<std::size_t>(cell)]);
      bool hazard = false;
      bool visited = false;
      const auto visit_op = [&] {
        for (auto touched = first; touched != right; ++touched) {
          hazard = walk.visit(op, touched->kind) || hazard;
        }
        visited = true;
      };
      for (const Access& access : accesses_of(table, cell)) {
        if (access.op == op) {
          continue;
        }
        if (!visited && access.op > op) {
          visit_op();
        }
        hazard = walk.visit(access.op, access.kind) || hazard;
      }
      if (!visited) {
        visit_op();
      }
      if (hazard) {
        return true;
      }
    }
  }
  return false;
}

bool HazardTable::has_hazard(const Program& changed, std::span<const OpId> new_ids) const {
  Walk walk(changed.lanes.size());
  std::vector<Order> orders;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == 0 || !same_on_all_ranks_) {
      orders.clear();
      orders.emplace_back(changed, static_cast<Rank>(rank));
    }
    const RankTable& table = ranks_[rank];
    for (Cell cell = 0; cell < cells_.count(); ++cell) {
      walk.begin(orders.front(), table.written_before[static_cast<std::size_t>(cell)]);
      for (const Access& access : accesses_of(table, cell)) {
        const OpId op = new_ids.empty() ? access.op : new_ids[position(access.op)];
        if (op != omitted && walk.visit(op, access.kind)) {
          return true;
        }
      }
    }
  }
  return false;
}

bool HazardTable::conflict(OpId first, OpId second) const {
  return std::any_of(ranks_.begin(), ranks_.end(), [&](const RankTable& table) {
    const std::span<const Touch> ours = touches_of(table, first);
    const std::span<const Touch> theirs = touches_of(table, second);
    return std::any_of(ours.begin(), ours.end(), [&](const Touch& our) {
      return std::any_of(theirs.begin(), theirs.end(), [&](const Touch& their) {
        return our.cell == their.cell && (our.kind == AccessKind::write || their.kind == AccessKind::write);
      });
    });
  });
}

}  // namespace commfuse
