// SPDX-License-Identifier: Apache-2.0
// Strategies side by side, for people: who wins at each point, and where each one's time goes.
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

/// Who wins among the rows of one point that can, or which of them tie, in one sentence; then how far below a bound is.
/// Requires at least one row.
std::string verdict(std::span<const ResultRow> rows, const VerdictRule& rule = {});

/// What a table says of a model, by its name in rows: "70.6B parameters".
using ModelWords = std::map<std::string, std::string, std::less<>>;
/// As a line; empty where nothing is said.
std::string line_on(std::string_view model, const ModelWords& words);

/// A table at most 80 columns wide. Rows of one point (same_point) stand together in `rows` and become one block, with
/// its verdict; settings that all rows share stand once above. With style the winner is bold, and a bar beside each row
/// shows how much of its time is exposed.
std::string comparison_table(std::span<const ResultRow> rows, const VerdictRule& rule = {},
                             const ModelWords& words = {}, TerminalStyle style = stdout_style());

/// How many points each strategy wins, and which strategies tie at how many; one sentence. Empty for fewer than two
/// points.
std::string summary(std::span<const ResultRow> rows, const VerdictRule& rule = {});

class VerdictCount;
/// That sentence of points that were counted.
std::string summary_in_words(std::size_t points, const VerdictCount& count, const VerdictRule& rule);

/// "more than 2% and a probability of 80%": what a win needs.
std::string rule_in_words(const VerdictRule& rule);

/// How often each verdict was given.
class VerdictCount {
 public:
  /// Names of those in front: one wins, several tie.
  void add(std::vector<std::string> front);
  /// "commfuse wins 9, 4 tie (commfuse and sliced 3, serial and sliced 1)".
  [[nodiscard]] std::string in_words() const;

 private:
  std::map<std::string, int> wins_;
  std::map<std::string, int> ties_;
};

}  // namespace commfuse::reports
