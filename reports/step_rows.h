// SPDX-License-Identifier: Apache-2.0
// Rows of whole models as text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/record/step_row.h"
#include "reports/comparison.h"

namespace commfuse::reports {

/// A block a plan: time, how sure it is, tokens a second and use of the GPUs; below the verdict, of training where the
/// time goes, and memory. Of several plans last the one to take. Strategies of one plan stand in one block, wherever
/// they are among the rows.
std::string step_table(std::span<const StepRow> rows, const VerdictRule& rule = {}, const ModelWords& words = {});

/// That some rows do not fit the memory (LargestNeed::sentence); empty where all fit. The table begins with it.
std::string memory_sentence(std::span<const StepRow> rows);

/// Runs of rows that differ in their strategy alone, in the order in which they first come.
std::vector<std::vector<const StepRow*>> plans_of(std::span<const StepRow> rows);

/// Who wins among the strategies of one plan, or which of them tie, in one sentence; empty of fewer than two results.
std::string step_verdict(std::span<const StepRow> rows, const VerdictRule& rule = {});

std::string to_json(std::span<const StepRow> rows);
std::string to_json_lines(std::span<const StepRow> rows);
/// One header for all; a row leaves open what it does not have.
std::string to_csv(std::span<const StepRow> rows);

}  // namespace commfuse::reports
