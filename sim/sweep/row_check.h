// SPDX-License-Identifier: Apache-2.0
// Checks rows whose values come from a file before anything uses them.
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

/// A row that the program never writes; the message is a sentence without its full stop.
class RowMisfit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Largest MFU of a valid row. GEMMs may exceed a machine's stated peak: their loop, their tiles and a burst may each
/// contribute a factor of up to 2.
inline constexpr double max_mfu = 8.0;

/// Throws RowMisfit for text that is not UTF-8 or has control characters, which a terminal would obey. Tabs are
/// allowed; in reasons and warnings, so are line breaks.
void require_plain(std::string_view name, std::string_view text);

/// Returns whether a column may have that name: names go into tables, and into SQL, without escaping.
bool may_name_column(std::string_view name);

/// Returns "a whole number", "text" and so on.
std::string_view type_in_words(ColumnType type);

/// Returns the row that `values`, in the order of result_columns(), describe. Throws RowMisfit where the values are not
/// a valid row: types must match the columns, names must be known, settings, shares and MFUs in their ranges, and times
/// below 2^53 ps and consistent.
ResultRow checked_row(std::span<const Value> values);

/// Reads rows one after another. Values that equal the values of the previous row are neither checked nor stored again:
/// in a sweep these are nearly all values except times.
class RowReader {
 public:
  /// Returns checked_row(); valid until the next call.
  const ResultRow& read(std::span<const Value> values);

 private:
  void put_changed(std::span<const Value> values);

  std::vector<Value> last_;
  std::vector<std::size_t> changed_;  ///< columns that differ from the previous row
  ResultRow row_;
};

/// Throws RowMisfit where the row lacks a value that every row of its kind has, and where a value has the wrong type or
/// is out of range. In columns other than settings and usual results of steps, only texts are checked, by
/// require_plain().
void require_fit(const StepRow& row);

}  // namespace commfuse
