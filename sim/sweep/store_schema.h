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

/// The columns that this program writes.
std::vector<HeldColumn> own_columns(StoreKind kind);

/// Brings tables of a version, 0 of an empty file, up to store_version. Requires a transaction. New tables have these
/// columns.
void migrate(Database& database, const std::vector<HeldColumn>& columns, int version);

struct StoreTables {
  StoreKind kind = StoreKind::layers;
  std::vector<HeldColumn> columns;  ///< In the order of the file: other versions of the program have more or fewer.
};

/// What the tables and views of a store hold. Except for the columns of its rows they are those that migrate() writes
/// for the version, word for word. Nothing where there is another table, view, index or trigger, where one is missing,
/// or where a column that every version has is missing. Reads nothing but the schema.
std::optional<StoreTables> tables_in(const Database& database, int version);

/// INSERT of one row: its number, its checksum, then own_columns().
std::string insertion_of(StoreKind kind);

}  // namespace commfuse
