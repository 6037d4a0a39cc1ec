// SPDX-License-Identifier: Apache-2.0
#include "model/proof/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "model/program/matching.h"
#include "model/program/order.h"

namespace commfuse {

namespace {

/// Returns true if `part` is part number `index` of `whole`, cut into parts of equal size.
bool is_part(const std::vector<Cell>& part, const std::vector<Cell>& whole, std::size_t index) {
  const std::size_t part_begin = index * part.size();
  return part_begin + part.size() <= whole.size() &&
         std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(part_begin));
}

/// Visits one rank's ops in program order, which respects its local order. If there was no earlier hazard, then an op
/// ordered after a cell's last writer is ordered after all ops that touched the cell before that writer. So it is
/// enough to keep the last writer and, for each lane, the last reader since then.
class RankHazards {
 public:
  /// `rank_cells` has the cells of this rank.
  RankHazards(const Program& program, const CellMap& cells, const RankCells& rank_cells, const Order& order, Rank rank,
              Findings& findings)
      : program_(program),
        names_(cells),
        order_(order),
        rank_(rank),
        coordinates_(program.mesh.coordinates(rank)),
        cells_(rank_cells),
        findings_(findings),
        lanes_(program.lanes.size()),
        touched_by_(static_cast<std::size_t>(cells.count()) * (1 + lanes_), -1) {
    for (const Content& content : program.initial) {
      cells.for_each(content.here, coordinates_,
                     [&](Cell cell) { *touched_by(cell) = static_cast<std::int32_t>(existed_before); });
    }
  }

  void visit(OpId id) {
    const Op& op = program_.ops[position(id)];
    finished_ = order_.finished(id);
    position_on_lane_ = order_.position_on_lane(id);
    bool accumulates = false;
    if (op.kind == OpKind::elementwise || op.kind == OpKind::collective) {
      read_perhaps_in_place(id, op);
    } else {
      accumulates = op.kind == OpKind::gemm && std::get<GemmShape>(program_.shapes[op.shape]).accumulate;
      for (const Slice operand : program_.inputs_of(op)) {
        cells_.for_each(operand, [&](Cell cell) {
          read(id, cell);
          touched_by(cell)[1 + op.lane] = position_on_lane_;
        });
      }
    }
    for (const Slice operand : program_.outputs_of(op)) {
      cells_.for_each(operand, [&](Cell cell) {
        if (accumulates) {
          read(id, cell);
        }
        write(id, cell);
      });
    }
  }

 private:
  /// Returns the last writer of a cell and, after it, for each lane the place of the last reader since then, or -1.
  std::int32_t* touched_by(Cell cell) { return touched_by_.data() + static_cast<std::size_t>(cell) * (1 + lanes_); }

  void read_perhaps_in_place(OpId id, const Op& op) {
    written_.clear();
    for (const Slice operand : program_.outputs_of(op)) {
      cells_.for_each(operand, [&](Cell cell) { written_.push_back(cell); });
    }
    for (const Slice operand : program_.inputs_of(op)) {
      touched_.clear();
      cells_.for_each(operand, [&](Cell cell) { touched_.push_back(cell); });
      const bool in_place = may_work_in_place(program_, op, coordinates_, touched_, written_);
      for (const Cell cell : touched_) {
        read(id, cell);
        if (!in_place || !is_written(cell)) {
          touched_by(cell)[1 + op.lane] = position_on_lane_;
        }
      }
    }
  }

  /// Returns true if the current op, which works in place, writes this cell of `touched_`: a reduce-scatter leaves some
  /// of its input unchanged.
  [[nodiscard]] bool is_written(Cell cell) const {
    return touched_.size() <= written_.size() || std::find(written_.begin(), written_.end(), cell) != written_.end();
  }

  /// Returns true if `op` has ended before the current op starts.
  [[nodiscard]] bool ended(OpId op) const { return order_.position_on_lane(op) < finished_[order_.lane(op)]; }

  void read(OpId op, Cell cell) {
    const OpId writer{*touched_by(cell)};
    if (writer != existed_before && writer != op && (writer == no_writer || !ended(writer))) {
      report_read(op, cell, writer);
    }
  }

  // Findings are recorded out of line, because calls that find nothing are much shorter without that code.

  [[gnu::noinline]] void report_read(OpId op, Cell cell, OpId writer) {
    if (writer == no_writer) {
      report_unwritten(op, cell);
    } else {
      report_clash(op, cell, "reads", writer, "writing");
    }
  }

