// SPDX-License-Identifier: Apache-2.0
#include "sim/score/slicing_penalty.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>

namespace commfuse::score {

namespace {

constexpr std::int64_t min_slice_rows = 512;
constexpr std::int64_t min_width = 1024;

auto key_of(const TimedGemm& gemm) { return std::tie(gemm.machine->name, gemm.dtype, gemm.n, gemm.k, gemm.m); }

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
  const auto is_before = [](const TimedGemm& a, const TimedGemm& b) { return key_of(a) < key_of(b); };
  std::stable_sort(gemms.begin(), gemms.end(), is_before);
  const auto has_equal_key = [](const TimedGemm& a, const TimedGemm& b) { return key_of(a) == key_of(b); };
  gemms.erase(std::unique(gemms.begin(), gemms.end(), has_equal_key), gemms.end());
  std::vector<PenaltyScore> scores;
  for (const int parts : std::array{4, 8}) {
    PenaltyScore score{.parts = parts, .errors = {}, .of_no_penalty = {}, .held_out = {}, .held_out_of_no_penalty = {}};
    for (const TimedGemm& whole : gemms) {
      TimedGemm part = whole;
      part.m = whole.m / parts;
      if (whole.m % parts != 0 || part.m < min_slice_rows || std::min(whole.n, whole.k) < min_width) {
        continue;
      }
      const auto match = std::lower_bound(gemms.begin(), gemms.end(), part, is_before);
      if (match != gemms.end() && has_equal_key(*match, part)) {
        compare(score, whole, *match);
      }
    }
    if (!score.errors.empty()) {
      scores.push_back(std::move(score));
    }
  }
  return scores;
}

}  // namespace commfuse::score
