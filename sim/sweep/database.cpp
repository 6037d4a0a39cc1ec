// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

namespace commfuse {

namespace {

using Kind = DatabaseError::Kind;

Kind kind_of(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Kind::busy;
    case SQLITE_NOTADB: return Kind::foreign;
    case SQLITE_CORRUPT: return Kind::damaged;
    case SQLITE_FULL: return Kind::full;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return Kind::read_only;
    case SQLITE_CANTOPEN: return Kind::missing;
    case SQLITE_IOERR: return code == SQLITE_IOERR_WRITE ? Kind::full : Kind::other;
    case SQLITE_ERROR: return Kind::statement;
    case SQLITE_TOOBIG:
    case SQLITE_INTERRUPT: return Kind::endless;
    default: return Kind::other;
  }
}

std::string sentence_of(Kind kind, const std::string& path, int system_error, const std::string& words) {
  const std::string why = system_error == 0 ? words : std::strerror(system_error);
  switch (kind) {
    case Kind::busy:
      return fmt::format("{} is in use by another process; wait until it ends, or choose another folder", path);
    case Kind::foreign: return fmt::format("{} is not a commfuse result store; choose another file or folder", path);
    case Kind::damaged:
      return fmt::format("{} is damaged ({}); restore a copy, or remove the file and run the sweep again", path, words);
    case Kind::full:
      return fmt::format(
          "{} could not be written: {}; earlier results are kept; free some space and run the same command again", path,
          why);
    case Kind::read_only:
      return fmt::format("{} cannot be written ({}); choose a folder you may write to", path, words);
    case Kind::missing: return fmt::format("{} cannot be opened ({}); check the path", path, why);
    case Kind::statement: return words;
    case Kind::endless:
      return fmt::format("{} has a value larger than any that a sweep writes ({}); run the sweep again", path, words);
    case Kind::other: break;
  }
  return fmt::format("{}: {}; check its disk and run the same command again", path, why);
}

/// A reader may have to roll back what a killed writer left half done, so it also requests write access; on a
/// write-protected file SQLite falls back to reading.
int code_of(bool writes) { return SQLITE_OPEN_READWRITE | (writes ? SQLITE_OPEN_CREATE : 0); }

/// Length limit of a string or a row, in bytes. The largest values that a sweep writes, its settings and the causes of
/// a tail, take a few MB.
constexpr int longest_value = 1 << 26;

/// Opening would block if one of SQLite's auxiliary files were a pipe.
void require_regular(const std::filesystem::path& auxiliary_file) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::symlink_status(auxiliary_file, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw ConfigError(
        fmt::format("{} is not a regular file, so no sweep wrote it; remove it", auxiliary_file.string()));
  }
}

/// SQLite rolls back the journal beside a file. If that journal names a super-journal (of several databases), SQLite
/// removes the named file, whatever it is. A sweep's journals never name one, because nothing is attached.
void refuse_journal_of_several(const std::filesystem::path& path) {
  constexpr std::string_view ends = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";  // sqlite.org/fileformat: the rollback journal
  const std::filesystem::path journal = path.string() + "-journal";
  require_regular(journal);
  require_regular(path.string() + "-wal");
  std::ifstream in(journal, std::ios::binary | std::ios::ate);
  std::array<char, ends.size()> last{};
  if (in && in.tellg() >= static_cast<std::streamoff>(last.size())) {
    in.seekg(-static_cast<std::streamoff>(last.size()), std::ios::end);
    in.read(last.data(), last.size());
  }
  if (std::string_view(last.data(), last.size()) == ends) {
    throw ConfigError(
        fmt::format("{} belongs to several databases, so no sweep wrote it; remove it", journal.string()));
  }
}

/// A file may come from anyone, so statements in its schema must not run.
void distrust(sqlite3* connection) {
  int is_set = 0;
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, &is_set);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, &is_set);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, &is_set);
  // Text between double quotes is a name, never a value: a misspelt name is an error.
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DML, 0, &is_set);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DDL, 0, &is_set);
  sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, longest_value);
}

}  // namespace

void Database::Close::operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }

void Database::fail(int code) const {
  const Kind kind = kind_of(code);
  const bool is_system_error = kind == Kind::full || kind == Kind::missing || kind == Kind::other;
  const int system_error = is_system_error && connection_ ? sqlite3_system_errno(connection_.get()) : 0;
  const std::string words = connection_ ? sqlite3_errmsg(connection_.get()) : sqlite3_errstr(code);
  if (kind == Kind::foreign) {
    throw ForeignDatabase(sentence_of(kind, path_.string(), system_error, words));
  }
  if (kind == Kind::missing) {
    throw ConfigError(sentence_of(kind, path_.string(), system_error, words));
  }
  if (kind == Kind::damaged) {
    throw DamagedDatabase(sentence_of(kind, path_.string(), system_error, words));
  }
  throw DatabaseError(kind, sentence_of(kind, path_.string(), system_error, words));
}

