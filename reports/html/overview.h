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

/// The share of time that the fastest schedule of a point saves against the fastest of another strategy.
struct Saving {
  double share = 0.0;
  std::size_t winner = 0;  ///< Rows.
  std::size_t next = 0;
};

struct Overview {
  /// Runs of points that differ only in axes, ranks and seq: what one map and one table show.
  struct Setting {
    std::string title;  ///< "llama-3.1-70b mlp on h100-sxm, batch 1, bf16"
    RowRange rows;
    std::size_t points = 0;
  };
  std::vector<Setting> settings;
  std::size_t points = 0;
  /// Points with a result that have the fewest and the most tokens, then ranks; the first of equals.
  std::optional<RowRange> smallest;
  std::optional<RowRange> largest;
  std::string memory;                      ///< memory_sentence() of the rows with a result.
  std::string wins_words;                  ///< summary() of them; empty for fewer than two points.
  std::vector<Wins> wins;                  ///< The most often first, by name where two win as often.
  std::optional<std::size_t> highest_mfu;  ///< The row; of equals one at the largest point, else the first.
  std::optional<Saving> saving;            ///< The largest.
  std::vector<std::uint8_t> wins_alone;    ///< By row: 1 where it wins its point.
  NarrowColumn against_serial;  ///< By row, as RowColumns hold numbers: against_serial() where it has a result.
};

/// Requires that rows of one point stand together.
Overview overview_of(const RowTable& rows, const VerdictRule& rule = {});

}  // namespace commfuse::reports
