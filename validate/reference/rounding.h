// SPDX-License-Identifier: Apache-2.0
// The effect of storing a value in a dtype, and its largest error.
#pragma once

#include <cstddef>
#include <span>

#include "model/dtype.h"

namespace commfuse::validate {

/// Returns whether tensors may be stored in this dtype. fp8 is for wires only: it has no scale, so values beyond 448
/// are lost.
bool can_store(DType dtype);

/// Returns the nearest value of `dtype`, ties to even, and for NaN a NaN of `dtype`. Values beyond the range become
/// infinity. fp8 is E4M3, which has no infinity: values beyond its range become +-448, as in NVIDIA's saturating
/// conversion, and its NaN has neither sign nor payload.
float stored(DType dtype, float value);

/// Convert elements to and from their memory format: stored(dtype, value) bit for bit, even for NaN. `bytes` must hold
/// exactly as many elements as `values`.
void encode(DType dtype, std::span<const float> values, std::span<std::byte> bytes);
void decode(DType dtype, std::span<const std::byte> bytes, std::span<float> values);

/// A bound on the error of one rounding to nearest: |rounded - x| <= relative |x| + absolute, as long as nothing
/// overflows. `absolute` is half the smallest subnormal.
struct Roundoff {
  double relative = 0.0;
  double absolute = 0.0;
  friend bool operator==(const Roundoff&, const Roundoff&) = default;
};

/// Returns the roundoff of storing a value. fp32 stores the results of fp32 arithmetic exactly, so its roundoff is that
/// of the arithmetic.
Roundoff roundoff_of(DType dtype);

/// Returns whether `a` has a larger relative roundoff than `b`.
bool is_coarser(DType a, DType b);

/// Returns the largest integer up to which all integers, and hence all sums that stay below it, are exact in `dtype`.
double largest_exact_integer(DType dtype);

}  // namespace commfuse::validate
