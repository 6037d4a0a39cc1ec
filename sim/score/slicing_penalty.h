// SPDX-License-Identifier: Apache-2.0
// What cutting the rows of a product costs: P x T(m / P) / T(m), predicted and measured.
//
// A table says it wherever it holds a product both whole and with a P-th of its rows. Counted are products of which a
// schedule would think: n and k of at least 1024, and at least 512 rows left. The prediction to beat is that slicing
// costs nothing, penalty = 1.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/hardware/machine.h"
#include "model/record/score.h"

namespace commfuse::score {

struct TimedProduct {
  const Machine* machine = nullptr;
  std::int64_t n = 0;
  std::int64_t k = 0;
  int dtype = 0;
  std::int64_t m = 0;
  double measured_us = 0.0;
  double predicted_us = 0.0;
  bool held_back = false;
  bool unseen = false;  ///< Held back, or of a table that no fit of the machine read.
};

/// For P = 4 and 8; none where no product was measured both ways. Of repeated measurements the first counts.
std::vector<PenaltyScore> slicing_penalties(std::vector<TimedProduct> products);

}  // namespace commfuse::score
