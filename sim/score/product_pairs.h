// SPDX-License-Identifier: Apache-2.0
// Pairs of products of one table that are two ways to do the same work, and how likely the model called the faster one:
//
//   whole or slices    T(m, n, k) against P x T(m / P, n, k)
//   columns or rows    T(m, n, k / P) against T(m, n / P, k): a rank's part of a product whose weight is cut over P
//                      ranks by rows (the contraction) or by columns
//
// Counted are products of which a schedule would think: at least 512 rows after slicing, and a weight of at least 1024
// each way before it is cut over ranks.
#pragma once

#include <span>

#include "sim/score/doubts.h"
#include "sim/score/slicing_penalty.h"
#include "sim/score/tally.h"

namespace commfuse::score {

/// For P = 2, 4 and 8. Both products are ones that no fit has seen. Pairs that are predicted or were measured to take
/// the same time are left out; of repeated measurements the first counts.
void judge_product_pairs(std::span<const TimedProduct> products, Doubts& doubts, Tally& tally);

}  // namespace commfuse::score
