// SPDX-License-Identifier: Apache-2.0
// Compares two ways to do the same work: the predicted verdict and the measured one.
#pragma once

#include <string_view>

#include "model/analysis/uncertainty.h"
#include "sim/score/tally.h"

namespace commfuse::score {

struct Way {
  double measured_us = 0.0;
  double predicted_us = 0.0;
  Uncertainty uncertainty;
};

/// Judges the pair by probability_shorter, which also determines the win_probability of every verdict. Skips pairs with
/// equal predicted or equal measured times. Requires predicted times above 0 that fit in a Duration.
void judge(const Machine& machine, std::string_view ways, const Way& a, const Way& b, const ShapeKey& shape,
           Tally& tally);

}  // namespace commfuse::score
