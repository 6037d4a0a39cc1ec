// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store_schema.h"

#include <fmt/format.h>

#include <array>

#include "sim/sweep/result_store.h"

namespace commfuse {

namespace {

std::string_view sql_type(StoreType type) {
  switch (type) {
    case StoreType::word:
    case StoreType::count: return "INTEGER";
    case StoreType::number: return "REAL";
    case StoreType::text: return "TEXT";
  }
  return "";
}

/// What people ask: texts in place of their numbers.
std::string view_of(StoreKind kind) {
  std::string sql = "CREATE VIEW results AS SELECT id / 4096 AS point, id % 4096 AS place";
  for (const StoreColumn& column : store_columns(kind)) {
    sql += column.type == StoreType::word
               ? fmt::format(", (SELECT text FROM texts WHERE texts.id = rows.\"{0}\") AS \"{0}\"", column.name)
               : fmt::format(", \"{}\"", column.name);
  }
  return sql + " FROM rows";
}

/// Version 1: what a store is of, its rows, and the texts they name by number.
std::string tables(StoreKind kind) {
  std::string rows = "CREATE TABLE rows(id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL";
  for (const StoreColumn& column : store_columns(kind)) {
    rows += fmt::format(", \"{}\" {}", column.name, sql_type(column.type));
  }
  return "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
         "CREATE TABLE texts(id INTEGER PRIMARY KEY, text TEXT NOT NULL);" +
         rows + ");" + view_of(kind);
}

/// Version 2: when it was worked on, for people.
std::string sessions(StoreKind /*kind*/) {
  return "CREATE TABLE sessions(id INTEGER PRIMARY KEY, started INTEGER NOT NULL, points INTEGER NOT NULL,"
         " seconds REAL)";
}

constexpr std::array steps{tables, sessions};
static_assert(steps.size() == store_version);

}  // namespace

void migrate(Database& database, StoreKind kind, int version) {
  for (auto step = static_cast<std::size_t>(version); step < steps.size(); ++step) {
    database.run(steps[step](kind));
  }
  if (version < store_version) {
    database.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", store_application, store_version));
  }
}

std::string insertion_of(StoreKind kind) {
  std::string names = "id, checksum";
  std::string places = "?, ?";
  for (const StoreColumn& column : store_columns(kind)) {
    names += fmt::format(", \"{}\"", column.name);
    places += ", ?";
  }
  return fmt::format("INSERT INTO rows({}) VALUES({})", names, places);
}

}  // namespace commfuse
