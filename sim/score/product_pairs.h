// SPDX-License-Identifier: Apache-2.0
// Finds pairs of GEMMs in a table that are two ways to do the same work, and scores the predicted probability that each
// way is faster. T is the time of a GEMM:
//
//   whole or slices    T(m, n, k) against P x T(m / P, n, k)
//   rows or columns    T(m, n, k / P) against T(m, n / P, k): a rank's part of a GEMM whose weight is cut over P
//                      ranks by rows (the contraction) or by columns
//
// Only GEMMs of practical size count: at least 512 rows after slicing, and a weight of at least 1024 x 1024 before it
// is cut over ranks.
#pragma once

#include <span>

#include "sim/score/doubts.h"
#include "sim/score/tally.h"
#include "sim/score/timed_gemms.h"

namespace commfuse::score {

/// Judges the pairs, for P = 2, 4 and 8, among GEMMs that no fit has seen. Skips pairs with equal predicted or equal
/// measured times. Only the first of repeated measurements counts.
void judge_gemm_pairs(std::span<const TimedGemm> gemms, Doubts& doubts, Tally& tally);

}  // namespace commfuse::score
