// SPDX-License-Identifier: Apache-2.0
// The tables of a result store, version by version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/sweep/database.h"
#include "sim/sweep/store_row.h"

namespace commfuse {

/// SQLite's application_id of our files: "cfus".
inline constexpr std::int64_t store_application = 0x63667573;

/// Brings tables of a version, 0 of an empty file, up to store_version. Inside a transaction.
void migrate(Database& database, StoreKind kind, int version);

/// Of which kind of store its tables and views are: just those that migrate() writes for the version, word for word.
/// Nothing where there is another table, view, index or trigger, or one is missing. Reads nothing but the schema.
std::optional<StoreKind> kind_of_tables(const Database& database, int version);

/// INSERT of one row: its number, its checksum, then store_columns().
std::string insertion_of(StoreKind kind);

}  // namespace commfuse
