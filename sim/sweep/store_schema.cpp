// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/sweep/result_store.h"
#include "sim/sweep/row_check.h"

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

/// Returns SQL for the text of a word column, for people who query a store with SQL.
std::string word_in_view(std::string_view column) {
  return fmt::format("(SELECT text FROM texts WHERE texts.id = rows.\"{0}\") AS \"{0}\"", column);
}

std::string view_of(const std::vector<HeldColumn>& columns) {
  std::string sql = "CREATE VIEW results AS SELECT id / 4096 AS point, id % 4096 AS place";
  for (const HeldColumn& column : columns) {
    sql += column.type == StoreType::word ? ", " + word_in_view(column.name) : fmt::format(", \"{}\"", column.name);
  }
  return sql + " FROM rows";
}

constexpr std::string_view rows_begin = "CREATE TABLE rows(id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL";

std::string rows_of(const std::vector<HeldColumn>& columns) {
  std::string rows(rows_begin);
  for (const HeldColumn& column : columns) {
    rows += fmt::format(", \"{}\" {}", column.name, sql_type(column.type));
  }
  return rows + ")";
}

/// A table or a view, as in sqlite_master.
struct SchemaObject {
  std::string_view type;
  std::string_view name;
  std::string sql;
};

/// Version 1: the identity of a store, its rows, and the strings that they reference by number.
std::vector<SchemaObject> tables(const std::vector<HeldColumn>& columns) {
  return {{"table", "meta", "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"},
          {"table", "texts", "CREATE TABLE texts(id INTEGER PRIMARY KEY, text TEXT NOT NULL)"},
          {"table", "rows", rows_of(columns)},
          {"view", "results", view_of(columns)}};
}

/// Version 2: the times at which the store was written, for people to read.
std::vector<SchemaObject> sessions(const std::vector<HeldColumn>& /*columns*/) {
  return {{"table", "sessions",
           "CREATE TABLE sessions(id INTEGER PRIMARY KEY, started INTEGER NOT NULL, points INTEGER NOT NULL,"
           " seconds REAL)"}};
}

constexpr std::array migrations{tables, sessions};
static_assert(migrations.size() == store_version);

/// Returns all tables and views of a store of this version.
std::vector<SchemaObject> objects_of(const std::vector<HeldColumn>& columns, int version) {
  std::vector<SchemaObject> objects;
  for (std::size_t step = 0; step < static_cast<std::size_t>(version); ++step) {
    for (SchemaObject& object : migrations[step](columns)) {
      objects.push_back(std::move(object));
    }
  }
  return objects;
}

bool has_exactly(const Database& database, const std::vector<SchemaObject>& objects) {
  Statement entries(database, "SELECT type, name, tbl_name, sql FROM sqlite_master");
  std::size_t matches = 0;
  while (entries.step()) {
    const bool is_ours = std::any_of(objects.begin(), objects.end(), [&](const SchemaObject& object) {
      return entries.text(0) == object.type && entries.text(1) == object.name && entries.text(2) == object.name &&
             entries.text(3) == object.sql;
    });
    if (!is_ours) {
      return false;
    }
    ++matches;
  }
  return matches == objects.size();  // no name occurs twice
}

std::string sql_of(const Database& database, std::string_view name) {
  Statement entry(database, "SELECT sql FROM sqlite_master WHERE name = ?");
  entry.bind(1, name);
  return entry.step() ? std::string(entry.text(0)) : std::string();
}

constexpr std::size_t max_columns = 1000;

/// Returns the columns of `rows`: `, "name" TYPE` repeated. has_exactly() checks the rest of the text.
std::vector<HeldColumn> columns_in(std::string_view rows, std::string_view view) {
  std::vector<HeldColumn> columns;
  if (!rows.starts_with(rows_begin)) {
    return columns;
  }
  rows.remove_prefix(rows_begin.size());
  while (rows.starts_with(", \"") && columns.size() < max_columns) {
    rows.remove_prefix(3);
    const std::string name(rows.substr(0, rows.find('"')));
    rows.remove_prefix(std::min(rows.size(), name.size() + 2));
    if (!may_name_column(name)) {
      return {};
    }
    const std::string_view type = rows.substr(0, rows.find_first_of(",)"));
    rows.remove_prefix(type.size());
    const bool is_word = view.find(word_in_view(name)) != std::string_view::npos;
    columns.push_back({name, type == "TEXT"   ? StoreType::text
                             : type == "REAL" ? StoreType::number
                             : is_word        ? StoreType::word
                                              : StoreType::count});
  }
  return columns;
}

/// Columns that every version of the program writes.
constexpr std::array<std::string_view, 5> columns_of_layers{"model", "hardware", "strategy", "reason", "makespan_us"};

bool has(const std::vector<HeldColumn>& columns, std::string_view name) {
  return std::any_of(columns.begin(), columns.end(), [&](const HeldColumn& column) { return column.name == name; });
}

}  // namespace

std::vector<HeldColumn> own_columns(StoreKind kind) {
  std::vector<HeldColumn> columns;
  for (const StoreColumn& column : store_columns(kind)) {
    columns.push_back({std::string(column.name), column.type});
  }
  return columns;
}

void migrate(Database& database, const std::vector<HeldColumn>& columns, int version) {
  for (auto step = static_cast<std::size_t>(version); step < migrations.size(); ++step) {
    for (const SchemaObject& object : migrations[step](columns)) {
      database.run(object.sql);
    }
  }
  if (version < store_version) {
    database.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", store_application, store_version));
  }
}

std::optional<StoreTables> tables_in(const Database& database, int version) {
  StoreTables tables{.columns = columns_in(sql_of(database, "rows"), sql_of(database, "results"))};
  if (!has_exactly(database, objects_of(tables.columns, version))) {
    return std::nullopt;
  }
  if (tables.columns == own_columns(StoreKind::models)) {
    tables.kind = StoreKind::models;
    return tables;
  }
  const auto is_there = [&](std::string_view name) { return has(tables.columns, name); };
  return std::all_of(columns_of_layers.begin(), columns_of_layers.end(), is_there) ? std::optional(tables)
                                                                                   : std::nullopt;
}

std::string insertion_of(StoreKind kind) {
  std::string names = "id, checksum";
  std::string placeholders = "?, ?";
  for (const StoreColumn& column : store_columns(kind)) {
    names += fmt::format(", \"{}\"", column.name);
    placeholders += ", ?";
  }
  return fmt::format("INSERT INTO rows({}) VALUES({})", names, placeholders);
}

}  // namespace commfuse
