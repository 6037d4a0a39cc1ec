// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

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

/// A table or a view, as SQLite's own list of them has it.
struct Made {
  std::string_view type;
  std::string_view name;
  std::string sql;
};

/// Version 1: what a store is of, its rows, and the texts they name by number.
std::vector<Made> tables(StoreKind kind) {
  std::string rows = "CREATE TABLE rows(id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL";
  for (const StoreColumn& column : store_columns(kind)) {
    rows += fmt::format(", \"{}\" {}", column.name, sql_type(column.type));
  }
  return {{"table", "meta", "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"},
          {"table", "texts", "CREATE TABLE texts(id INTEGER PRIMARY KEY, text TEXT NOT NULL)"},
          {"table", "rows", rows + ")"},
          {"view", "results", view_of(kind)}};
}

/// Version 2: when it was worked on, for people.
std::vector<Made> sessions(StoreKind /*kind*/) {
  return {{"table", "sessions",
           "CREATE TABLE sessions(id INTEGER PRIMARY KEY, started INTEGER NOT NULL, points INTEGER NOT NULL,"
           " seconds REAL)"}};
}

constexpr std::array steps{tables, sessions};
static_assert(steps.size() == store_version);

/// What a store of a version has in all.
std::vector<Made> made_by(StoreKind kind, int version) {
  std::vector<Made> made;
  for (std::size_t step = 0; step < static_cast<std::size_t>(version); ++step) {
    for (Made& one : steps[step](kind)) {
      made.push_back(std::move(one));
    }
  }
  return made;
}

bool has_just(const Database& database, const std::vector<Made>& made) {
  Statement entries(database, "SELECT type, name, tbl_name, sql FROM sqlite_master");
  std::size_t found = 0;
  while (entries.step()) {
    const bool is_ours = std::any_of(made.begin(), made.end(), [&](const Made& one) {
      return entries.text(0) == one.type && entries.text(1) == one.name && entries.text(2) == one.name &&
             entries.text(3) == one.sql;
    });
    if (!is_ours) {
      return false;
    }
    ++found;
  }
  return found == made.size();  // No name is there twice.
}

}  // namespace

void migrate(Database& database, StoreKind kind, int version) {
  for (auto step = static_cast<std::size_t>(version); step < steps.size(); ++step) {
    for (const Made& one : steps[step](kind)) {
      database.run(one.sql);
    }
  }
  if (version < store_version) {
    database.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", store_application, store_version));
  }
}

std::optional<StoreKind> kind_of_tables(const Database& database, int version) {
  for (const StoreKind kind : {StoreKind::layers, StoreKind::models}) {
    if (has_just(database, made_by(kind, version))) {
      return kind;
    }
  }
  return std::nullopt;
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
