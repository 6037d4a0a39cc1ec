// SPDX-License-Identifier: Apache-2.0
// Questions to stores, in SQL on their view `results`; nothing that is asked can change them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
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
  Query query;                       ///< Where: before groups are made. The rest: of what comes out.
};

using TakeRow = std::function<void(std::span<const Value>)>;

/// A store, or the one in a folder. Throws as StoreReader does.
class StoreQuery {
 public:
  explicit StoreQuery(const std::filesystem::path& file_or_folder);

  [[nodiscard]] StoreKind kind() const { return kind_; }
  /// Names: `point` and `place`, then those of results.
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  /// Columns that say what was asked of a point.
  [[nodiscard]] std::vector<std::string> asked() const;
  /// The column that tells how fast a row is.
  [[nodiscard]] std::string time_column() const;

  /// The names of the columns that come. Throws ConfigError, which names the flag, for what cannot be asked.
  std::vector<std::string> run(const Query& query, const TakeRow& take) const;
  std::vector<std::string> run(const BestQuery& query, const TakeRow& take) const;

  /// Rows of this store and of another one that are about the same schedule of the same point, where `by` differs, or
  /// that are in one of them only. Columns: those of asked(), `strategy`, `before`, `after`, `ratio`; the largest
  /// change first. Throws ConfigError for stores of different kinds.
  std::vector<std::string> differences(const std::filesystem::path& other, const std::string& by, const TakeRow& take);

 private:
  /// `where`: what of the SQL the user wrote.
  std::vector<std::string> ask(const std::string& sql, const std::string& where, const TakeRow& take) const;
  void require_expression(const std::string& where) const;
  void allow_steps_for(const std::string& where) const;
  [[nodiscard]] std::string table(const std::string& schema) const;
  void require_column(std::string_view flag, const std::string& name) const;
  [[nodiscard]] std::string order_of(const std::vector<std::string>& sort_by) const;

  Database database_;
  StoreKind kind_ = StoreKind::layers;
  std::vector<std::string> columns_;
};

}  // namespace commfuse
