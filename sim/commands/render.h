// SPDX-License-Identifier: Apache-2.0
// Renders results in the format that -o names.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/analysis/verdict.h"
#include "model/record/result.h"
#include "reports/comparison.h"

namespace CLI {
class App;
}

namespace commfuse::sim {

using Render = std::string (*)(std::span<const ResultRow>, const VerdictRule&, const reports::ModelWords&);

/// Returns whether the format is for programs. In such a format, nothing may follow the rows.
bool is_for_programs(std::string_view format);

void add_output_flag(CLI::App& command, std::string& format);

/// Lists why rows could not be run. `reasons` has one reason for each such row; the text has each reason once, with its
/// count, in order of first appearance. Empty without reasons.
std::string infeasible_in_words(std::span<const std::string> reasons);

/// Returns the function that renders a format. Throws ConfigError for an unknown format.
Render renderer(std::string_view format);

}  // namespace commfuse::sim
