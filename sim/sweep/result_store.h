// SPDX-License-Identifier: Apache-2.0
// The results of a sweep, or of a shard of one, in one SQLite file that survives whatever ends the program. One process
// writes it at a time. docs/sweeps.md describes the tables; the row of point p and place r in it is row p * 4096 + r.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/sweep/database.h"
#include "sim/sweep/shard.h"
#include "sim/sweep/store_row.h"

namespace commfuse {

/// Of the tables. An older file is brought up to it when it is next written.
inline constexpr int store_version = 2;
/// Rows of one point at most.
inline constexpr std::int64_t rows_a_point = 4096;

/// Which results a store holds. Stores of equal identity hold equal results, as far as they go.
struct StoreIdentity {
  StoreKind kind = StoreKind::layers;
  std::string settings;    ///< The sweep in full, as YAML.
  std::string digest;      ///< Of the settings and of all files behind them.
  int model_version = 0;   //
  std::size_t points = 0;  ///< Of the whole sweep.
  Shard shard{};

  friend bool operator==(const StoreIdentity&, const StoreIdentity&) = default;
};

/// How much a store holds.
struct StoreCounts {
  std::size_t points = 0;
  std::size_t rows = 0;
  std::size_t infeasible_rows = 0;  ///< With a reason in the place of a result.
};

/// What a store holds of one point.
struct StoredPoint {
  std::size_t point = 0;
  std::vector<StoreRow> rows;
};

/// Reads points in their order. Throws DamagedDatabase where a row is not what was written.
class StoreReader {
 public:
  /// Whoever has just filled it knows its counts, which saves looking for them. Throws ConfigError for what is no
  /// store, or one of a newer program, DatabaseError else.
  explicit StoreReader(const std::filesystem::path& path, std::optional<StoreCounts> counts = std::nullopt);
  StoreReader(const StoreReader&) = delete;
  StoreReader& operator=(const StoreReader&) = delete;
  ~StoreReader();

  [[nodiscard]] const StoreIdentity& identity() const;
  /// The columns of its rows in the file. next() gives the columns that this program knows; what the file lacks is
  /// absent there.
  [[nodiscard]] const std::vector<HeldColumn>& columns() const;
  [[nodiscard]] const std::filesystem::path& path() const;
  [[nodiscard]] const StoreCounts& counts() const;
  /// Points that it will hold.
  [[nodiscard]] std::size_t points_wanted() const;

  /// Nothing at the end.
  std::optional<StoredPoint> next();
  /// The same row by row: calls take(point, row) for the rows of the next point, each of which lives until it returns.
  /// False at the end.
  bool next_point(const std::function<void(std::size_t point, const StoreRow& row)>& take);
  /// Begins again.
  void rewind();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A store that no other process reads or writes while this lives.
class TakenStore {
 public:
  /// Throws ConfigError for what is no store and for one that another process has, DatabaseError else.
  explicit TakenStore(const std::filesystem::path& path);
  void remove();

 private:
  Database database_;
};

/// Makes a store, or goes on with one.
class StoreWriter {
 public:
  /// Throws ConfigError when the file is no store or holds other results, DamagedDatabase, and DatabaseError when it
  /// cannot be written or another process has it.
  StoreWriter(const std::filesystem::path& path, const StoreIdentity& identity);
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;
  ~StoreWriter();

  /// By point: whether it is there.
  [[nodiscard]] const std::vector<bool>& held() const;
  [[nodiscard]] const StoreCounts& counts() const;
  /// Of a point that is not there yet. Seen by others after commit().
  void add(std::size_t point, const std::vector<StoreRow>& rows);
  void commit();
  /// Bytes of the file.
  [[nodiscard]] std::uint64_t size() const;
  /// Whether the path still leads to what is written here.
  [[nodiscard]] bool is_in_place() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace commfuse
