// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "model/schedule/matching.h"
#include "model/schedule/order.h"

namespace commfuse {

namespace {

constexpr OpId nobody{-1};
constexpr OpId there_before{-2};  // there before the first op

/// Goes through one rank's ops in program order, which respects its local order. If no hazard came before, then
/// whoever is ordered after a cell's last writer is ordered after all that touched the cell before that writer; so the
/// last writer and the readers since are all that must be kept, of each lane the last.
class RankHazards {
 public:
  RankHazards(const Program& program, const CellMap& cells, const Order& order, Rank rank, Findings& findings)
      : program_(program),
        cells_(cells),
        order_(order),
        rank_(rank),
        here_(program.mesh.coordinates(rank)),
        findings_(findings),
        writer_(static_cast<std::size_t>(cells.count()), nobody),
        readers_(static_cast<std::size_t>(cells.count()) * program.lanes.size(), nobody) {
    for (const Content& content : program.initial) {
      touched_.clear();
      cells.append(content.here, here_, touched_);
      for (const Cell cell : touched_) {
        writer_[static_cast<std::size_t>(cell)] = there_before;
      }
    }
  }

  void visit(OpId id) {
    const Op& op = program_.ops[position(id)];
    written_.clear();
    for (const Slice operand : program_.outputs_of(op)) {
      append(operand, written_);
    }
    for (const Slice operand : program_.inputs_of(op)) {
      touched_.clear();
      append(operand, touched_);
      const bool in_place = may_replace(op);
      for (const Cell cell : touched_) {
        read(id, cell);
        if (!in_place) {
          reader(cell, op.lane) = id;
        }
      }
    }
    const auto* gemm = std::get_if<GemmShape>(&program_.shapes[op.shape]);
    for (const Cell cell : written_) {
      if (gemm != nullptr && gemm->accumulate) {
        read(id, cell);
      }
      write(id, cell);
    }
  }

 private:
  void append(Slice operand, std::vector<Cell>& cells) const {
    for (const Region& region : program_.regions_of(operand)) {
      cells_.append(region, here_, cells);
    }
  }

  OpId& reader(Cell cell, std::size_t lane) {
    return readers_[static_cast<std::size_t>(cell) * program_.lanes.size() + lane];
  }

  /// True when the op may write what it reads from `touched_` into `written_`.
  [[nodiscard]] bool may_replace(const Op& op) const {
    if (op.kind == OpKind::elementwise) {
      return touched_ == written_;
    }
    const auto* collective = std::get_if<CollectiveShape>(&program_.shapes[op.shape]);
    if (collective == nullptr || collective->kind != CollectiveKind::all_gather) {
      return false;
    }
    const auto own = static_cast<std::size_t>(here_[static_cast<std::size_t>(collective->axis)]) * touched_.size();
    return std::equal(touched_.begin(), touched_.end(), written_.begin() + static_cast<std::ptrdiff_t>(own));
  }

  void read(OpId op, Cell cell) {
    const OpId writer = writer_[static_cast<std::size_t>(cell)];
    if (writer == nobody) {
      findings_.add(FindingKind::hazard, static_cast<std::int32_t>(op), [&] {
        return fmt::format("{} on rank {} reads {}, which nothing has written", op_in_words(program_, op), rank_,
                           cells_.in_words(cell));
      });
    } else if (writer != there_before && writer != op && !order_.before(writer, op)) {
      clash(op, cell, "reads", writer, "writing");
    }
  }

  void write(OpId op, Cell cell) {
    OpId& writer = writer_[static_cast<std::size_t>(cell)];
    if (writer == op) {
      alone(op, cell, "writes {} twice");
    } else if (writer >= OpId{0} && !order_.before(writer, op)) {
      clash(op, cell, "writes", writer, "writing");
    }
    for (std::size_t lane = 0; lane < program_.lanes.size(); ++lane) {
      OpId& last = reader(cell, lane);
      if (last == op) {
        alone(op, cell, "reads and writes {} at once");
      } else if (last != nobody && !order_.before(last, op)) {
        clash(op, cell, "writes", last, "reading");
      }
      last = nobody;
    }
    writer = op;
  }

  void clash(OpId op, Cell cell, std::string_view does, OpId other, std::string_view doing) {
    findings_.add(FindingKind::hazard, static_cast<std::int32_t>(op), [&] {
      return fmt::format("{} on rank {} {} {} while {} may still be {} it", op_in_words(program_, op), rank_, does,
                         cells_.in_words(cell), op_in_words(program_, other), doing);
    });
  }

  void alone(OpId op, Cell cell, const char* does) {
    findings_.add(FindingKind::hazard, static_cast<std::int32_t>(op), [&] {
      return fmt::format("{} on rank {} {}", op_in_words(program_, op), rank_,
                         fmt::format(fmt::runtime(does), cells_.in_words(cell)));
    });
  }

  const Program& program_;
  const CellMap& cells_;
  const Order& order_;
  Rank rank_;
  Coordinates here_;
  Findings& findings_;
  std::vector<OpId> writer_;   // by cell
  std::vector<OpId> readers_;  // by cell and lane
  std::vector<Cell> touched_;  // of the operand in hand
  std::vector<Cell> written_;  // of the op in hand
};

bool same_on_all_ranks(const Program& program) {
  return std::all_of(program.ops.begin(), program.ops.end(),
                     [](const Op& op) { return op.where.relation == Relation::always; });
}

}  // namespace

void check_hazards(const Program& program, const CellMap& cells, Findings& findings, Ranks ranks) {
  const bool shared = same_on_all_ranks(program);
  Order order(program, 0);
  const Rank end = ranks == Ranks::all ? program.mesh.ranks() : 1;
  for (Rank rank = 0; rank < end; ++rank) {
    if (!shared && rank > 0) {
      order = Order(program, rank);
    }
    RankHazards hazards(program, cells, order, rank, findings);
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      const OpId id{static_cast<std::int32_t>(op)};
      if (order.takes_part(id)) {
        hazards.visit(id);
      }
    }
  }
}

}  // namespace commfuse
