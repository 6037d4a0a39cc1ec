// SPDX-License-Identifier: Apache-2.0
// Scores the cost of cutting the rows of a GEMM: P x T(m / P) / T(m), predicted and measured.
//
// A table shows this cost if it has a GEMM both whole and with 1 / P of its rows. Only GEMMs of practical size count:
// n and k of at least 1024, and at least 512 rows per slice. The baseline prediction is that slicing costs nothing
// (penalty = 1).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/hardware/machine.h"
#include "model/record/score.h"

namespace commfuse::score {

struct TimedGemm {
  const Machine* machine = nullptr;
  std::int64_t n = 0;
  std::int64_t k = 0;
  int dtype = 0;
  std::int64_t m = 0;
  double measured_us = 0.0;
  double predicted_us = 0.0;
  bool held_out = false;
  bool unseen = false;  ///< Held back, or in a table that no fit of the machine read.
};

/// Returns a score for P = 4 and for P = 8, if any GEMM was measured both ways. Of repeated measurements, only the
/// first counts.
std::vector<PenaltyScore> slicing_penalties(std::vector<TimedGemm> gemms);

}  // namespace commfuse::score
