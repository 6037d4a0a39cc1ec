// SPDX-License-Identifier: Apache-2.0
// Writes the score of verdicts as a table, as JSON and for docs/accuracy.md.
#pragma once

#include <string>

#include "sim/expect/verdict_score.h"

namespace commfuse::sim {

std::string verdict_score_table(const expect::VerdictScore& score);
std::string verdict_score_json(const expect::VerdictScore& score);
/// Returns the section "Verdicts" of docs/accuracy.md.
std::string verdict_score_section(const expect::VerdictScore& score);

}  // namespace commfuse::sim
