// SPDX-License-Identifier: Apache-2.0
// Holds rows of JSON in the tables of a store, in memory, so that they can be queried like a store.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/sweep/database.h"
#include "sim/sweep/store_schema.h"

namespace commfuse {

struct RowsInMemory {
  Database database;
  std::vector<HeldColumn> table_columns;  ///< Columns of the table in memory: all_columns().
  /// Names of the columns to show: all columns of layers if the file has layers, and every other column in which some
  /// row has a value.
  std::vector<std::string> shown_columns;
  bool has_layers = false;
  bool has_models = false;
};

/// Throws as rows_of_json_file() does.
RowsInMemory rows_in_memory(const std::filesystem::path& file);

}  // namespace commfuse
