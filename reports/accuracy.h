// SPDX-License-Identifier: Apache-2.0
// Writes docs/accuracy.md, except for its last two sections (engine_agreement.h, sim/commands/verdict_score_text.h):
// errors of the model, compared with goals and with errors that other tools publish.
#pragma once

#include <span>
#include <string>

#include "model/record/score.h"

namespace commfuse::reports {

/// Returns, in Markdown, all sections except the last two. The lines of one table do not depend on which other tables
/// are scored.
std::string accuracy_page(std::span<const TableScore> scores);

}  // namespace commfuse::reports
