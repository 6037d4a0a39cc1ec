// SPDX-License-Identifier: Apache-2.0
// What storing a value in a dtype does to it, and by how much at most.
#pragma once

#include <cstddef>
#include <span>

#include "model/dtype.h"

namespace commfuse::validate {

/// Whether the reference stores this dtype: fp8 names no encoding yet.
bool can_store(DType dtype);

/// The nearest value of `dtype`, ties to even; infinity beyond its range, NaN stays NaN. Requires can_store(dtype).
float stored(DType dtype, float value);

/// Elements as they lie in memory: stored(dtype, value) bit for bit, and NaN stays NaN. `bytes` holds as many elements
/// as `values`. Requires can_store(dtype).
void encode(DType dtype, std::span<const float> values, std::span<std::byte> bytes);
void decode(DType dtype, std::span<const std::byte> bytes, std::span<float> values);

/// A bound on what one rounding to nearest does: |rounded - x| <= relative |x| + absolute, as long as nothing
/// overflows. `absolute` is half the smallest subnormal.
struct Roundoff {
  double relative = 0.0;
  double absolute = 0.0;
  friend bool operator==(const Roundoff&, const Roundoff&) = default;
};

/// Of storing; fp32 stores exactly what fp32 arithmetic gives, so its roundoff is that of the arithmetic.
Roundoff roundoff_of(DType dtype);

/// Integers up to here in absolute value, and hence sums of such that stay below, are exact in `dtype`.
double largest_exact_integer(DType dtype);

}  // namespace commfuse::validate
