// SPDX-License-Identifier: Apache-2.0
// How honest stated errors were: coverage of intervals, reliability of win probabilities, and public distributions.
// Tables of degraded machines do not count.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "model/record/score.h"

namespace commfuse::reports {

/// For terminals, 80 columns at most; empty where nothing was checked.
std::string reliability_table(std::span<const TableScore> scores);

/// Adds `coverage`, `win_probabilities` and `observations` to the object of score_json; shares are fractions.
void add_reliability(nlohmann::ordered_json& object, std::span<const TableScore> scores);

/// Sections of docs/accuracy.md.
std::string reliability_section(std::span<const TableScore> scores);

}  // namespace commfuse::reports
