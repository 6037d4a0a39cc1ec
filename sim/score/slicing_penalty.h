// SPDX-License-Identifier: Apache-2.0
// Scores the cost of cutting the rows of a GEMM: P x T(m / P) / T(m), predicted and measured, where T(m) is the time
// with m rows.
//
// A table shows this cost if it has a GEMM both whole and with 1 / P of its rows. Only GEMMs of practical size count:
// n and k of at least 1024, and at least 512 rows per slice. The baseline prediction is that slicing costs nothing
// (penalty = 1).
#pragma once

#include <vector>

#include "model/record/score.h"
#include "sim/score/timed_gemms.h"

namespace commfuse::score {

/// Returns a score for each of P = 4 and P = 8 for which a GEMM was measured both whole and sliced. Only the first of
/// repeated measurements counts.
std::vector<PenaltyScore> slicing_penalties(std::vector<TimedGemm> gemms);

}  // namespace commfuse::score
