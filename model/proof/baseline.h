// SPDX-License-Identifier: Apache-2.0
// Values of a proved program at every event. A program that differs in one op is run only where its values differ from
// these.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "model/program/program.h"
#include "model/proof/cells.h"
#include "model/proof/contents.h"
#include "model/proof/deadlock.h"
#include "model/proof/sums.h"
#include "model/proof/value.h"

namespace commfuse {

/// Position in the memory of all ranks.
using Place = std::size_t;

class Baseline {
 public:
  /// Keeps references to all arguments except `events`; they must outlive this object. Requires `program` to have
  /// passed check_program(), and `events` to be the events of all ranks. Needs memory for two values per op, rank and
  /// block of the op's operands.
  Baseline(const Program& program, const CellMap& cells, std::vector<Event> events, Sums& sums);

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] const CellMap& cells() const { return cells_; }
  [[nodiscard]] Sums& sums() const { return sums_; }
  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  /// Returns the first event in which an op takes part; the number of events if there is none.
  [[nodiscard]] std::size_t first_event(OpId op) const { return first_event_[position(op)]; }

  /// Return the places that an op reads on a rank (including places to which it adds), and the places that it writes.
  [[nodiscard]] std::span<const Place> read_by(Rank rank, OpId op) const { return part({node(rank, op), Half::read}); }
  [[nodiscard]] std::span<const Place> written_by(Rank rank, OpId op) const {
    return part({node(rank, op), Half::written});
  }

  /// Initial values, and the places whose final values are checked.
  [[nodiscard]] const std::vector<std::pair<Place, CellValue>>& initial() const { return initial_; }
  [[nodiscard]] const std::vector<Place>& final() const { return final_; }

  /// Returns the memory of all ranks before an event of the first iteration. Cheap if events are requested in ascending
  /// order.
  [[nodiscard]] const std::vector<CellValue>& memory_before(std::size_t event);

 private:
  [[nodiscard]] std::size_t node(Rank rank, OpId op) const {
    return static_cast<std::size_t>(rank) * program_.ops.size() + position(op);
  }
  /// Selects the places that an op reads on a rank, or the places that it writes.
  struct Half {
    static constexpr std::size_t read = 0;
    static constexpr std::size_t written = 1;
    std::size_t node = 0;
    std::size_t which = read;
  };
  [[nodiscard]] std::span<const Place> part(Half half) const {
    const std::size_t at = 2 * half.node + half.which;
    return std::span(places_).subspan(begin_[at], begin_[at + 1] - begin_[at]);
  }
  void add_places(Rank rank, const Op& op);
  void add_operand(Rank rank, Slice operand);
  void add_contents();
  void add_first_events();
  void put(Rank rank, OpId op);

  const Program& program_;
  const CellMap& cells_;
  std::vector<Event> events_;
  Sums& sums_;
  Trace trace_;
  std::vector<std::size_t> first_event_;  // by op
  std::vector<std::size_t> begin_;        // by rank, op and half (read, written)
  std::vector<Place> places_;
  std::vector<std::pair<Place, CellValue>> initial_;
  std::vector<Place> final_;
  std::vector<CellValue> memory_;  // before event `at_`
  std::size_t at_ = 0;
};

/// The difference between a program and the program of a baseline.
struct Change {
  const Program& program;  // the changed program; the original program if `omitted`
  OpId op{};               // the changed op
  bool omitted = false;    // the op does nothing
  /// Events of the changed program in an order in which they can happen, or null for the events of the baseline.
  const std::vector<Event>* events = nullptr;
};

/// Adds one finding if check_contents() has any finding for the changed program. Requires `change.program` to have no
/// other findings. On every rank, all its ops except the changed one must access the same blocks in the same order as
/// in the original.
void check_change(Baseline& before, const Change& change, Findings& findings);

}  // namespace commfuse
