// SPDX-License-Identifier: Apache-2.0
// The effect of storing a value in a dtype, and its largest error.
#pragma once

#include <cstddef>
#include <span>

#include "model/dtype.h"

namespace commfuse::validate {

/// Returns whether tensors may be stored in this dtype. fp8 goes over wires alone: it has no scale, so that values
/// beyond 448 are lost.
bool can_store(DType dtype);

/// Returns the nearest value of `dtype`, ties to even, and NaN for NaN. Beyond its range that is infinity; fp8 is E4M3,
/// which has none, and gives +-448 for it too, as NVIDIA's saturating conversion does; its NaN has neither sign nor
/// payload.
float stored(DType dtype, float value);

/// Converts elements to and from their memory format: stored(dtype, value) bit for bit, and NaN stays NaN. `bytes`
/// holds as many elements as `values`.
void encode(DType dtype, std::span<const float> values, std::span<std::byte> bytes);
void decode(DType dtype, std::span<const std::byte> bytes, std::span<float> values);

/// A bound on the error of one rounding to nearest: |rounded - x| <= relative |x| + absolute, as long as nothing
/// overflows. `absolute` is half the smallest subnormal.
struct Roundoff {
  double relative = 0.0;
  double absolute = 0.0;
  friend bool operator==(const Roundoff&, const Roundoff&) = default;
};

/// Returns the roundoff of storing; fp32 stores exactly the results of fp32 arithmetic, so its roundoff is that of the
/// arithmetic.
Roundoff roundoff_of(DType dtype);

/// Returns the largest integer up to which all integers, and hence all sums that stay below it, are exact in `dtype`.
double largest_exact_integer(DType dtype);

}  // namespace commfuse::validate
