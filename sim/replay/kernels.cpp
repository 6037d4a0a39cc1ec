// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/kernels.h"

namespace commfuse::kernels {

void fill(double* __restrict to, double value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = value;
  }
}

void max_with(double* __restrict to, const double* __restrict a, double value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = a[i] > value ? a[i] : value;
  }
}

void raise_to(double* __restrict to, const double* __restrict a, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = a[i] > to[i] ? a[i] : to[i];
  }
}

void max_of(double* __restrict to, const double* __restrict a, const double* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = a[i] > b[i] ? a[i] : b[i];
  }
}

void add_to(double* __restrict to, const double* __restrict a, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] += a[i];
  }
}

}  // namespace commfuse::kernels
