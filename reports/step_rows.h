// SPDX-License-Identifier: Apache-2.0
// Rows of whole models as text.
#pragma once

#include <span>
#include <string>

#include "model/record/step_row.h"

namespace commfuse::reports {

/// A block a plan: time, tokens a second, use of the GPUs and, of training, where the time goes; memory below.
/// Of several plans last the one to take.
std::string step_table(std::span<const StepRow> rows);

std::string to_json(std::span<const StepRow> rows);
std::string to_json_lines(std::span<const StepRow> rows);
/// One header for all; a row leaves open what it does not have.
std::string to_csv(std::span<const StepRow> rows);

}  // namespace commfuse::reports
