// SPDX-License-Identifier: Apache-2.0
// The results of a sweep, or of a shard of one, in one SQLite file that survives any end of the program. One process
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

/// Version of the tables. A store of an older version is upgraded when it is next written.
inline constexpr int store_version = 2;
/// Largest number of rows of one point.
inline constexpr std::int64_t rows_a_point = 4096;

/// Identifies the results of a store. Stores with equal identities have equal results, as far as they go.
struct StoreIdentity {
  StoreKind kind = StoreKind::layers;
  std::string settings;    ///< The complete sweep, as YAML.
  std::string digest;      ///< Digest of the settings and of all files behind them.
  int model_version = 0;   //
  std::size_t points = 0;  ///< Points of the whole sweep.
  Shard shard{};

  friend bool operator==(const StoreIdentity&, const StoreIdentity&) = default;
};

/// The number of points and rows in a store.
struct StoreCounts {
  std::size_t points = 0;
  std::size_t rows = 0;
  std::size_t infeasible_rows = 0;  ///< Rows with a reason in place of a result.
};

/// The rows of one point in a store.
struct StoredPoint {
  std::size_t point = 0;
  std::vector<StoreRow> rows;
};

/// Reads points in their order. Throws DamagedDatabase where a row is not what was written.
class StoreReader {
 public:
  /// The code that has just filled the store can pass its counts, which saves counting. Throws ConfigError for a file
  /// that is not a store, or is one of a newer program, and otherwise DatabaseError.
  explicit StoreReader(const std::filesystem::path& path, std::optional<StoreCounts> counts = std::nullopt);
  StoreReader(const StoreReader&) = delete;
  StoreReader& operator=(const StoreReader&) = delete;
  ~StoreReader();

  [[nodiscard]] const StoreIdentity& identity() const;
  /// Returns the columns of its rows in the file. next() returns the columns that this program knows; those that the
  /// file lacks are absent there.
  [[nodiscard]] const std::vector<HeldColumn>& columns() const;
  [[nodiscard]] const std::filesystem::path& path() const;
  [[nodiscard]] const StoreCounts& counts() const;
  /// Returns the number of points that it will hold.
  [[nodiscard]] std::size_t points_wanted() const;

  /// Returns nothing at the end.
  std::optional<StoredPoint> next();
  /// Calls take(point, row) for the rows of the next point, each of which is valid until the call returns. Returns
  /// false at the end.
  bool next_point(const std::function<void(std::size_t point, const StoreRow& row)>& take);
  /// Starts from the first point again.
  void rewind();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A store that no other process reads or writes during this object's life.
class TakenStore {
 public:
  /// Throws ConfigError for a file that is not a store, or is open in another process, and otherwise DatabaseError.
  explicit TakenStore(const std::filesystem::path& path);
  void remove();

 private:
  Database database_;
};

/// Makes a store, or continues one.
class StoreWriter {
 public:
  /// Throws ConfigError when the file is not a store or holds other results, DamagedDatabase, and DatabaseError when it
  /// cannot be written or is open in another process.
  StoreWriter(const std::filesystem::path& path, const StoreIdentity& identity);
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;
  ~StoreWriter();

  /// Returns by point whether it is stored.
  [[nodiscard]] const std::vector<bool>& held() const;
  [[nodiscard]] const StoreCounts& counts() const;
  /// Adds a point that is not stored yet. Others see it after commit().
  void add(std::size_t point, const std::vector<StoreRow>& rows);
  void commit();
  /// Returns the bytes of the file.
  [[nodiscard]] std::uint64_t size() const;
  /// Returns whether the path still leads to the file that is written here.
  [[nodiscard]] bool is_in_place() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace commfuse
