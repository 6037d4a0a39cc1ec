// SPDX-License-Identifier: Apache-2.0
#include "sim/score/timed_gemms.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace commfuse::score {

namespace {

auto key_of(const TimedGemm& gemm) { return std::tie(gemm.machine->name, gemm.dtype, gemm.n, gemm.k, gemm.m); }

bool is_smaller_gemm(const TimedGemm& a, const TimedGemm& b) { return key_of(a) < key_of(b); }

bool is_same_gemm(const TimedGemm& a, const TimedGemm& b) { return key_of(a) == key_of(b); }

}  // namespace

DistinctGemms::DistinctGemms(std::vector<TimedGemm> gemms) : gemms_(std::move(gemms)) {
  std::stable_sort(gemms_.begin(), gemms_.end(), is_smaller_gemm);
  gemms_.erase(std::unique(gemms_.begin(), gemms_.end(), is_same_gemm), gemms_.end());
}

const TimedGemm* DistinctGemms::find(const TimedGemm& gemm) const {
  const auto match = std::lower_bound(gemms_.begin(), gemms_.end(), gemm, is_smaller_gemm);
  return match != gemms_.end() && is_same_gemm(*match, gemm) ? &*match : nullptr;
}

const TimedGemm* DistinctGemms::slice_of(const TimedGemm& whole, int parts) const {
  TimedGemm slice = whole;
  slice.m = whole.m / parts;
  const bool is_practical =
      whole.m % parts == 0 && slice.m >= min_slice_rows && std::min(whole.n, whole.k) >= min_width;
  return is_practical ? find(slice) : nullptr;
}

}  // namespace commfuse::score
