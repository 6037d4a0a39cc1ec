// SPDX-License-Identifier: Apache-2.0
// Rows of results by column. Each column is contiguous in memory, so NumPy can view it without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/record/result.h"
#include "model/record/row_table.h"
#include "model/record/step_row.h"

namespace commfuse::python {

/// A value of a row; std::monostate if the column does not apply to the row.
using Cell = std::variant<std::monostate, std::string, std::int64_t, double, bool>;

/// The values of a column by row. Only the vectors for `type` are filled, or `numbers` if some rows lack a count or
/// flag.
struct Column {
  ColumnType type = ColumnType::text;
  std::vector<std::int64_t> counts{};
  std::vector<double> numbers{};      ///< NaN if absent; also the counts or flags of a column that some rows lack.
  std::vector<std::uint8_t> flags{};  ///< 0 or 1.
  std::vector<std::int32_t> codes{};  ///< Indices in `words`; -1 if absent.
  std::vector<std::string> words{};   ///< Texts, each once, in order of appearance.
};

/// Properties of a column before it is read.
struct ColumnHead {
  std::string name;
  ColumnType type = ColumnType::text;
  bool operator==(const ColumnHead&) const = default;
};

class Table {
 public:
  explicit Table(std::shared_ptr<const RowTable> layers);
  explicit Table(std::vector<StepRow> models);

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] const std::vector<ColumnHead>& heads() const { return heads_; }
  /// Reads a column on the first call. The reference stays valid while the table exists. Thread-safe.
  /// Throws ConfigError, with the nearest name, for a column that the table does not have.
  const Column& column(const std::string& name);
  /// Reads all columns in one pass over the rows.
  void read_all();
  /// Returns the values of one row by column. Requires row < size().
  [[nodiscard]] std::vector<Cell> record(std::size_t row) const;

 private:
  void read(const std::vector<std::size_t>& indices);
  using ValueAt = std::function<Cell(std::size_t index)>;
  /// Calls `take` for each row, with a function that returns the value of the row in a column.
  void for_each_row(const std::function<void(const ValueAt& value)>& take) const;

  std::shared_ptr<const RowTable> layers_;
  std::vector<StepRow> models_;
  std::vector<ColumnHead> heads_;
  std::mutex mutex_;
  std::map<std::size_t, Column> columns_;  ///< By index in heads_.
};

}  // namespace commfuse::python
