// SPDX-License-Identifier: Apache-2.0
#include "model/proof/remote_hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/few.h"
#include "model/proof/remote_order.h"

namespace commfuse {

namespace {

/// One access of a cell. It begins after each of `starts` is posted, and is over when any of `ends` has completed.
struct Access {
  Occurrence by;  // the op that accesses the cell
  bool writes = false;
  bool remote = false;
  Few<Occurrence> starts;
  Few<Occurrence> ends;
};

class RemoteHazards {
 public:
  RemoteHazards(const Program& program, const Matching& matching, const CellMap& cells, const RemoteOrder& order,
                Rank owner, Findings& findings)
      : program_(program),
        matching_(matching),
        cells_(cells),
        order_(order),
        owner_(owner),
        coordinates_(program.mesh.coordinates(owner)),
        findings_(findings),
        accesses_(static_cast<std::size_t>(cells.count())) {}

  void find() {
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      const OpId id{static_cast<std::int32_t>(op)};
      if (program_.ops[op].where.holds(coordinates_)) {
        touch(id);
      }
    }
    for (std::size_t cell = 0; cell < accesses_.size(); ++cell) {
      const std::vector<Access>& cell_accesses = accesses_[cell];
      if (std::any_of(cell_accesses.begin(), cell_accesses.end(), [](const Access& access) { return access.remote; })) {
        compare(static_cast<Cell>(cell), cell_accesses);
      }
    }
  }

 private:
  void touch(OpId id) {
    const Op& op = program_.ops[position(id)];
    const auto* exchange = std::get_if<ExchangeShape>(&program_.shapes[op.shape]);
    const Occurrence occurrence{owner_, id};
    const Access local{.by = occurrence, .starts = {occurrence}, .ends = {occurrence}};
    Access read = local;
    Access write = local;
    write.writes = true;
    if (exchange != nullptr && exchange->protocol == Protocol::pull && exchange->sends) {
      const Occurrence puller{target_of(program_, *exchange, owner_), OpId{matching_.receiver(owner_, id)}};
      read = {.by = puller, .remote = true, .starts = {occurrence, puller}, .ends = {puller}};
    }
    if (exchange != nullptr && exchange->protocol == Protocol::push && exchange->receives) {
      const Occurrence pusher{source_of(program_, *exchange, owner_), OpId{matching_.sender(owner_, id)}};
      write = {.by = pusher, .writes = true, .remote = true, .starts = {pusher}, .ends = {pusher, occurrence}};
    }
    for (const Slice operand : program_.inputs_of(op)) {
      add(operand, read);
    }
    for (const Slice operand : program_.outputs_of(op)) {
      add(operand, write);
    }
  }

  void add(Slice operand, const Access& access) {
    for (const Region& region : program_.regions_of(operand)) {
      cells_.for_each(region, coordinates_,
                      [&](Cell cell) { accesses_[static_cast<std::size_t>(cell)].push_back(access); });
    }
  }

  void compare(Cell cell, const std::vector<Access>& accesses) {
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      for (std::size_t j = 0; j < accesses.size(); ++j) {
        if ((accesses[i].remote || accesses[j].remote) && (accesses[i].writes || accesses[j].writes)) {
          if (i < j && !before(accesses[i], accesses[j], 0) && !before(accesses[j], accesses[i], 0)) {
            report_clash(cell, accesses[i], accesses[j], "");
          }
          if (!before(accesses[i], accesses[j], 1)) {
            report_clash(cell, accesses[j], accesses[i], " of the next iteration");
          }
        }
      }
    }
  }

  /// Returns true if `first` is over before `second` begins, `later` iterations afterwards.
  [[nodiscard]] bool before(const Access& first, const Access& second, std::int32_t later) const {
    return std::any_of(first.ends.begin(), first.ends.end(), [&](const Occurrence& end) {
      return std::any_of(second.starts.begin(), second.starts.end(), [&](Occurrence start) {
        start.iteration = later;
        return order_.before(end, start);
      });
    });
  }

  [[nodiscard]] std::string words(const Access& access) const {
    return fmt::format("{} on rank {}", op_in_words(program_, access.by.op), access.by.rank);
  }

  /// Adds a finding. Requires that `a` or `b` is remote.
  void report_clash(Cell cell, const Access& a, const Access& b, const char* when) {
    const Access& remote_access = a.remote ? a : b;
    findings_.add(FindingKind::hazard, static_cast<std::int32_t>(remote_access.by.op), [&] {
      return fmt::format("{}{} {} {} of rank {} while {} may still be {} it; order them with a credit", words(a), when,
                         a.writes ? "writes" : "reads", cells_.in_words(cell), owner_, words(b),
                         b.writes ? "writing" : "reading");
    });
  }

  const Program& program_;
  const Matching& matching_;
  const CellMap& cells_;
  const RemoteOrder& order_;
  Rank owner_;
  Coordinates coordinates_;
  Findings& findings_;
  std::vector<std::vector<Access>> accesses_;  // by cell
};

}  // namespace

bool accesses_remotely(const Program& program) {
  return std::any_of(program.shapes.begin(), program.shapes.end(), [](const Shape& shape) {
    const auto* exchange = std::get_if<ExchangeShape>(&shape);
    return exchange != nullptr && exchange->protocol != Protocol::rendezvous && !is_credit(*exchange);
  });
}

void check_remote_hazards(const Program& program, const Matching& matching, const CellMap& cells,
                          std::span<const Post> posts, Findings& findings, Ranks ranks) {
  if (!RemoteOrder::fits(program, ranks)) {
    findings.add(FindingKind::hazard, -1, [&] {
      return fmt::format(
          "{} ops on {} ranks are too many to prove the order of their pushes and pulls; use fewer ranks",
          program.ops.size(), program.mesh.ranks());
    });
    return;
  }
  const RemoteOrder order(program, matching, posts, ranks);
  const Rank end = ranks == Ranks::all ? program.mesh.ranks() : 1;
  for (Rank owner = 0; owner < end; ++owner) {
    RemoteHazards(program, matching, cells, order, owner, findings).find();
  }
}

}  // namespace commfuse
