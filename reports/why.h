// SPDX-License-Identifier: Apache-2.0
// The explanation of one prediction, as text and as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "model/record/explanation.h"

namespace commfuse::reports {

/// Returns text at most 80 columns wide, with the first `max_shown` parameters by sensitivity.
std::string why_text(const Explanation& explanation, std::size_t max_shown);

/// Returns {"schema": "commfuse.why/1", "result": {...}, "verdict": "...", "ops": [...], "critical_path_us": {...},
/// "holds": [...]}.
std::string why_json(const Explanation& explanation);

}  // namespace commfuse::reports
