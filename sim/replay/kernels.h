// SPDX-License-Identifier: Apache-2.0
// The loops of replay: maxima and sums over a register. Values are times in whole picoseconds, stored as doubles:
// doubles are exact up to 2^53, and vector units can compute their maximum.
#pragma once

#include <cstddef>

namespace commfuse::kernels {

/// Sets to[i] = value.
void fill(double* to, double value, std::size_t count);
/// Sets to[i] = max(a[i], value).
void max_with(double* to, const double* a, double value, std::size_t count);
/// Sets to[i] = max(to[i], a[i]).
void raise_to(double* to, const double* a, std::size_t count);
/// Sets to[i] = max(a[i], b[i]).
void max_of(double* to, const double* a, const double* b, std::size_t count);
/// Sets to[i] += a[i].
void add_to(double* to, const double* a, std::size_t count);

}  // namespace commfuse::kernels
