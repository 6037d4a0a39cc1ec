// SPDX-License-Identifier: Apache-2.0
#include "sim/score/product_pairs.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "sim/score/judged_ways.h"

namespace commfuse::score {

namespace {

constexpr std::array parts_tried{2, 4, 8};

GemmSize size_of(const TimedGemm& gemm) {
  GemmSize size{.m = gemm.m,
                .n = gemm.n,
                .k = gemm.k,
                .dtype = static_cast<DType>(gemm.dtype),
                .weight_copies = gemm.weight_copies};
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

/// Returns the GEMMs that no fit has seen and whose times are short enough to be checked.
DistinctGemms unseen_in(std::span<const TimedGemm> gemms) {
  std::vector<TimedGemm> unseen;
  std::copy_if(gemms.begin(), gemms.end(), std::back_inserter(unseen), [](const TimedGemm& gemm) {
    return gemm.unseen && std::max(gemm.measured_us, gemm.predicted_us) < longest_checked_us;
  });
  return DistinctGemms(std::move(unseen));
}

/// Returns the GEMM whose weight is cut by columns, given the GEMM whose weight is cut by rows; null if not measured.
const TimedGemm* other_part(const TimedGemm& by_rows, int parts, const DistinctGemms& gemms) {
  TimedGemm by_columns = by_rows;
  by_columns.n = by_rows.n / parts;
  by_columns.k = by_rows.k * parts;
  const bool is_practical =
      by_rows.n % parts == 0 && by_rows.m >= min_slice_rows && std::min(by_rows.n, by_columns.k) >= min_width;
  return is_practical ? gemms.find(by_columns) : nullptr;
}

}  // namespace

void judge_gemm_pairs(std::span<const TimedGemm> gemms, Doubts& doubts, Tally& tally) {
  const DistinctGemms measured = unseen_in(gemms);
  for (const TimedGemm& gemm : measured.list()) {
    for (const int parts : parts_tried) {
      if (const TimedGemm* slice = measured.slice_of(gemm, parts)) {
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
