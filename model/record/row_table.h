// SPDX-License-Identifier: Apache-2.0
// Rows of results by column: about 80 bytes per row, whereas a ResultRow takes more than a kilobyte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "model/record/narrow_column.h"
#include "model/record/result.h"

namespace commfuse {

/// Returns the index of a member's entry in outcome_columns.
template <class Member>
consteval std::size_t outcome_place(Member Outcome::*member) {
  std::size_t place = 0;
  while (outcome_columns[place].member != OutcomeMember(member)) {
    ++place;
  }
  return place;
}

/// One column per member of a ResultRow, under its name. Numbers that are not whole are stored as their bits; a flag is
/// 0 or 1.
struct RowColumns {
  WordColumn model, hardware, link_bandwidth, network_bandwidth, all_reduce_kernel, scope, dtype;
  WordColumn strategy, implements, held_back, unmeasured_on, parameters, schedule_sha256, reason, warnings;
  WordColumn evaluator;
  std::array<WordColumn, repeated_settings.size()> repeated;  ///< by index in repeated_settings
  WordColumn provenances;
  std::array<WordColumn, price_settings.size()> priced_as;  ///< by index in price_settings
  NarrowColumn link_rate, network_rate, ranks, batch, seq, seed, bound, buffers, makespan_error, win_probability,
      beats_serial, saving_error;
  std::array<NarrowColumn, outcome_columns.size()> outcome;  ///< by index in outcome_columns
  NarrowColumn critical_rank, mean_exposed, max_exposed;
  NarrowColumn makespan, compute, slicing, stretch, local, exposed, head, bubble, tail, busy;
  NarrowColumn options, tails;  ///< indices into lists of the table
};

/// Value of a column for a missing number.
inline constexpr std::int64_t no_number = -1;
/// Returns the number that a column stores as its bits; NaN if it is missing.
double number_of_bits(std::int64_t bits);

/// Table of rows, whose order may differ from the order of arrival.
class RowTable {
 public:
  using Groups = std::vector<std::uint32_t>;  ///< by row
  using Columns = std::vector<const NarrowColumn*>;

  RowTable() = default;
  explicit RowTable(std::span<const ResultRow> rows);
  RowTable(const RowTable&) = delete;  // it may be large
  RowTable& operator=(const RowTable&) = delete;
  RowTable(RowTable&&) = default;
  RowTable& operator=(RowTable&&) = default;
  ~RowTable() = default;

  /// Appends a row. Requires that the table was not ordered before.
  void push_back(const ResultRow& row);
  /// Moves all rows of another table to the end of this table. Requires that neither table was ordered before.
  void append(RowTable&& other);
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  [[nodiscard]] ResultRow operator[](std::size_t row) const;
  /// Reads into an existing row, whose memory is reused.
  void read(std::size_t row, ResultRow& into) const;
  [[nodiscard]] std::vector<ResultRow> rows(std::size_t first, std::size_t count) const;

  /// Returns null if the row was not run under jitter.
  [[nodiscard]] const Tails* tails(std::size_t row) const;

  [[nodiscard]] const RowColumns& columns() const { return columns_; }
  /// Returns the place of a row in the columns.
  [[nodiscard]] std::size_t place_of(std::size_t row) const { return order_.empty() ? row : order_[row]; }

  /// Return the columns that distinguish points, and the subset without axes, which distinguishes settings
  /// (ColumnRole).
  [[nodiscard]] Columns point_columns() const;
  [[nodiscard]] Columns setting_columns() const;
  /// Numbers the rows, with one number for all rows that agree in these columns, counted from 0 in the order of first
  /// occurrence.
  [[nodiscard]] Groups groups(const Columns& columns) const;
  /// Returns the first row of each run of neighbours that agree in these columns and, last, the number of rows.
  [[nodiscard]] Groups runs(const Columns& columns) const;

  /// Puts rows of one point together, in the order in which points and rows first occur. In a sweep with an axis over
  /// strategies, the rows of a point do not arrive together.
  void order_by_point();
  /// Puts rows of one setting together; the points of a setting keep their order.
  void order_by_setting();

 private:
  void order_by(const Groups& groups);
  /// Returns the number of a schedule's options in `options_`; adds the options if they are new.
  std::int64_t number_of(const StrategyOptions& options, OptionSet relevant);

  using Schedule = std::pair<StrategyOptions, std::vector<bool>>;  ///< options, and which of them are relevant

  RowColumns columns_;
  std::map<Schedule, std::int64_t> known_options_;
  std::vector<std::pair<StrategyOptions, OptionSet>> options_;
  std::vector<Tails> tails_;
  std::vector<std::uint32_t> order_;  ///< places by row; empty: in the order of arrival
  std::size_t size_ = 0;
};

}  // namespace commfuse
