// SPDX-License-Identifier: Apache-2.0
// Reads values of results from JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "model/record/result.h"
#include "model/record/step_row.h"

namespace commfuse {

/// Returns nothing for null; a flag is 0 or 1, however it is written. Throws RowMisfit for a value of another type.
Value value_in(std::string_view column, ColumnType type, const nlohmann::ordered_json& json);

/// Returns the row of a whole model: the members of an object that are columns of whole models, in their order. Throws
/// RowMisfit where a value is of another type, and as require_fit() does. Requires an object.
StepRow step_row_of(const nlohmann::ordered_json& object);

}  // namespace commfuse