  void write(OpId op, Cell cell) {
    std::int32_t* touched = touched_by(cell);
    const OpId writer{*touched};
    if (writer == op) {
      report_single_op(op, cell, "writes {} twice");
    } else if (writer >= OpId{0} && !ended(writer)) {
      report_clash(op, cell, "writes", writer, "writing");
    }
    *touched = static_cast<std::int32_t>(op);
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      const std::int32_t reader = std::exchange(*++touched, -1);
      if (reader >= finished_[lane]) {
        report_read_meanwhile(op, cell, order_.on_lane(lane)[static_cast<std::size_t>(reader)]);
      }
    }
  }

  [[gnu::noinline]] void report_read_meanwhile(OpId op, Cell cell, OpId reader) {
    if (reader == op) {
      report_single_op(op, cell, "reads and writes {} simultaneously");
    } else {
      report_clash(op, cell, "writes", reader, "reading");
    }
  }

  void report_unwritten(OpId op, Cell cell) {
    findings_.add(FindingKind::hazard, static_cast<std::int32_t>(op), [&] {
      return fmt::format("{} on rank {} reads {}, which nothing has written", op_in_words(program_, op), rank_,
                         names_.in_words(cell));
    });
  }

  [[gnu::noinline]] void report_clash(OpId op, Cell cell, std::string_view does, OpId other, std::string_view doing) {
    findings_.add(FindingKind::hazard, static_cast<std::int32_t>(op), [&] {
      return fmt::format("{} on rank {} {} {} while {} may still be {} it", op_in_words(program_, op), rank_, does,
                         names_.in_words(cell), op_in_words(program_, other), doing);
    });
  }

  [[gnu::noinline]] void report_single_op(OpId op, Cell cell, const char* does) {
    findings_.add(FindingKind::hazard, static_cast<std::int32_t>(op), [&] {
      return fmt::format("{} on rank {} {}", op_in_words(program_, op), rank_,
                         fmt::format(fmt::runtime(does), names_.in_words(cell)));
    });
  }

  const Program& program_;
  const CellMap& names_;
  const Order& order_;
  Rank rank_;
  Coordinates coordinates_;
  const RankCells& cells_;
  Findings& findings_;
  std::size_t lanes_;
  std::vector<std::int32_t> touched_by_;    // see touched_by()
  std::vector<Cell> touched_;               // cells of the current operand
  std::vector<Cell> written_;               // cells that the current op writes
  const std::int32_t* finished_ = nullptr;  // finished ops before the current op, see Order
  std::int32_t position_on_lane_ = 0;       // position of the current op, see Order
};

void check_rank(const Program& program, const CellMap& cells, const RankCells& rank_cells, const Order& order,
                Rank rank, Findings& findings) {
  RankHazards hazards(program, cells, rank_cells, order, rank, findings);
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const OpId id{static_cast<std::int32_t>(op)};
    if (order.takes_part(id)) {
      hazards.visit(id);
    }
  }
}

}  // namespace

bool may_work_in_place(const Program& program, const Op& op, const Coordinates& coordinates,
                       const std::vector<Cell>& read, const std::vector<Cell>& written) {
  if (op.kind == OpKind::elementwise) {
    return read == written;
  }
  const auto* collective = std::get_if<CollectiveShape>(&program.shapes[op.shape]);
  if (collective == nullptr || collective->kind == CollectiveKind::all_to_all) {
    return false;
  }
  if (collective->kind == CollectiveKind::all_reduce) {
    return read == written;
  }
  const auto own_part = static_cast<std::size_t>(coordinates[static_cast<std::size_t>(collective->axis)]);
  return collective->kind == CollectiveKind::all_gather ? is_part(read, written, own_part)
                                                        : is_part(written, read, own_part);
}

void check_hazards(const Program& program, const CellMap& cells, Findings& findings) {
  const bool shared = same_on_all_ranks(program);
  Order order(program, 0);
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    if (!shared && rank > 0) {
      order = Order(program, rank);
    }
    check_rank(program, cells, RankCells(program, cells, program.mesh.coordinates(rank)), order, rank, findings);
  }
}

void check_hazards(const Program& program, const CellMap& cells, const RankCells& first, Findings& findings) {
  check_rank(program, cells, first, Order(program, 0), 0, findings);
}

}  // namespace commfuse
