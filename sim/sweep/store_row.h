// SPDX-License-Identifier: Apache-2.0
// Rows of results as the store keeps them and processes hand them on: a value a column, nothing lost.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/result.h"
#include "model/record/step_row.h"
#include "sim/sweep/row_check.h"

namespace commfuse {

/// A sweep is of layers or of whole models.
enum class StoreKind : std::uint8_t { layers, models };

enum class StoreType : std::uint8_t {
  word,   ///< a text of few: kept once
  text,   ///< one that may be another in every row
  count,  //
  number
};

struct StoreColumn {
  std::string_view name;
  StoreType type = StoreType::word;
};

/// The last column of layers: what made the p99, as JSON.
inline constexpr std::string_view causes_column = "p99_causes";

/// A column of a store as its file has it.
struct HeldColumn {
  std::string name;
  StoreType type = StoreType::word;
  friend bool operator==(const HeldColumn&, const HeldColumn&) = default;
};

/// Layers: result_columns(), then `p99_causes`, JSON. Whole models: `status`, `reason`, and `cells`, the row as JSON.
std::span<const StoreColumn> store_columns(StoreKind kind);

/// How a column of results is held in a column of its own; a flag is 0 or 1.
StoreType store_type_of(std::string_view column, ColumnType type);

using StoreRow = std::vector<Value>;

StoreRow stored(const ResultRow& row);
StoreRow stored(const StepRow& row);
/// Requires a row of layers. Throws ConfigError, which begins with `store`, for values that no program wrote.
ResultRow layer_row(const StoreRow& row, std::string_view store);
/// Reads them one after another, which takes less of rows that have much in common.
class LayerRowReader {
 public:
  /// layer_row(); it stays until the next call.
  const ResultRow& read(const StoreRow& row, std::string_view store);

 private:
  RowReader reader_;
  ResultRow with_causes_;
};
/// Its values in the order of result_columns(). Requires a row of layers.
std::span<const Value> result_values(const StoreRow& row);

/// Whether it has a result.
bool is_feasible(StoreKind kind, const StoreRow& row);

/// The row of a whole model, under result_schema whichever program wrote it. Requires a row of whole models. Throws
/// ConfigError, which begins with `store`, for cells that no program wrote.
StepRow model_row(const StoreRow& row, std::string_view store);

/// Rows as bytes, the same on all machines, and the way back. unpacked() throws std::runtime_error for other bytes.
std::string packed(std::span<const StoreRow> rows);
std::vector<StoreRow> unpacked(std::string_view bytes);
/// CRC-32 of a row's number and bytes.
std::uint32_t checksum_of(std::int64_t id, const StoreRow& row);

}  // namespace commfuse
