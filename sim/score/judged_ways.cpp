// SPDX-License-Identifier: Apache-2.0
#include "sim/score/judged_ways.h"

#include <algorithm>

namespace commfuse::score {

void judge(const Machine& machine, std::string_view ways, const Way& a, const Way& b, const ShapeKey& shape,
           Tally& tally) {
  const Duration time_a = from_seconds(a.predicted_us * 1e-6);
  const Duration time_b = from_seconds(b.predicted_us * 1e-6);
  if (time_a == time_b || a.measured_us == b.measured_us) {
    return;
  }
  const double a_wins = probability_shorter(time_a, a.uncertainty, time_b, b.uncertainty);
  const bool predicts_a = a_wins >= 0.5;
  tally.judge(machine, ways,
              {.probability = std::max(a_wins, 1.0 - a_wins),
               .came_true = predicts_a == (a.measured_us < b.measured_us),
               .shape = shape});
}

}  // namespace commfuse::score
