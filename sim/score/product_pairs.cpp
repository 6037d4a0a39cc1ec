// SPDX-License-Identifier: Apache-2.0
#include "sim/score/product_pairs.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "sim/score/judged_ways.h"

namespace commfuse::score {

namespace {

constexpr std::int64_t min_slice_rows = 512;
constexpr std::int64_t min_width = 1024;
constexpr std::array parts_tried{2, 4, 8};

auto key_of(const TimedGemm& gemm) { return std::tie(gemm.machine->name, gemm.dtype, gemm.n, gemm.k, gemm.m); }

bool is_before(const TimedGemm& a, const TimedGemm& b) { return key_of(a) < key_of(b); }

GemmSize size_of(const TimedGemm& gemm) {
  GemmSize size{.m = gemm.m, .n = gemm.n, .k = gemm.k, .dtype = static_cast<DType>(gemm.dtype)};
  size.out = size.dtype == DType::fp8 ? std::optional(DType::bf16) : std::nullopt;
  return size;
}

/// Returns a way to do the work: the GEMM, run `times` times.
Way way_of(const TimedGemm& gemm, int times, Doubts& doubts) {
  const GemmSize size = size_of(gemm);
  const PricedShape shape = shape_of(size);
  const TimedShape timed{shape, times * gemm.predicted_us, residual_of(shape, *gemm.machine, 1)};
  const auto price = [&](const Machine& machine) {
    return times * to_microseconds(estimate_gemm(machine.accelerator, size, machine.accelerator.sms).time);
  };
  return {.measured_us = times * gemm.measured_us,
          .predicted_us = timed.us,
          .uncertainty = doubts.of(*gemm.machine, std::span(&timed, 1), price)};
}

/// Holds the unseen GEMMs of a table, sorted and without repetitions.
class UnseenGemms {
 public:
  explicit UnseenGemms(std::span<const TimedGemm> gemms) {
    std::copy_if(gemms.begin(), gemms.end(), std::back_inserter(gemms_), [](const TimedGemm& gemm) {
      return gemm.unseen && std::max(gemm.measured_us, gemm.predicted_us) < longest_checked_us;
    });
    std::stable_sort(gemms_.begin(), gemms_.end(), is_before);
    const auto has_equal_key = [](const TimedGemm& a, const TimedGemm& b) { return key_of(a) == key_of(b); };
    gemms_.erase(std::unique(gemms_.begin(), gemms_.end(), has_equal_key), gemms_.end());
  }

  [[nodiscard]] const std::vector<TimedGemm>& list() const { return gemms_; }
  /// Returns the measured GEMM with the same machine, dtype and sizes; null if there is none.
  [[nodiscard]] const TimedGemm* find(const TimedGemm& gemm) const {
    const auto place = std::lower_bound(gemms_.begin(), gemms_.end(), gemm, is_before);
    return place != gemms_.end() && key_of(*place) == key_of(gemm) ? &*place : nullptr;
  }

 private:
  std::vector<TimedGemm> gemms_;
};

const TimedGemm* slice_of(const TimedGemm& whole, int parts, const UnseenGemms& gemms) {
  TimedGemm slice = whole;
  slice.m = whole.m / parts;
  const bool is_practical =
      whole.m % parts == 0 && slice.m >= min_slice_rows && std::min(whole.n, whole.k) >= min_width;
  return is_practical ? gemms.find(slice) : nullptr;
}

/// Returns the GEMM whose weight is cut by columns, given the GEMM whose weight is cut by rows; null if not measured.
const TimedGemm* other_part(const TimedGemm& by_rows, int parts, const UnseenGemms& gemms) {
  TimedGemm by_columns = by_rows;
  by_columns.n = by_rows.n / parts;
  by_columns.k = by_rows.k * parts;
  const bool is_practical =
      by_rows.n % parts == 0 && by_rows.m >= min_slice_rows && std::min(by_rows.n, by_columns.k) >= min_width;
  return is_practical ? gemms.find(by_columns) : nullptr;
}

}  // namespace

void judge_gemm_pairs(std::span<const TimedGemm> gemms, Doubts& doubts, Tally& tally) {
  const UnseenGemms measured(gemms);
  for (const TimedGemm& gemm : measured.list()) {
    for (const int parts : parts_tried) {
      if (const TimedGemm* slice = slice_of(gemm, parts, measured)) {
        judge(*gemm.machine, "GEMM whole or in slices", way_of(gemm, 1, doubts), way_of(*slice, parts, doubts),
              {gemm.n, gemm.k}, tally);
      }
      if (const TimedGemm* part = other_part(gemm, parts, measured)) {
        judge(*gemm.machine, "weight cut by rows or columns", way_of(gemm, 1, doubts), way_of(*part, 1, doubts),
              {gemm.n, gemm.k * parts}, tally);
      }
    }
  }
}

}  // namespace commfuse::score
