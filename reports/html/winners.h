// SPDX-License-Identifier: Apache-2.0
// Tables of winners for every point, folded below the maps of a report.
#pragma once

#include <string>

#include "model/analysis/verdict.h"
#include "model/record/row_table.h"
#include "reports/html/overview.h"

namespace commfuse::reports {

/// Returns tables of winners by sequence length, links and ranks, the clear changes, and the scaling of time with
/// ranks; empty if there is no map.
std::string winners_section(const RowTable& rows, const Overview& overview, const VerdictRule& rule = {});

}  // namespace commfuse::reports
