// SPDX-License-Identifier: Apache-2.0
// Links from a report to the page (docs/page.md), which open it at a point.
#pragma once

#include <string>
#include <string_view>

#include "model/record/result.h"

namespace commfuse::reports {

/// Returns "#model=llama-3.1-70b&hardware=h100-sxm&…": the settings of the row's point, under the keys of the command
/// line. Some keys are in every link, the others only if their value is not the default. Values are percent-encoded.
/// `implementations` has the names of the implementations next to the row, separated by commas; empty for none.
std::string page_hash(const ResultRow& row, std::string_view implementations = {});

}  // namespace commfuse::reports
