// SPDX-License-Identifier: Apache-2.0
// Reports how well predictions of where overlap pays agree with tables that measured both overlapped kernels and serial
// communication.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "model/record/score.h"

namespace commfuse::reports {

/// Returns a summary for terminals; empty if no table has an overlapped kernel paired with serial communication.
std::string pays_table(std::span<const TableScore> scores);

/// Returns every pair with its times and, below it, the command that predicts it again; empty without pairs.
std::string pairs_table(std::span<const TableScore> scores);

/// Adds `overlap_pays` to the object of score_json: null without pairs. Its `balanced_accuracy` is null without wins or
/// without losses.
void add_pays(nlohmann::ordered_json& object, std::span<const TableScore> scores);

/// Returns a section of docs/accuracy.md, with a paragraph each for the tables of configs/published and for all others;
/// empty without pairs.
std::string pays_section(std::span<const TableScore> scores);

}  // namespace commfuse::reports