void Database::open(const char* path, int code) {
  sqlite3* connection = nullptr;
  const int result = sqlite3_open_v2(path, &connection, code | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  connection_.reset(connection);
  if (result != SQLITE_OK) {
    fail(result);
  }
  distrust(connection_.get());
}

Database Database::in_memory(const std::filesystem::path& name) {
  Database database(name);
  database.open(":memory:", code_of(true));
  return database;
}

Database::Database(const std::filesystem::path& path, Access access) : path_(path) {
  std::error_code ignored;
  if (const auto status = std::filesystem::status(path, ignored);
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw ConfigError(fmt::format("{} is not a regular file; choose another file or folder", path.string()));
  }
  refuse_journal_of_several(path);
  open(path.c_str(), code_of(access == Access::write));
  sqlite3_busy_timeout(connection_.get(), access == Access::read ? 2000 : 0);
  if (access == Access::write) {
    // There is one writer, which keeps its lock. A rollback journal stays small, because rows are appended, and needs
    // no shared memory, which network disks lack.
    run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; PRAGMA synchronous = NORMAL;");
    run("PRAGMA cache_size = -16384");
  }
  if (access != Access::read) {
    run("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT");
  }
}

void Database::run(const std::string& sql) {
  const int code = sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) {
    fail(code);
  }
}

bool Database::is_in_place() const {
  int has_moved = 0;
  return sqlite3_file_control(connection_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &has_moved) == SQLITE_OK &&
         has_moved == 0;
}

void Database::allow_queries_only() const {
  const auto allowed = [](void*, int action, const char*, const char*, const char*, const char*) {
    const bool reads =
        action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION || action == SQLITE_RECURSIVE;
    return reads ? SQLITE_OK : SQLITE_DENY;
  };
  sqlite3_set_authorizer(connection_.get(), allowed, nullptr);
}

void Database::allow_steps(std::int64_t steps) const {
  constexpr int between_calls = 100'000;
  const auto has_used_up = [](void* left) {
    auto& steps_left = *static_cast<std::int64_t*>(left);
    steps_left -= between_calls;
    return steps_left < 0 ? 1 : 0;
  };
  *steps_left_ = steps;
  sqlite3_progress_handler(connection_.get(), between_calls, has_used_up, steps_left_.get());
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement::Statement(const Database& database, std::string_view sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int code =
      sqlite3_prepare_v2(database.connection_.get(), sql.data(), static_cast<int>(sql.size()), &statement, &rest);
  statement_.reset(statement);
  require(code);
  if (std::string_view(rest).find_first_not_of(" ;\n\t") != std::string_view::npos) {
    throw DatabaseError(DatabaseError::Kind::statement, "there is more than one statement");
  }
}

void Statement::require(int code) const {
  if (code != SQLITE_OK) {
    database_.fail(code);
  }
}

void Statement::bind(int parameter, std::int64_t value) {
  require(sqlite3_bind_int64(statement_.get(), parameter, value));
}
void Statement::bind(int parameter, double value) { require(sqlite3_bind_double(statement_.get(), parameter, value)); }
void Statement::bind(int parameter, std::string_view text) {
  require(sqlite3_bind_text(statement_.get(), parameter, text.data(), static_cast<int>(text.size()), SQLITE_STATIC));
}
void Statement::bind_nothing(int parameter) { require(sqlite3_bind_null(statement_.get(), parameter)); }

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) {
    database_.fail(code);
  }
  return code == SQLITE_ROW;
}

void Statement::finish() {
  while (step()) {
  }
  reset();
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

int Statement::columns() const { return sqlite3_column_count(statement_.get()); }
std::string Statement::name(int column) const { return sqlite3_column_name(statement_.get(), column); }

// A connection is used by one thread at a time, so its values need no mutex ("unprotected" ones in SQLite's manual).
Statement::Cell Statement::cell(int column) const { return Cell(sqlite3_column_value(statement_.get(), column)); }

Statement::Type Statement::Cell::type() const {
  switch (sqlite3_value_type(value_)) {
    case SQLITE_INTEGER: return Type::whole;
    case SQLITE_FLOAT: return Type::number;
    case SQLITE_NULL: return Type::nothing;
    default: return Type::text;
  }
}

std::int64_t Statement::Cell::whole() const { return sqlite3_value_int64(value_); }
double Statement::Cell::number() const { return sqlite3_value_double(value_); }
std::string_view Statement::Cell::text() const {
  // NOLINTNEXTLINE(*-reinterpret-cast): SQLite's characters are unsigned
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value_));
  return text == nullptr ? std::string_view{}
                         : std::string_view(text, static_cast<std::size_t>(sqlite3_value_bytes(value_)));
}

Statement::Type Statement::type(int column) const { return cell(column).type(); }
std::int64_t Statement::whole(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::number(int column) const { return sqlite3_column_double(statement_.get(), column); }
std::string_view Statement::text(int column) const { return cell(column).text(); }

}  // namespace commfuse
