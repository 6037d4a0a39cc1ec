// SPDX-License-Identifier: Apache-2.0
// What one walk over all rows of a report tells of them, point by point, so that no more than one point is unpacked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/record/row_table.h"
#include "reports/savings.h"

namespace commfuse::reports {

/// Rows of a table that stand together.
struct RowRange {
  std::size_t first = 0;
  std::size_t count = 0;
  [[nodiscard]] bool has(std::size_t row) const { return row >= first && row < first + count; }
};

/// How often a strategy wins.
struct Wins {
  std::string strategy;
  std::size_t points = 0;
};

/// What one strategy saves against serial, over all points.
struct StrategySavings {
  std::string strategy;
  bool is_implementation = false;
  SavingCount count;
};

struct Overview {
  /// Runs of points that differ only in axes, ranks and seq: what one map and one table show.
  struct Setting {
    std::string title;  ///< "llama-3.1-70b mlp on h100-sxm, batch 1, bf16"
    RowRange rows;
    std::size_t points = 0;
    SavingCount savings{};  ///< Of the schedule to take at each point.
  };
  std::vector<Setting> settings;
  std::size_t points = 0;
  /// Points with a result that have the fewest and the most tokens, then ranks; the first of equals.
  std::optional<RowRange> smallest;
  std::optional<RowRange> largest;
  std::string memory;                       ///< memory_sentence() of the rows with a result.
  std::string wins_words;                   ///< summary() of them; empty for fewer than two points.
  std::vector<Wins> wins;                   ///< The most often first, by name where two win as often.
  std::optional<std::size_t> highest_mfu;   ///< The row; of equals one at the largest point, else the first.
  SavingCount savings;                      ///< Of the schedule to take instead of serial at each point.
  std::vector<StrategySavings> strategies;  ///< The largest median first.
  /// The point to show first: where overlap surely saves the largest share of serial's time, else where it surely loses
  /// the most; without serial where the fastest is the farthest ahead. Nothing where no point is decided.
  std::optional<RowRange> decisive;
  std::optional<RowRange> loss;     ///< Where overlap surely loses the most.
  std::vector<std::uint8_t> front;  ///< By row: 1 where it wins its point, 2 where it ties in front.
  NarrowColumn against_serial;      ///< By row, as RowColumns hold numbers: against_serial() where it has a result.
};

/// Requires that rows of one point stand together.
Overview overview_of(const RowTable& rows, const VerdictRule& rule = {});

}  // namespace commfuse::reports
