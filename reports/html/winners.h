// SPDX-License-Identifier: Apache-2.0
// Who wins where, point by point: what stands folded below the maps of a report.
#pragma once

#include <string>

#include "model/analysis/verdict.h"
#include "model/record/row_table.h"
#include "reports/html/overview.h"

namespace commfuse::reports {

/// Tables of winners by sequence, links and ranks, the changes that are clear, and how time scales with ranks; empty
/// where there is no map.
std::string winners_section(const RowTable& rows, const Overview& overview, const VerdictRule& rule = {});

}  // namespace commfuse::reports
