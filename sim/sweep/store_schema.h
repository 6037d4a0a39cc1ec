// SPDX-License-Identifier: Apache-2.0
// The tables of a result store, version by version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/database.h"
#include "sim/sweep/store_row.h"

namespace commfuse {

/// SQLite's application_id of our files: "cfus".
inline constexpr std::int64_t store_application = 0x63667573;

/// Returns the columns that this program writes.
std::vector<HeldColumn> own_columns(StoreKind kind);

/// Upgrades tables from a version, 0 for an empty file, to store_version. Requires a transaction. New tables have these
/// columns.
void migrate(Database& database, const std::vector<HeldColumn>& columns, int version);

struct StoreTables {
  StoreKind kind = StoreKind::layers;
  std::vector<HeldColumn> columns;  ///< In the order of the file: other versions of the program have more or fewer.
};

/// Returns the tables and views of a store. Except for the columns of its rows they must be those that migrate() makes
/// for the version, word for word. Returns nothing if there is another table, view, index or trigger, where one is
/// missing, or where a column that every version has is missing. Reads only the schema.
std::optional<StoreTables> tables_in(const Database& database, int version);

/// Returns the INSERT of one row: its number, its checksum, then own_columns().
std::string insertion_of(StoreKind kind);

}  // namespace commfuse
