// SPDX-License-Identifier: Apache-2.0
// Where overlap pays with kernels that one can get: a map for each implementation, tokens across and ranks down.
#pragma once

#include <span>
#include <string>

#include "model/analysis/verdict.h"
#include "model/record/result.h"

namespace commfuse::reports {

/// Each implementation against serial at the same point: "+21%" less time, "-12%" more, "~" behind what the rule calls
/// a tie, "-" where it or serial was not run. A map for every model, machine and scope; empty without implementations.
std::string pay_maps(std::span<const ResultRow> rows, const VerdictRule& rule);

}  // namespace commfuse::reports
