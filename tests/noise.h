// SPDX-License-Identifier: Apache-2.0
// Errors of made-up measurements.
#pragma once

#include <cmath>

namespace commfuse {

/// Reproducible relative errors with a standard deviation of `spread`. Their logarithms are approximately normal: sums
/// of three numbers of a Weyl sequence.
class Noise {
 public:
  explicit Noise(double spread = 0.01) : spread_(spread) {}
  double factor() { return std::exp(2.0 * spread_ * (next() + next() + next() - 1.5)); }

 private:
  double next() {
    state_ += 0.6180339887498949;
    return state_ - std::floor(state_);
  }
  double spread_;
  double state_ = 0.5;
};

}  // namespace commfuse
