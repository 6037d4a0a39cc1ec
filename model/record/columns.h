// SPDX-License-Identifier: Apache-2.0
// The one table of columns of results (result_schema). Rows of layers and rows of whole models have the columns that
// apply to them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/record/result.h"

namespace commfuse {

/// Form in which texts about a plan of a whole model state the value of a column.
enum class PlanWords : std::uint8_t {
  setting,  ///< by itself: "recompute full"
  machine,  ///< in the words of the machine: "h100-sxm, links x2"
  layout,   ///< in the words of the layout: "8 GPUs (2 tensor x 4 pipeline)"
  nothing,  ///< not at all: it is not a setting, or the name of the schedule implies it
};

struct Column {
  std::string_view name;  ///< ends with the unit: "time_ms"
  std::string_view doc;   ///< description, one line
  ColumnType type = ColumnType::text;
  ColumnRole role = ColumnRole::outcome;
  bool is_asked = false;  ///< True for a setting that distinguishes points (seq) or runs of one point (jitter).
  bool of_layers = false;
  bool of_models = false;
  PlanWords plan_words = PlanWords::nothing;
};

/// Returns all columns: settings, the strategy, results. Columns of layers are in the order of result_columns(); the
/// columns that only whole models have are in the order of their rows.
std::span<const Column> all_columns();
/// Returns the column, or null if no column has that name.
const Column* find_column(std::string_view name);

}  // namespace commfuse
