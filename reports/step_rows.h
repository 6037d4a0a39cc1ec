// SPDX-License-Identifier: Apache-2.0
// Formats rows of whole models as text.
#pragma once

#include <span>
#include <string>

#include "model/analysis/verdict.h"
#include "model/record/step_row.h"
#include "model/terminal_style.h"
#include "reports/comparison.h"

namespace commfuse::reports {

/// Returns a block for each plan: time and its error, tokens per second and use of the GPUs; below these the verdict,
/// the parts of the time, percentiles and costs where rows have them, and memory. With several plans, the recommended
/// plan follows. Strategies of one plan form one block, wherever they are among the rows. With style, the winner is
/// bold.
std::string step_table(std::span<const StepRow> rows, const VerdictRule& rule = {}, const ModelWords& words = {},
                       TerminalStyle style = stdout_style());

/// Returns the sentence that states that some rows do not fit in memory (LargestNeed::sentence); empty if all rows fit.
/// step_table() begins with this sentence.
std::string memory_sentence(std::span<const StepRow> rows);

/// Returns the name of a row's schedules in tables: "serial", or "commfuse (ideal)" for a bound next to
/// implementations.
std::string label(const StepRow& row);

/// Returns the winner among the strategies of one plan, or the strategies that tie; with implementations, whether
/// overlap pays. Empty for fewer than two results.
std::string step_verdict(std::span<const StepRow> rows, const VerdictRule& rule = {});

/// Returns memory_sentence(), the verdict of every plan, one paragraph each, and the best plan; at most 80 columns
/// wide.
std::string step_verdicts(std::span<const StepRow> rows, const VerdictRule& rule = {});

std::string to_json(std::span<const StepRow> rows);
std::string to_json_lines(std::span<const StepRow> rows);
/// Writes one header for all rows; cells that a row does not have are empty.
std::string to_csv(std::span<const StepRow> rows);

}  // namespace commfuse::reports
