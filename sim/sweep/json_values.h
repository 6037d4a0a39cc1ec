// SPDX-License-Identifier: Apache-2.0
// Reads values of results from JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "model/record/result.h"
#include "model/record/step_row.h"

namespace commfuse {

/// Returns the value of a cell: nothing for null, and 0 or 1 for a flag, however the flag is written. Throws RowMisfit
/// for a value of another type.
Value value_in(std::string_view column, ColumnType type, const nlohmann::ordered_json& json);

/// Returns the row of a whole model: the members of an object that are columns of whole models, in the order of the
/// object. Throws RowMisfit where a value is of another type, and as require_fit() does. Requires `object` to be a JSON
/// object.
StepRow step_row_of(const nlohmann::ordered_json& object);

}  // namespace commfuse
