// SPDX-License-Identifier: Apache-2.0
// The rows of one point in a table for people: who they are and in what unit they are told.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/analysis/memory.h"
#include "model/analysis/verdict.h"
#include "model/record/result.h"
#include "reports/time_scale.h"

namespace commfuse::reports {

using Rows = std::span<const ResultRow>;

/// Whether two rows answer the same question, so that their strategies are compared: model, hardware and its links,
/// scope, ranks, batch, seq, dtype, interference, launch, attention kernel and faults agree.
bool same_point(const ResultRow& a, const ResultRow& b);

/// Runs of rows of one point.
std::vector<Rows> rows_by_point(Rows rows);

/// Places of the rows such that rows of one point stand together, in the order in which points and rows first come.
/// An axis over strategies leaves them apart.
std::vector<std::size_t> order_by_point(Rows rows);
/// The rows in that order.
std::vector<ResultRow> ordered_by_point(std::vector<ResultRow> rows);

/// The fastest serial schedule of a point; nullptr where none has a result.
const ResultRow* serial_of(Rows rows);
/// By how much less time a row takes than `serial`, as a negative share of serial's; more is positive. Nothing for
/// serial itself, and without one.
std::optional<double> against_serial(const ResultRow& row, const ResultRow* serial);

/// What the verdict's rule asks of a row.
Contender contender_of(const ResultRow& row);

/// The verdict over those rows of one point that can win; a schedule that stands there twice counts once.
struct PointVerdict {
  std::vector<const ResultRow*> ranking;  ///< Those that can win, fastest first. Empty where none has a result.
  std::vector<const ResultRow*> front;    ///< The fastest, and those that tie with it.
  std::optional<double> probability{};    ///< Verdict's.

  [[nodiscard]] bool wins() const { return front.size() == 1; }
  [[nodiscard]] bool in_front(const ResultRow& row) const;
};
PointVerdict point_verdict(Rows rows, const VerdictRule& rule);

/// Of a bound: whether what its row says may be beaten.
bool is_no_bound(const ResultRow& row);

/// "sliced (k=4)"
std::string label(const ResultRow& row);
/// The strategy alone where that tells it from the other rows, else with its parameters.
std::string short_label(const ResultRow& row, Rows rows);

/// What the verdict of its point says of each row: "wins", "ties" or "loses"; "bound" of one that cannot win; empty
/// where nothing is compared. Rows of one point may stand apart.
std::vector<std::string> verdict_words(Rows rows, const VerdictRule& rule);

/// "91%", "over 99%": no more than the model can know.
std::string probability_in_words(double probability);
/// " (91% sure)" behind who wins; ", probability unknown (--uncertainty off)".
std::string sure_in_words(const std::optional<double>& probability);

/// False for a bound beside results of the same point that are none.
bool can_win(const ResultRow& row, Rows rows);

/// What was asked of a point beside what headings always say, where it is not what is usual: "faults slow-rank".
std::vector<std::string> unusual(const ResultRow& row);

/// Every warning of the rows once, in their order, but those of memory.
std::vector<std::string> warnings_of(Rows rows);

/// What stands first wherever people read the rows: that some do not fit the memory (LargestNeed::sentence). Empty
/// where all fit.
std::string memory_sentence(Rows rows);
/// What a row adds to it.
void add_need(const ResultRow& row, LargestNeed& need);

/// The unit of the longest time, so that a block of one point reads in one unit.
struct Unit {
  explicit Unit(Rows rows);
  [[nodiscard]] std::string text(Duration duration) const { return scale.digits(duration); }
  [[nodiscard]] const char* name() const { return scale.name; }
  TimeScale scale;
};

}  // namespace commfuse::reports
