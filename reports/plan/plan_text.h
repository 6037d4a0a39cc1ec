// SPDX-License-Identifier: Apache-2.0
// A capacity plan as terminal text and as Markdown.
#pragma once

#include <string>

#include "model/record/capacity_plan.h"

namespace commfuse::reports {

/// Returns text at most 80 columns wide, unless a single word is wider.
std::string plan_text(const CapacityPlan& plan);

/// Returns only the verdict, at the same width.
std::string plan_sentences(const CapacityPlan& plan);

/// Returns the title, the verdict and the tables as Markdown. The user's text cannot end a cell or begin a tag.
std::string plan_markdown(const CapacityPlan& plan);

}  // namespace commfuse::reports
