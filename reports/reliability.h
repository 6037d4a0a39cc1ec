// SPDX-License-Identifier: Apache-2.0
// Reliability of stated errors: coverage of intervals, win probabilities, and public distributions. Tables of degraded
// machines are excluded.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "model/record/score.h"

namespace commfuse::reports {

/// Returns text for terminals, at most 80 columns wide, with the summary of pays_table(); empty if nothing was checked.
std::string reliability_table(std::span<const TableScore> scores);

/// Adds `coverage`, `win_probabilities` and `observations` to the object of score_json; shares are fractions.
void add_reliability(nlohmann::ordered_json& object, std::span<const TableScore> scores);

/// Returns sections of docs/accuracy.md.
std::string reliability_section(std::span<const TableScore> scores);

}  // namespace commfuse::reports
