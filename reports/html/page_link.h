// SPDX-License-Identifier: Apache-2.0
// Links from a report to the page (docs/page.md), which open it at a point.
#pragma once

#include <string>
#include <string_view>

#include "model/record/result.h"

namespace commfuse::reports {

/// Returns "#model=llama-3.1-70b&hardware=h100-sxm&…": the settings of the row's point by command-line keys: the keys
/// that are always in a link, and keys whose value is not the default. Percent-encoded. `implementations` has the names
/// of the implementations next to the row, separated by commas; empty for none.
std::string page_hash(const ResultRow& row, std::string_view implementations = {});

}  // namespace commfuse::reports
