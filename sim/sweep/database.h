// SPDX-License-Identifier: Apache-2.0
// The part of SQLite that result stores and profiles need. No other file uses SQLite directly.
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
struct sqlite3_value;

namespace commfuse {

/// An error of SQLite. The message is a sentence with the remedy, except for Kind::statement.
class DatabaseError : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    busy,       ///< another process has the file open
    foreign,    ///< not a database; thrown as ForeignDatabase
    damaged,    ///< thrown as DamagedDatabase
    full,       ///< the disk is full, or a quota is used up
    read_only,  ///< no permission to write
    missing,    ///< thrown as ConfigError
    statement,  ///< the SQL is wrong: what() is SQLite's own message
    endless,    ///< a value would be too long, or a statement exceeds the steps of allow_steps()
    other
  };
  DatabaseError(Kind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}
  [[nodiscard]] Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// A file that is not a database.
class ForeignDatabase : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// A file whose contents are not what was written: wrong input, like a file that is not a database.
class DamagedDatabase : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// One connection, used by one thread at a time. All calls may throw DatabaseError, DamagedDatabase, or ConfigError for
/// a file that is missing or not a database. Triggers never run, and no value is longer than 64 MiB, whatever the file
/// contains.
class Database {
 public:
  enum class Access : std::uint8_t {
    read,   ///< together with other readers
    write,  ///< exclusively: creates a missing file; other processes cannot read or write it while this object exists
    take,   ///< exclusively like `write`, but requires an existing file, which opening does not change
  };
  Database(const std::filesystem::path& path, Access access);
  /// Returns an empty database that is deleted with the returned object; `name` is the database's name in messages.
  static Database in_memory(const std::filesystem::path& name);

  /// Runs one statement or several, without results.
  void run(const std::string& sql);
  /// After this call no statement can change anything or open another file.
  void allow_queries_only() const;
  /// After this call all statements together may take about this many steps of SQLite's virtual machine, some 10 ns
  /// each; then they fail.
  void allow_steps(std::int64_t steps) const;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Returns whether the path still leads to the file that was opened.
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
  // Declared before the connection, which uses this counter until it is closed.
  std::unique_ptr<std::int64_t> steps_left_ = std::make_unique<std::int64_t>(0);
  std::unique_ptr<sqlite3, Close> connection_;
};

/// One SQL statement with parameters. The database must outlive it.
class Statement {
 public:
  Statement(const Database& database, std::string_view sql);

  /// Binds a parameter, counted from 1. Texts must live until the next reset().
  void bind(int parameter, std::int64_t value);
  void bind(int parameter, double value);
  void bind(int parameter, std::string_view text);
  void bind_nothing(int parameter);

  /// Returns whether there is a row.
  bool step();
  /// Runs the statement to its end and prepares it for other values.
  void finish();
  void reset();

  /// Columns are numbered from 0.
  [[nodiscard]] int columns() const;
  [[nodiscard]] std::string name(int column) const;
  enum class Type : std::uint8_t { nothing, whole, number, text };
  /// A value of the current row, valid until the next step. SQLite looks up the column once for its type and contents.
  class Cell {
   public:
    explicit Cell(sqlite3_value* value) : value_(value) {}
    [[nodiscard]] Type type() const;
    [[nodiscard]] std::int64_t whole() const;
    [[nodiscard]] double number() const;
    [[nodiscard]] std::string_view text() const;

   private:
    sqlite3_value* value_;
  };
  [[nodiscard]] Cell cell(int column) const;
  [[nodiscard]] Type type(int column) const;
  [[nodiscard]] std::int64_t whole(int column) const;
  [[nodiscard]] double number(int column) const;
  [[nodiscard]] std::string_view text(int column) const;  ///< valid until the next step

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void require(int code) const;

  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace commfuse
