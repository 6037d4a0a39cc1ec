// SPDX-License-Identifier: Apache-2.0
// Writes docs/accuracy.md, except for its last two sections (engine_agreement.h, sim/commands/verdict_score_text.h):
// errors of the model, next to its goals and to errors that others publish.
#pragma once

#include <span>
#include <string>

#include "model/record/score.h"

namespace commfuse::reports {

/// Returns these sections in Markdown. The lines of one table do not depend on which other tables are scored.
std::string accuracy_page(std::span<const TableScore> scores);

}  // namespace commfuse::reports
