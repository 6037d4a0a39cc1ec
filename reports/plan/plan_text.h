// SPDX-License-Identifier: Apache-2.0
// A capacity plan for a terminal and for a page of notes.
#pragma once

#include <string>

#include "model/record/capacity_plan.h"

namespace commfuse::reports {

/// At most 80 columns wide, unless one word alone is wider.
std::string plan_text(const CapacityPlan& plan);

/// Its verdict alone, as wide.
std::string plan_sentences(const CapacityPlan& plan);

/// The same tables. Text of the user's cannot end a cell or begin a tag.
std::string plan_markdown(const CapacityPlan& plan);

}  // namespace commfuse::reports
