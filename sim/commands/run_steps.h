// SPDX-License-Identifier: Apache-2.0
// commfuse-sim run and sweep with --scope step|prefill|decode: whole models.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/step_row.h"
#include "reports/comparison.h"
#include "sim/commands/answer.h"
#include "sim/point/point_list.h"
#include "sim/point/request.h"
#include "sim/step/measured_step.h"

namespace commfuse::sim {

using StepRender = std::string (*)(std::span<const StepRow>, const VerdictRule&, const reports::ModelWords&);
/// Returns the function that renders a format of -o. Throws ConfigError for an unknown format.
StepRender step_renderer(std::string_view format);
/// Returns every warning of the rows once, each on lines of its own for stderr, except those of implementations, which
/// the table states, and those about memory, which the first line of the output states.
std::string warnings_once(std::span<const StepRow> rows);

/// Returns the number of parameters, in words, of each model of the points.
reports::ModelWords models_in_words(const std::vector<Settings>& points, const Library& library);
reports::ModelWords models_in_words(const PointList& points, const Library& library);

/// Returns one row for each point and strategy. Throws ConfigError for an inconsistent plan, for an implementation that
/// runs no GEMM of a point, for points that mix whole models with layers, and for an unknown format. Too little memory
/// is a result, not an error. If `evidence` is given, it corrects the rows, and a sentence before the table states
/// this.
Answer run_steps(const std::vector<Settings>& points, const Library& library, std::string_view format, Caller& caller,
                 std::optional<StepEvidence> evidence = std::nullopt);

}  // namespace commfuse::sim
