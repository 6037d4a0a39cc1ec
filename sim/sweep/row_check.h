// SPDX-License-Identifier: Apache-2.0
// Rows whose values came from a file, looked at before anybody believes them.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/result.h"
#include "model/record/step_row.h"

namespace commfuse {

/// What no program wrote: a sentence without its end.
class RowMisfit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A machine's products may pass the peak that was stated for it, by 2 in their loop, their tiles and a burst each.
inline constexpr double most_mfu = 8.0;

/// Throws RowMisfit for text with control characters, which a terminal would obey; reasons and warnings may have lines.
void require_plain(std::string_view name, std::string_view text);

/// Whether a column may have that name: names go into tables, and into SQL, as they are.
bool may_name_column(std::string_view name);

/// "a whole number", "text".
std::string_view type_in_words(ColumnType type);

/// The row of values in the order of result_columns(). Throws RowMisfit where they are not one: they have the types of
/// their columns, names are known, settings, shares and MFUs are in their ranges, times are below 2^53 ps and add up.
ResultRow checked_row(std::span<const Value> values);

/// Reads rows one after another. What a row has in common with the one before is neither checked nor put again: of a
/// sweep that is nearly all but times.
class RowReader {
 public:
  /// checked_row(); it stays until the next call.
  const ResultRow& read(std::span<const Value> values);

 private:
  void put_changed(std::span<const Value> values);

  std::vector<Value> last_;
  std::vector<std::size_t> changed_;  ///< Columns of the row that is read.
  ResultRow row_;
};

/// Throws RowMisfit where the row lacks what every row of its kind has, or has it of another type or out of range. What
/// else a row has is its own affair.
void require_fit(const StepRow& row);

}  // namespace commfuse
