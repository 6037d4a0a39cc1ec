// SPDX-License-Identifier: Apache-2.0
// Queries of stores, and of rows of JSON. Nothing that is asked can change them.
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
  std::string where;                 ///< An expression of SQL over columns; empty: every row.
  std::vector<std::string> columns;  ///< Empty: all.
  std::vector<std::string> sort_by;  ///< "-mfu": the largest first. Behind them the order of the points.
  std::int64_t limit = -1;           ///< Rows at most; below 0: all.
};

/// Of each group of rows that agree in `per` the one with the least (with "-", the largest) `by`, the first on ties.
struct BestQuery {
  std::string by;
  std::vector<std::string> per;
  std::vector<std::string> without;  ///< Strategies that take no part.
  bool without_bounds = false;       ///< Rows that the column `bound` marks take no part. Requires that column.
  Query query;                       ///< Where: before groups are made. The rest: of what comes out.
};

/// Whether rows are compared with their checksums before anything is said about them: some 3 us a row.
enum class Verify : std::uint8_t { nothing, rows };

using TakeRow = std::function<void(std::span<const Value>)>;

/// A store, the one in a folder, or rows of JSON (rows_of_json_file). Throws as StoreReader does.
class StoreQuery {
 public:
  explicit StoreQuery(const std::filesystem::path& file, Verify verify = Verify::nothing);

  /// Of a store one is true; JSON without rows is refused.
  [[nodiscard]] bool has_layers() const { return has_layers_; }
  [[nodiscard]] bool has_models() const { return has_models_; }
  /// Names: of a store `point` and `place`; of layers and whole models together `time_us`; then those of results.
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  /// Columns that say what was asked of a point, as far as people look for it: those that stand before the strategy.
  [[nodiscard]] std::vector<std::string> asked() const;
  /// All that tell points apart.
  [[nodiscard]] std::vector<std::string> point_columns() const;
  /// The column that tells how fast a row is; with that of the rows of `other` to compare, of both.
  [[nodiscard]] std::string time_column() const;
  [[nodiscard]] std::string time_column(const StoreQuery& other) const;

  /// The names of the columns that come. Throws ConfigError, which names the flag, for what cannot be asked.
  std::vector<std::string> run(const Query& query, const TakeRow& take) const;
  std::vector<std::string> run(const BestQuery& query, const TakeRow& take) const;

  /// Columns of differences(): those of asked() that both have, `strategy`, `before`, `after`, `ratio`.
  [[nodiscard]] std::vector<std::string> difference_columns(const StoreQuery& other) const;
  /// Rows of this one and of another one that are about the same schedule of the same point, where `by` differs, or
  /// that are in one of them only; the largest change first. Throws ConfigError where they have no kind of rows in
  /// common.
  void differences(const StoreQuery& other, const std::string& by, const TakeRow& take);

 private:
  struct Source;
  explicit StoreQuery(Source source);
  void read_columns_of_cells();
  void read_texts();
  /// Also of `time_us`, which every query knows.
  [[nodiscard]] bool has_column(const std::string& name) const;
  /// The rows of `other` beside these; gives the name of its schema here.
  std::string attach(const StoreQuery& other);
  void copy_rows(const StoreQuery& other);

  /// Runs `ask`. Throws ConfigError for --where, the part of the SQL that users write, where SQLite refuses it.
  template <class Ask>
  void within_limits(const Ask& ask) const;
  /// The rows of a statement whose columns are stored_name().
  void take_all(Statement& statement, const std::vector<std::string>& names, const TakeRow& take) const;
  /// The columns of rows with these numbers; calls take(number, values).
  template <class Take>
  void for_each_of(std::span<const std::int64_t> ids, const std::vector<std::string>& names, const Take& take) const;
  /// Numbers of the winning rows, in order.
  [[nodiscard]] std::vector<std::int64_t> winners(const BestQuery& query) const;
  void sort(std::vector<std::int64_t>& ids, const std::vector<std::string>& sort_by) const;
  void require_expression(const std::string& where) const;
  void allow_steps_for(const std::string& where) const;
  /// A subquery: the number of each row, the columns, and behind a # those whose texts the file holds by number.
  [[nodiscard]] std::string table(const std::string& schema) const;
  [[nodiscard]] std::string time_of_both_in_sql() const;
  /// The column of table() that costs no look-up: the number of a text where the file has numbers.
  [[nodiscard]] std::string stored_name(const std::string& name) const;
  [[nodiscard]] std::string stored_names(const std::vector<std::string>& names) const;
  /// `is_word`: whether the file has the number of a text in this column.
  [[nodiscard]] Value value_in(const Statement& statement, int column, bool is_word) const;
  /// The values of columns that a statement selects as they are stored_name().
  class Selected {
   public:
    Selected(const StoreQuery& query, const std::vector<std::string>& names);
    std::span<const Value> row(const Statement& statement);

   private:
    const StoreQuery& query_;
    std::vector<Value> values_;
    std::vector<bool> is_word_;
  };
  void require_column(std::string_view flag, const std::string& name) const;
  [[nodiscard]] std::string order_of(const std::vector<std::string>& sort_by) const;

  Database database_;
  bool is_store_ = true;    ///< Rows of JSON lie in memory.
  bool has_cells_ = false;  ///< Columns of a row are one cell of JSON.
  bool has_layers_ = false;
  bool has_models_ = false;
  std::vector<HeldColumn> held_;  ///< Of the table.
  std::vector<std::string> columns_;
  std::unordered_set<std::string> words_;                  ///< Columns whose texts the file holds by number.
  std::unordered_map<std::int64_t, std::string> texts_{};  ///< By number.
};

}  // namespace commfuse
