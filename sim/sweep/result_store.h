// SPDX-License-Identifier: Apache-2.0
// The results of a sweep, or of a shard of one, in one SQLite file that stays valid however the program ends. One
// process writes it at a time. docs/sweeps.md describes the tables; row r of point p has the number p * 4096 + r.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/sweep/database.h"
#include "sim/sweep/shard.h"
#include "sim/sweep/store_row.h"

namespace commfuse {

/// Version of the tables. An older store is upgraded when it is next written.
inline constexpr int store_version = 2;
/// Largest number of rows of one point.
inline constexpr std::int64_t rows_a_point = 4096;

/// Identifies the results of a store. Stores with equal identities have equal results for the points that both hold.
struct StoreIdentity {
  StoreKind kind = StoreKind::layers;
  std::string settings;    ///< The complete sweep, as YAML.
  std::string digest;      ///< Digest of the settings and of all files that they name.
  int model_version = 0;   ///< Version of the model that computed the results.
  std::size_t points = 0;  ///< Number of points of the whole sweep.
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

/// The rows whose numbers lie in a range.
struct StorePart {
  std::int64_t first = std::numeric_limits<std::int64_t>::min();
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

/// Divides the rows of a store into at most `count` parts with about equal numbers of points, without splitting a
/// point. Returns fewer parts if they would have few points. Several connections can read the parts simultaneously.
/// Requires `count` >= 1.
std::vector<StorePart> parts_of(const Database& database, std::size_t count);

/// Reads points in their order. Throws DamagedDatabase where a row differs from what was written.
class StoreReader {
 public:
  /// A caller that has just filled the store can pass its counts, which saves counting. Throws ConfigError for a file
  /// that is not a store, is empty or was written by a newer program, DamagedDatabase for a damaged store, and
  /// DatabaseError for other failures.
  explicit StoreReader(const std::filesystem::path& path, std::optional<StoreCounts> counts = std::nullopt);
  StoreReader(const StoreReader&) = delete;
  StoreReader& operator=(const StoreReader&) = delete;
  ~StoreReader();

  [[nodiscard]] const StoreIdentity& identity() const;
  /// Returns the columns of the store's rows in the file. next() returns rows with the columns of this program; columns
  /// that the file lacks have no value.
  [[nodiscard]] const std::vector<HeldColumn>& columns() const;
  [[nodiscard]] const std::filesystem::path& path() const;
  [[nodiscard]] const StoreCounts& counts() const;
  /// Returns the number of points that the store has when it is complete.
  [[nodiscard]] std::size_t points_wanted() const;

  /// Returns the next point, or nothing at the end.
  std::optional<StoredPoint> next();
  /// Calls take(point, row) for each row of the next point. A row is valid until the call of `take` returns. Returns
  /// false at the end.
  bool next_point(const std::function<void(std::size_t point, const StoreRow& row)>& take);
  /// Starts again from the first point; after restrict_to(), from the first point of the part.
  void rewind();

  /// Returns parts_of() for this store.
  [[nodiscard]] std::vector<StorePart> parts(std::size_t count) const;
  /// Starts from the first point of a part, and ends after its last point.
  void restrict_to(const StorePart& part);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A store that no other process reads or writes during this object's life.
class TakenStore {
 public:
  /// Throws ConfigError for a file that is not a store, or is open in another process, and DatabaseError for other
  /// failures.
  explicit TakenStore(const std::filesystem::path& path);
  void remove();

 private:
  Database database_;
};

/// Creates a store, or continues an existing one.
class StoreWriter {
 public:
  /// Throws ConfigError when the file is not a store or holds other results or columns, DamagedDatabase when it is
  /// damaged, and DatabaseError when it cannot be written or is open in another process.
  StoreWriter(const std::filesystem::path& path, const StoreIdentity& identity);
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;
  ~StoreWriter();

  /// Returns, by point, whether the point is stored.
  [[nodiscard]] const std::vector<bool>& held() const;
  [[nodiscard]] const StoreCounts& counts() const;
  /// Adds a point that is not stored yet. commit() makes the point permanent.
  void add(std::size_t point, const std::vector<StoreRow>& rows);
  void commit();
  /// Returns the size of the file in bytes.
  [[nodiscard]] std::uint64_t size() const;
  /// Returns whether the path still leads to the file that this object writes.
  [[nodiscard]] bool is_in_place() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace commfuse
