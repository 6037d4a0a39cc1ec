// SPDX-License-Identifier: Apache-2.0
// From a report to the page (docs/page.md): a link that opens it at a point.
#pragma once

#include <string>
#include <string_view>

#include "model/record/result.h"

namespace commfuse::reports {

/// "#model=llama-3.1-70b&hardware=h100-sxm&…": the settings of the row's point by the keys of the command line, those
/// that are always in a link and those that are not at their default. Percent-encoded. `implementations` are those
/// beside the row, names with commas between; empty for none.
std::string page_hash(const ResultRow& row, std::string_view implementations = {});

}  // namespace commfuse::reports
