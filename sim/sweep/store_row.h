// SPDX-License-Identifier: Apache-2.0
// Rows of results in the form of the store and of messages between processes: one value per column, without loss.
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

/// The kind of a sweep: layers or whole models.
enum class StoreKind : std::uint8_t { layers, models };

enum class StoreType : std::uint8_t {
  word,   ///< one of few strings, each stored once
  text,   ///< a string that may differ in every row
  count,  //
  number
};

struct StoreColumn {
  std::string_view name;
  StoreType type = StoreType::word;
};

/// The last column of layers: the causes of the p99, as JSON.
inline constexpr std::string_view causes_column = "p99_causes";

/// A column in the file of a store.
struct HeldColumn {
  std::string name;
  StoreType type = StoreType::word;
  friend bool operator==(const HeldColumn&, const HeldColumn&) = default;
};

/// Returns the columns. Layers: result_columns(), then `p99_causes`, JSON. Whole models: `status`, `reason`, and
/// `cells`, the row as JSON.
std::span<const StoreColumn> store_columns(StoreKind kind);

/// Returns the type of a column of results in the store; a flag is 0 or 1.
StoreType store_type_of(std::string_view column, ColumnType type);

using StoreRow = std::vector<Value>;

StoreRow stored(const ResultRow& row);
StoreRow stored(const StepRow& row);
/// Requires `row` to be a row of layers. Throws a ConfigError that begins with `store` for values that the program
/// never writes.
ResultRow layer_row(const StoreRow& row, std::string_view store);
/// Reads rows one after another, which is faster if consecutive rows have many equal values.
class LayerRowReader {
 public:
  /// Returns layer_row(); valid until the next call.
  const ResultRow& read(const StoreRow& row, std::string_view store);

 private:
  RowReader reader_;
  ResultRow with_causes_;
};
/// Returns the row's values in the order of result_columns(). Requires `row` to be a row of layers.
std::span<const Value> result_values(const StoreRow& row);

/// Returns whether the row has a result.
bool is_feasible(StoreKind kind, const StoreRow& row);

/// Returns the row of a whole model, with result_schema as its schema, whichever program version wrote it. Requires
/// `row` to be a row of whole models. Throws a ConfigError that begins with `store` for cells that the program never
/// writes.
StepRow model_row(const StoreRow& row, std::string_view store);

/// packed() converts rows to bytes that are identical on all machines; unpacked() converts them back and throws
/// std::runtime_error for bytes that packed() does not produce.
std::string packed(std::span<const StoreRow> rows);
std::vector<StoreRow> unpacked(std::string_view bytes);
/// Returns the CRC-32 of a row's number and bytes.
std::uint32_t checksum_of(std::int64_t id, const StoreRow& row);

/// Computes checksum_of() for many rows, and reuses its memory.
class RowChecksum {
 public:
  std::uint32_t of(std::int64_t id, const StoreRow& row);

 private:
  std::vector<char> memory_;
};

}  // namespace commfuse
