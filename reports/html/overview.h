// SPDX-License-Identifier: Apache-2.0
// Results of one pass over all rows of a report, point by point, so that only one point is unpacked at a time.
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

/// Consecutive rows of a table.
struct RowRange {
  std::size_t first = 0;
  std::size_t count = 0;
  [[nodiscard]] bool has(std::size_t row) const { return row >= first && row < first + count; }
};

/// The number of points that a strategy wins.
struct Wins {
  std::string strategy;
  std::size_t points = 0;
};

/// The saving of one strategy against serial, over all points.
struct StrategySavings {
  std::string strategy;
  bool is_implementation = false;
  SavingCount count;
};

struct Overview {
  /// Points that differ only in the axes ranks and seq: the content of one map and one table.
  struct Setting {
    std::string title;  ///< "llama-3.1-70b mlp on h100-sxm, batch 1, bf16"
    RowRange rows;
    std::size_t points = 0;
    SavingCount savings{};  ///< Saving of the recommended schedule at each point.
  };
  std::vector<Setting> settings;
  std::size_t points = 0;
  /// Points with a result that have the fewest and the most tokens, then ranks; the first on ties.
  std::optional<RowRange> smallest;
  std::optional<RowRange> largest;
  std::string memory;      ///< memory_sentence() of the rows with a result.
  std::string wins_words;  ///< summary() of the rows with a result; empty for fewer than two points.
  std::vector<Wins> wins;  ///< Most frequent winner first, by name if two win equally often.
  /// Row with the highest MFU; among equal rows a row of the largest point, else the first.
  std::optional<std::size_t> highest_mfu;
  SavingCount savings;                      ///< Saving of the recommended schedule against serial at each point.
  std::vector<StrategySavings> strategies;  ///< Largest median first.
  /// The point to show first: the point where overlap clearly saves the largest share of serial's time, else where it
  /// clearly loses the most; without serial, where the fastest schedule has the largest lead. Nothing if no point is
  /// decided.
  std::optional<RowRange> decisive;
  std::optional<RowRange> best;     ///< Point with the largest saving against serial, sure or not.
  std::optional<RowRange> loss;     ///< Point where overlap clearly loses the most.
  std::vector<std::uint8_t> front;  ///< Value of each row: 1 if it wins its point, 2 if it ties for first, else 0.
  /// Value of each row, encoded as in RowColumns: against_serial() if the row has a result.
  NarrowColumn against_serial;
};

/// Requires that rows of one point are adjacent.
Overview overview_of(const RowTable& rows, const VerdictRule& rule = {});

}  // namespace commfuse::reports
