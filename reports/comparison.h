// SPDX-License-Identifier: Apache-2.0
// Compares strategies for people: the winner of each point, and the parts of each strategy's time.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/record/result.h"
#include "model/terminal_style.h"

namespace commfuse::reports {

/// Returns the winner among the rows of one point that can win, or the rows that tie, and the distance to a bound. If
/// serial and an implementation that overlaps both have a result, returns pays_in_words() against serial instead.
/// Requires a row with a result.
std::string verdict(std::span<const ResultRow> rows, const VerdictRule& rule = {});

/// Compares the implementations among the rows of one point with `baseline`: states whether their overlap pays, by how
/// much and with what certainty, whether the fastest implementation overlaps nothing but beats the baseline, how much
/// less time ideal kernels would take, and what limits the recommended implementation. Empty without an implementation
/// that overlaps and has a result.
std::string pays_in_words(std::span<const ResultRow> rows, const ResultRow& baseline, const VerdictRule& rule = {});

/// Words such as "70.6B parameters" that a table adds to a model, by the model's name in rows.
using ModelWords = std::map<std::string, std::string, std::less<>>;
/// Returns a line about a model; empty if `words` has none.
std::string line_on(std::string_view model, const ModelWords& words);

/// Returns a table at most 80 columns wide. Rows of one point (same_point) must be adjacent in `rows`; they become one
/// block, with its verdict; settings that all rows share appear once, above the blocks. With style the winner is bold,
/// and a bar next to each row shows its time, with the exposed part in red.
std::string comparison_table(std::span<const ResultRow> rows, const VerdictRule& rule = {},
                             const ModelWords& words = {}, TerminalStyle style = stdout_style());

/// Returns the number of points that each strategy wins, the number of points at which strategies tie, and the rule, as
/// two sentences. Empty for fewer than two points. Requires rows of one point to be adjacent.
std::string summary(std::span<const ResultRow> rows, const VerdictRule& rule = {});

class VerdictCount;
/// Returns the sentences of summary() for points that are already counted.
std::string summary_in_words(std::size_t points, const VerdictCount& count, const VerdictRule& rule);

/// Formats the requirement for a win: "more than 2% and a probability of 80%".
std::string rule_in_words(const VerdictRule& rule);

/// Counts the verdicts of many points.
class VerdictCount {
 public:
  /// Counts a point by the names of the rows in front: a single row wins, several tie.
  void add(std::vector<std::string> front);
  /// Returns the count as text, such as "commfuse wins 9, 4 tie (commfuse and sliced 3; serial and sliced 1)".
  [[nodiscard]] std::string in_words() const;

 private:
  std::map<std::string, int> wins_;
  std::map<std::string, int> ties_;
};

}  // namespace commfuse::reports
