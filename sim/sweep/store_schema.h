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

/// SQLite's application_id of a store's file: "cfus".
inline constexpr std::int64_t store_application = 0x63667573;

/// Returns the columns that this program writes.
std::vector<HeldColumn> own_columns(StoreKind kind);

/// Upgrades tables from `version` (0: an empty file) to store_version. A new table of rows gets `columns`. Requires an
/// open transaction.
void migrate(Database& database, const std::vector<HeldColumn>& columns, int version);

struct StoreTables {
  StoreKind kind = StoreKind::layers;
  std::vector<HeldColumn> columns;  ///< In the order of the file; other program versions have more or fewer.
};

/// Returns the kind of a store and the columns of its rows. Except for these columns, the store's tables and views must
/// equal, word for word, what migrate() makes for the version. Returns nothing if the file has another table, view,
/// index or trigger, or lacks a table, a view or a column that every version has. Reads only the schema.
std::optional<StoreTables> tables_in(const Database& database, int version);

/// Returns the INSERT of one row: its number, its checksum, then own_columns().
std::string insertion_of(StoreKind kind);

}  // namespace commfuse
