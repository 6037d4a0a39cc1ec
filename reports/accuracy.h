// SPDX-License-Identifier: Apache-2.0
// docs/accuracy.md: what the model reaches beside what it is meant to reach, and beside what others publish.
#pragma once

#include <span>
#include <string>

#include "model/record/score.h"

namespace commfuse::reports {

/// The whole page in Markdown. A table's lines are the same whatever other tables are scored beside it.
std::string accuracy_page(std::span<const TableScore> scores);

}  // namespace commfuse::reports
