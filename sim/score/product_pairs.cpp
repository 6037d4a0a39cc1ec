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

auto key_of(const TimedProduct& product) {
  return std::tie(product.machine->name, product.dtype, product.n, product.k, product.m);
}

bool before(const TimedProduct& a, const TimedProduct& b) { return key_of(a) < key_of(b); }

GemmSize size_of(const TimedProduct& product) {
  GemmSize size{.m = product.m, .n = product.n, .k = product.k, .dtype = static_cast<DType>(product.dtype)};
  size.out = size.dtype == DType::fp8 ? std::optional(DType::bf16) : std::nullopt;
  return size;
}

/// Returns a way to do the work: the GEMM, run `times` times.
Way way_of(const TimedProduct& product, int times, Doubts& doubts) {
  const GemmSize size = size_of(product);
  const PricedShape shape = shape_of(size);
  const TimedShape timed{shape, times * product.predicted_us, residual_of(shape, *product.machine, 1)};
  const auto price = [&](const Machine& machine) {
    return times * to_microseconds(estimate_gemm(machine.accelerator, size, machine.accelerator.sms).time);
  };
  return {.measured_us = times * product.measured_us,
          .predicted_us = timed.us,
          .uncertainty = doubts.of(*product.machine, std::span(&timed, 1), price)};
}

/// The unseen GEMMs of a table, sorted and without repetitions.
class Products {
 public:
  explicit Products(std::span<const TimedProduct> products) {
    std::copy_if(products.begin(), products.end(), std::back_inserter(products_), [](const TimedProduct& product) {
      return product.unseen && std::max(product.measured_us, product.predicted_us) < longest_checked_us;
    });
    std::stable_sort(products_.begin(), products_.end(), before);
    const auto same = [](const TimedProduct& a, const TimedProduct& b) { return key_of(a) == key_of(b); };
    products_.erase(std::unique(products_.begin(), products_.end(), same), products_.end());
  }

  [[nodiscard]] const std::vector<TimedProduct>& list() const { return products_; }
  /// Returns the measured GEMM with the same machine, dtype and sizes; null if there is none.
  [[nodiscard]] const TimedProduct* find(const TimedProduct& product) const {
    const auto place = std::lower_bound(products_.begin(), products_.end(), product, before);
    return place != products_.end() && key_of(*place) == key_of(product) ? &*place : nullptr;
  }

 private:
  std::vector<TimedProduct> products_;
};

const TimedProduct* slice_of(const TimedProduct& whole, int parts, const Products& products) {
  TimedProduct slice = whole;
  slice.m = whole.m / parts;
  const bool is_practical =
      whole.m % parts == 0 && slice.m >= min_slice_rows && std::min(whole.n, whole.k) >= min_width;
  return is_practical ? products.find(slice) : nullptr;
}

/// Returns the GEMM whose weight is cut by columns, given the GEMM whose weight is cut by rows; null if not measured.
const TimedProduct* other_part(const TimedProduct& by_rows, int parts, const Products& products) {
  TimedProduct by_columns = by_rows;
  by_columns.n = by_rows.n / parts;
  by_columns.k = by_rows.k * parts;
  const bool is_practical =
      by_rows.n % parts == 0 && by_rows.m >= min_slice_rows && std::min(by_rows.n, by_columns.k) >= min_width;
  return is_practical ? products.find(by_columns) : nullptr;
}

}  // namespace

void judge_product_pairs(std::span<const TimedProduct> products, Doubts& doubts, Tally& tally) {
  const Products measured(products);
  for (const TimedProduct& product : measured.list()) {
    for (const int parts : parts_tried) {
      if (const TimedProduct* slice = slice_of(product, parts, measured)) {
        judge(*product.machine, "GEMM whole or in slices", way_of(product, 1, doubts), way_of(*slice, parts, doubts),
              {product.n, product.k}, tally);
      }
      if (const TimedProduct* part = other_part(product, parts, measured)) {
        judge(*product.machine, "weight cut by rows or columns", way_of(product, 1, doubts), way_of(*part, 1, doubts),
              {product.n, product.k * parts}, tally);
      }
    }
  }
}

}  // namespace commfuse::score
