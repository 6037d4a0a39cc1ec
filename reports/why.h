// SPDX-License-Identifier: Apache-2.0
// One prediction taken apart, for people and for programs.
#pragma once

#include <cstddef>
#include <string>

#include "model/record/explanation.h"

namespace commfuse::reports {

/// At most 80 columns wide. Of what the time hangs on the first `most`.
std::string why_text(const Explanation& explanation, std::size_t most);

/// {"schema": "commfuse.why/1", "result": {...}, "ops": [...], "critical_path_us": {...}, "holds": [...]}: all of it.
std::string why_json(const Explanation& explanation);

}  // namespace commfuse::reports
