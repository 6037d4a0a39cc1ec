// SPDX-License-Identifier: Apache-2.0
// Rows of results by column: some 80 bytes a row, where a ResultRow takes more than a kilobyte.
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

/// The place of a member among outcome_columns.
template <class Member>
consteval std::size_t outcome_place(Member Outcome::*member) {
  std::size_t place = 0;
  while (outcome_columns[place].member != OutcomeMember(member)) {
    ++place;
  }
  return place;
}

/// A column for each member of a ResultRow, under its name. Numbers that are not whole are held by their bits; a flag
/// is 0 or 1.
struct RowColumns {
  WordColumn model, hardware, link_bandwidth, network_bandwidth, scope, dtype;
  WordColumn strategy, implements, held_back, parameters, schedule_sha256, reason, warnings;
  WordColumn evaluator, jitter, faults, leans_on;
  std::array<WordColumn, price_settings.size()> priced_as;  ///< By place among price_settings.
  NarrowColumn link_rate, network_rate, ranks, batch, seq, seed, bound, buffers, makespan_error, win_probability,
      beats_serial, saving_error;
  std::array<NarrowColumn, outcome_columns.size()> outcome;  ///< By place among outcome_columns.
  NarrowColumn critical_rank, mean_exposed, max_exposed;
  NarrowColumn makespan, compute, slicing, stretch, local, exposed, head, bubble, tail, busy;
  NarrowColumn options, tails;  ///< Places in lists of the table.
};

/// What a column holds of a number that is not there.
inline constexpr std::int64_t no_number = -1;
/// The number that a column holds by its bits; NaN where there is none.
double number_of_bits(std::int64_t bits);

/// Rows, in an order of their own.
class RowTable {
 public:
  using Groups = std::vector<std::uint32_t>;  ///< By row.
  using Columns = std::vector<const NarrowColumn*>;

  RowTable() = default;
  explicit RowTable(std::span<const ResultRow> rows);
  RowTable(const RowTable&) = delete;  // It may be large.
  RowTable& operator=(const RowTable&) = delete;
  RowTable(RowTable&&) = default;
  RowTable& operator=(RowTable&&) = default;
  ~RowTable() = default;

  /// At the end. Requires that the rows were not ordered.
  void push_back(const ResultRow& row);
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  [[nodiscard]] ResultRow operator[](std::size_t row) const;
  /// The same into a row that is there, whose memory is used again.
  void read(std::size_t row, ResultRow& into) const;
  [[nodiscard]] std::vector<ResultRow> rows(std::size_t first, std::size_t count) const;

  /// Null where it was not run under jitter.
  [[nodiscard]] const Tails* tails(std::size_t row) const;

  [[nodiscard]] const RowColumns& columns() const { return columns_; }
  /// The place of a row in the columns.
  [[nodiscard]] std::size_t place_of(std::size_t row) const { return order_.empty() ? row : order_[row]; }

  /// Columns of what tells points apart; without axes, of what tells settings apart (ColumnRole).
  [[nodiscard]] Columns point_columns() const;
  [[nodiscard]] Columns setting_columns() const;
  /// Rows that agree in these columns have one number, counted from 0 in the order in which they first come.
  [[nodiscard]] Groups groups(const Columns& columns) const;
  /// Where runs of neighbours that agree in these columns begin, and, last, the number of rows.
  [[nodiscard]] Groups runs(const Columns& columns) const;

  /// From here on rows of one point stand together, in the order in which points and rows first come. An axis over
  /// strategies leaves them apart.
  void order_by_point();
  /// The same of settings, whose points keep their order.
  void order_by_setting();

 private:
  void order_by(const Groups& groups);

  using Schedule = std::pair<StrategyOptions, std::vector<bool>>;  ///< Options, and which of them are relevant.

  RowColumns columns_;
  std::map<Schedule, std::int64_t> known_options_;
  std::vector<std::pair<StrategyOptions, OptionSet>> options_;
  std::vector<Tails> tails_;
  std::vector<std::uint32_t> order_;  ///< Places by row; empty: as they came.
  std::size_t size_ = 0;
};

}  // namespace commfuse
