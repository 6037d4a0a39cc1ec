// SPDX-License-Identifier: Apache-2.0
// Which of two ways to do the same work is faster: what verdicts say of it, and what was measured.
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

/// By probability_shorter, which fills the win_probability that every verdict asks. Nothing where both ways were
/// predicted or measured to take the same time. Requires times above 0 that a Duration holds.
void judge(const Machine& machine, std::string_view ways, const Way& a, const Way& b, const ShapeKey& shape,
           Tally& tally);

}  // namespace commfuse::score
