// SPDX-License-Identifier: Apache-2.0
// Queries stores, and rows of JSON. No query can change them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/sweep/result_store.h"

namespace commfuse {

struct Query {
  std::string where;                 ///< SQL expression over columns; empty: every row.
  std::vector<std::string> columns;  ///< Empty: all.
  std::vector<std::string> sort_by;  ///< "-mfu": largest first. Ties are in the order of the points.
  std::int64_t limit = -1;           ///< Largest number of rows; below 0: all.
};

/// Selects, in each group of rows that agree in `per`, the row with the smallest (with "-", the largest) `by`, the
/// first on ties.
struct BestQuery {
  std::string by;
  std::vector<std::string> per;
  std::vector<std::string> without;  ///< Strategies to exclude.
  bool without_bounds = false;       ///< Excludes rows that the column `bound` marks. Requires the column to exist.
  Query query;                       ///< `where` applies before groups are formed; the other members apply afterwards.
};

/// Selects whether rows are compared with their checksums before the query; the comparison takes about 3 us per row.
enum class Verify : std::uint8_t { nothing, rows };

/// A setting that has one value in all rows of a store, and a different value in all rows of another store.
struct ChangedSetting {
  std::string name;    ///< Name of the column.
  std::string before;  ///< Value in the first store, as a string; the default if the rows have none.
  std::string after;
};

using TakeRow = std::function<void(std::span<const Value>)>;

/// Queries a store, the store in a folder, or rows of JSON. Throws as StoreReader or rows_of_json_file() does.
class StoreQuery {
 public:
  explicit StoreQuery(const std::filesystem::path& file, Verify verify = Verify::nothing);

  /// A store has either layers or whole models; rows of JSON may have both. JSON without rows is refused.
  [[nodiscard]] bool has_layers() const { return has_layers_; }
  [[nodiscard]] bool has_models() const { return has_models_; }
  /// Returns the names of all columns: first `point` and `place` for a store, or `time_us` for layers and whole models
  /// together; then the columns of results.
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  /// Returns the columns of the usual settings of a point: those before `strategy` in all_columns().
  [[nodiscard]] std::vector<std::string> asked() const;
  /// Returns all columns that distinguish points.
  [[nodiscard]] std::vector<std::string> point_columns() const;
  /// Returns the column with the time of a row; with `other`, the column that fits the rows of both.
  [[nodiscard]] std::string time_column() const;
  [[nodiscard]] std::string time_column(const StoreQuery& other) const;

  /// Calls back with each row, and returns the names of the columns. Throws ConfigError, which names the flag, for a
  /// query that is not allowed.
  std::vector<std::string> run(const Query& query, const TakeRow& take) const;
  std::vector<std::string> run(const BestQuery& query, const TakeRow& take) const;

  /// Returns the columns of differences(): the columns of asked() that both stores have, other settings that vary
  /// within one store, then `strategy`, `before`, `after`, `ratio`.
  [[nodiscard]] std::vector<std::string> difference_columns(const StoreQuery& other) const;
  /// Returns the settings by which differences() does not match rows, because each store has a single value and the two
  /// values differ.
  [[nodiscard]] std::vector<ChangedSetting> changed_settings(const StoreQuery& other) const;
  /// Pairs rows of the two stores that have the same strategy at the same point. Passes on pairs whose `by` differs,
  /// and rows without a partner; the largest change first. Throws ConfigError if the stores have no kind of row in
  /// common, or if one lacks the column `by`.
  void differences(const StoreQuery& other, const std::string& by, const TakeRow& take);

 private:
  struct Source;
  explicit StoreQuery(Source source);
  void read_columns_of_cells();
  void read_texts();
  /// The values of a column in all rows.
  struct Values {
    Value least, greatest;
    bool has_rows = false;
    bool are_equal = false;
  };
  [[nodiscard]] std::vector<Values> values_of(const std::vector<std::string>& names) const;
  /// The settings that differences() matches in addition to asked(), and those that it does not match.
  struct OtherSettings {
    std::vector<std::string> varied;
    std::vector<ChangedSetting> changed;
  };
  [[nodiscard]] OtherSettings other_settings(const StoreQuery& other) const;
  /// Returns whether some row may have the column; also true for `time_us`, which every query accepts.
  [[nodiscard]] bool holds_column(std::string_view name) const;
  /// Returns the columns that rows of these kinds may have but that no row has.
  [[nodiscard]] std::vector<std::string_view> empty_columns() const;
  /// Returns whether a query may name the column. Rows need no value in the column.
  [[nodiscard]] bool has_column(std::string_view name) const;
  /// Returns an expression for --where over columns of these rows, in double quotes.
  [[nodiscard]] std::string example_expression() const;
  /// Attaches the rows of `other`, and returns the name of the schema with these rows in this database.
  std::string attach(const StoreQuery& other);
  void copy_rows(const StoreQuery& other);

  /// Runs `ask`. If SQLite refuses a statement, throws a ConfigError about --where, the part that users write.
  template <class Ask>
  void within_limits(const Ask& ask) const;
  /// Passes the rows of a statement, whose columns are stored_names(), to `take`.
  void take_all(Statement& statement, const std::vector<std::string>& names, const TakeRow& take) const;
  /// Calls take(number, values) with the columns of the rows with these numbers.
  template <class Take>
  void for_each_of(std::span<const std::int64_t> ids, const std::vector<std::string>& names, const Take& take) const;
  /// Returns the numbers of the winning rows, in order.
  [[nodiscard]] std::vector<std::int64_t> winners(const BestQuery& query) const;
  void sort(std::vector<std::int64_t>& ids, const std::vector<std::string>& sort_by) const;
  void require_expression(const std::string& where) const;
  void allow_steps_for(const std::string& where, const Database& database) const;
  /// Returns the statement that selects the number, the value to compare and the group of each row of a part.
  [[nodiscard]] std::string candidates_in(const StorePart& part, const BestQuery& query) const;
  /// Returns a subquery that yields the number and the columns of each row. For a column whose strings the file holds
  /// by number, it also yields the number of the text, under a name that begins with #.
  [[nodiscard]] std::string table(const std::string& schema) const;
  [[nodiscard]] std::string time_of_both_in_sql() const;
  /// Returns the column of table() that needs no look-up: the number of a string where the file has numbers.
  [[nodiscard]] std::string stored_name(const std::string& name) const;
  [[nodiscard]] std::string stored_names(const std::vector<std::string>& names) const;
  /// `is_word`: the file has the number of a string in this column.
  [[nodiscard]] Value value_of(const Statement::Cell& cell, bool is_word) const;
  /// The values of columns that a statement selects in the form of stored_name().
  class Selected {
   public:
    Selected(const StoreQuery& query, const std::vector<std::string>& names);
    std::span<const Value> row(const Statement& statement);

   private:
    const StoreQuery& query_;
    std::vector<Value> values_;
    std::vector<bool> is_word_;
  };
  class RowReader;
  void require_column(std::string_view flag, const std::string& name) const;
  [[nodiscard]] std::string order_of(const std::vector<std::string>& sort_by) const;

  Database database_;
  bool is_store_ = true;    ///< false: rows of JSON, in memory
  bool has_cells_ = false;  ///< the columns of a row are one cell of JSON
  bool has_layers_ = false;
  bool has_models_ = false;
  std::vector<HeldColumn> held_;  ///< Columns of the table.
  std::vector<std::string> columns_;
  std::unordered_set<std::string> words_;                  ///< Columns whose strings the file holds by number.
  std::unordered_map<std::int64_t, std::string> texts_{};  ///< By number.
};

}  // namespace commfuse
