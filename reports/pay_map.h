// SPDX-License-Identifier: Apache-2.0
// Maps of where overlap pays with available kernels: a map for each implementation, sequence lengths across and ranks
// down.
#pragma once

#include <span>
#include <string>

#include "model/analysis/verdict.h"
#include "model/record/result.h"

namespace commfuse::reports {

/// Compares each implementation with serial at the same point: "+21%" means less time, "-12%" more; "~" follows a tie
/// by the rule; "-" means that the implementation or serial has no result. Returns a map for every implementation and
/// every combination of settings other than ranks and sequence length, at most as wide as the terminal; empty without
/// implementations, and without serial.
std::string pay_maps(std::span<const ResultRow> rows, const VerdictRule& rule);

}  // namespace commfuse::reports
