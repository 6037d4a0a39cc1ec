// SPDX-License-Identifier: Apache-2.0
// SQLite, as far as the result store needs it. Nothing else knows that library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "model/config_error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace commfuse {

/// What SQLite refused, as a sentence with the remedy.
class DatabaseError : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    busy,       ///< another process has it
    foreign,    ///< no database at all; thrown as ForeignDatabase
    damaged,    ///< thrown as DamagedDatabase
    full,       ///< the disk, or a limit of it
    read_only,  ///< not ours to write to
    missing,    ///< thrown as ConfigError
    statement,  ///< the SQL is wrong: what() is SQLite's own words
    endless,    ///< it asks for more than a value may hold, or more steps than allow_steps() allowed
    other
  };
  DatabaseError(Kind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}
  [[nodiscard]] Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// A file that is no database at all.
class ForeignDatabase : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// A file that is not what was written to it: as wrong an input as one that is no database.
class DamagedDatabase : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// One connection. Used by one thread at a time. All calls throw DatabaseError, DamagedDatabase, or ConfigError for
/// what is not there or no database. Triggers never run, and no value is
/// longer than 64 MiB, whoever made the file.
class Database {
 public:
  enum class Access : std::uint8_t {
    read,   ///< beside other readers
    write,  ///< alone: makes the file where there is none; nobody else reads or writes it until this is gone
    take,   ///< alone as well, of a file that is there, and leaves it as it is
  };
  Database(const std::filesystem::path& path, Access access);
  /// Empty, and gone with this; `name` is what messages call it.
  static Database in_memory(const std::filesystem::path& name);

  /// One statement or several, without results.
  void run(const std::string& sql);
  /// From here on nothing can be changed and no other file opened, whatever a statement says.
  void allow_queries_only() const;
  /// From here on statements take about so many steps of SQLite's machine together, some 10 ns each, and then fail.
  void allow_steps(std::int64_t steps) const;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Whether the path still leads to the file that was opened.
  [[nodiscard]] bool is_in_place() const;

 private:
  friend class Statement;
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  explicit Database(std::filesystem::path name) : path_(std::move(name)) {}
  void open(const char* path, int code);
  [[noreturn]] void fail(int code) const;

  std::filesystem::path path_;
  // Where the connection, which goes first, finds it.
  std::unique_ptr<std::int64_t> steps_left_ = std::make_unique<std::int64_t>(0);
  std::unique_ptr<sqlite3, Close> connection_;
};

/// One statement of SQL, with places for values. The database outlives it.
class Statement {
 public:
  Statement(const Database& database, std::string_view sql);

  /// Parameters count from 1. Texts must stay until the next reset().
  void bind(int parameter, std::int64_t value);
  void bind(int parameter, double value);
  void bind(int parameter, std::string_view text);
  void bind_nothing(int parameter);

  /// Whether there is a row.
  bool step();
  /// Runs it to its end and makes it ready for other values.
  void finish();
  void reset();

  /// Columns count from 0.
  [[nodiscard]] int columns() const;
  [[nodiscard]] std::string name(int column) const;
  enum class Type : std::uint8_t { nothing, whole, number, text };
  [[nodiscard]] Type type(int column) const;
  [[nodiscard]] std::int64_t whole(int column) const;
  [[nodiscard]] double number(int column) const;
  [[nodiscard]] std::string_view text(int column) const;  ///< until the next step

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void require(int code) const;

  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace commfuse
