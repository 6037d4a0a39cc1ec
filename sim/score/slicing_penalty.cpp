// SPDX-License-Identifier: Apache-2.0
#include "sim/score/slicing_penalty.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>

namespace commfuse::score {

namespace {

void compare(PenaltyScore& score, const TimedGemm& whole, const TimedGemm& part) {
  const double measured = score.parts * part.measured_us / whole.measured_us;
  const double predicted = score.parts * part.predicted_us / whole.predicted_us;
  const double error = std::abs(predicted / measured - 1.0);
  const double error_without_penalty = std::abs(1.0 / measured - 1.0);
  score.errors.push_back(error);
  score.of_no_penalty.push_back(error_without_penalty);
  if (whole.held_out) {
    score.held_out.push_back(error);
    score.held_out_of_no_penalty.push_back(error_without_penalty);
  }
}

}  // namespace

std::vector<PenaltyScore> slicing_penalties(std::vector<TimedGemm> gemms) {
  const DistinctGemms measured(std::move(gemms));
  std::vector<PenaltyScore> scores;
  for (const int parts : std::array{4, 8}) {
    PenaltyScore score{.parts = parts, .errors = {}, .of_no_penalty = {}, .held_out = {}, .held_out_of_no_penalty = {}};
    for (const TimedGemm& whole : measured.list()) {
      if (const TimedGemm* slice = measured.slice_of(whole, parts)) {
        compare(score, whole, *slice);
      }
    }
    if (!score.errors.empty()) {
      scores.push_back(std::move(score));
    }
  }
  return scores;
}

}  // namespace commfuse::score
