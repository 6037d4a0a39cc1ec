// SPDX-License-Identifier: Apache-2.0
// Scores predictions of where overlap pays, against tables that measured both overlapped kernels and serial
// communication.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "model/record/score.h"

namespace commfuse::reports {

/// Returns text for terminals; empty without pairs.
std::string pays_table(std::span<const TableScore> scores);

/// Returns every pair with its times and the command that predicts it again, in two lines; empty without pairs.
std::string pairs_table(std::span<const TableScore> scores);

/// Adds `overlap_pays` to the object of score_json: null without pairs.
void add_pays(nlohmann::ordered_json& object, std::span<const TableScore> scores);

/// Returns a section of docs/accuracy.md; empty without pairs.
std::string pays_section(std::span<const TableScore> scores);

}  // namespace commfuse::reports
