// SPDX-License-Identifier: Apache-2.0
// The one table of columns of results (result_schema): rows of layers and rows of whole models have those that apply.
#pragma once

#include <span>
#include <string_view>

#include "model/record/result.h"

namespace commfuse {

struct Column {
  std::string_view name;  ///< Unit last: "time_ms".
  std::string_view doc;   ///< One line.
  ColumnType type = ColumnType::text;
  ColumnRole role = ColumnRole::outcome;
  bool is_asked = false;  ///< Tells points, or runs of one point, apart.
  bool of_layers = false;
  bool of_models = false;
};

/// What was asked, the strategy, what came out. Those of layers stand in the order of result_columns(), those of whole
/// models in the order of their rows.
std::span<const Column> all_columns();
/// Null where there is none of that name.
const Column* find_column(std::string_view name);

}  // namespace commfuse
