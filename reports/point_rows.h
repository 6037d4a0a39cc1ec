// SPDX-License-Identifier: Apache-2.0
// Helpers for tables of the rows of one point: names, units and verdicts.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/analysis/memory.h"
#include "model/analysis/verdict.h"
#include "model/record/result.h"
#include "reports/time_scale.h"

namespace commfuse::reports {

using Rows = std::span<const ResultRow>;

inline Duration makespan_of(const ResultRow& row) { return row.analysis.critical.makespan; }

/// Returns whether two rows answer the same question, so that their strategies can be compared: model, hardware and its
/// links, kernel of all-reduces, scope, ranks, batch, seq, dtype, settings of prices and faults agree.
bool same_point(const ResultRow& a, const ResultRow& b);

/// Splits the rows into groups of adjacent rows of one point.
std::vector<Rows> rows_by_point(Rows rows);

/// Returns the indices of the rows in an order in which rows of one point are adjacent, and points are in order of
/// first appearance. Rows of one point are not adjacent in the results of an axis over strategies.
std::vector<std::size_t> order_by_point(Rows rows);
/// Returns the rows in the order of order_by_point().
std::vector<ResultRow> ordered_by_point(std::vector<ResultRow> rows);

/// Returns the fastest serial schedule of a point; nullptr if none has a result that takes time.
const ResultRow* serial_of(Rows rows);
/// Returns the row's time minus the time of `serial`, as a share of serial's: negative if the row is faster. Returns
/// nullopt for rows of strategy serial, for rows without a result, and if `serial` is null.
std::optional<double> against_serial(const ResultRow& row, const ResultRow* serial);

/// Returns the values that the verdict's rule needs.
Contender contender_of(const ResultRow& row);

/// The verdict over the rows of one point that can win; a schedule that appears twice counts once.
struct PointVerdict {
  std::vector<const ResultRow*> ranking;  ///< Rows that can win, fastest first. Empty if none has a result.
  std::vector<const ResultRow*> front;    ///< The fastest row and rows that tie with it.
  std::optional<double> probability{};    ///< Probability of the verdict.

  [[nodiscard]] bool wins() const { return front.size() == 1; }
  [[nodiscard]] bool in_front(const ResultRow& row) const;
};
PointVerdict point_verdict(Rows rows, const VerdictRule& rule);

/// Returns true for a row of a bound strategy whose time another schedule may beat.
bool is_no_bound(const ResultRow& row);

/// Returns true for an implementation that runs communication and GEMMs one after another, such as an all-reduce in the
/// switch. It may beat serial, but not by overlap.
bool overlaps_nothing(const ResultRow& row);

/// Returns the strategy and its parameters, such as "sliced (k=4)"; "commfuse (ideal)" for a bound next to
/// implementations, and "fused_kernel (no bound)" for a row of is_no_bound().
std::string label(const ResultRow& row);
/// Returns only the strategy if it distinguishes the row from the other rows, else also its parameters.
std::string short_label(const ResultRow& row, Rows rows);

/// Returns the verdict of each row: "wins", "ties" or "loses"; "bound" for a row that cannot win; empty if the row has
/// no result or its point has nothing to compare. Rows of one point need not be adjacent.
std::vector<std::string> verdict_words(Rows rows, const VerdictRule& rule);

/// Formats a probability as "91%", or as "over 99%", because the model cannot be more certain.
std::string probability_in_words(double probability);
/// Formats the text that follows the winner as " (91% sure)", or as ", probability unknown (--uncertainty off)".
std::string sure_in_words(const std::optional<double>& probability);

/// Returns false for a bound, if the point has other results.
bool can_win(const ResultRow& row, Rows rows);

/// Returns the settings of a point that headings omit and that are not the usual ones: "faults slow-rank".
std::vector<std::string> unusual(const ResultRow& row);
/// Formats the settings of a point except ranks and sequence: "llama-3.1-70b mlp on h100-sxm, batch 1, bf16", followed
/// by unusual settings.
std::string setting_heading(const ResultRow& row);

/// Returns the warnings of a cell, which are separated by "; ".
std::vector<std::string> warnings_in(std::string_view cell);
/// Returns every warning of the rows once, in order, without warnings about memory.
std::vector<std::string> warnings_of(Rows rows);

/// Returns the sentence before the rows, which states that some rows do not fit in memory (LargestNeed::sentence).
/// Returns an empty text if all rows fit.
std::string memory_sentence(Rows rows);
/// Adds the memory that a row needs to `need`, for memory_sentence().
void add_need(const ResultRow& row, LargestNeed& need);

/// The unit of the longest time, so that the block of a point has a single unit.
struct Unit {
  explicit Unit(Rows rows);
  [[nodiscard]] std::string text(Duration duration) const { return scale.digits(duration); }
  [[nodiscard]] const char* name() const { return scale.name; }
  TimeScale scale;
};

}  // namespace commfuse::reports
