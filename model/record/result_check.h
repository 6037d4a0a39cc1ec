// SPDX-License-Identifier: Apache-2.0
// Whether values that came from a file can be a row of results.
#pragma once

#include <span>
#include <string>

#include "model/record/result.h"

namespace commfuse {

/// Why row_of() cannot take these values, in the order of result_columns(), as a sentence without its end; empty where
/// it can: they have the types of their columns, names are known, times are below 2^53 ps and add up.
std::string misfit_of(std::span<const Value> values);

}  // namespace commfuse
