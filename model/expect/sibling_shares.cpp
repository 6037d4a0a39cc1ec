// SPDX-License-Identifier: Apache-2.0
#include "model/expect/sibling_shares.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"

namespace commfuse {

SiblingMoments& SiblingMoments::operator+=(const SiblingMoments& other) {
  excess += other.excess;
  residual += other.residual;
  return *this;
}

SiblingMoments moments_of(std::span<const ClassHalf> without, std::span<const ClassHalf> with, Limit limit) {
  check(without.size() == with.size(), "both shares have the same halves");
  SiblingMoments moments;
  for (std::size_t i = 0; i < with.size(); ++i) {
    if (with[i].limit == limit) {
      const double other = error_of(without[i]) * error_of(without[i]);
      const double whole = error_of(with[i]) * error_of(with[i]);
      moments += {(with[i].median * with[i].median - other) / whole, (whole - other) / whole};
    }
  }
  return moments;
}

SiblingMoments mean_of(const SiblingMoments& moments, std::size_t pairs) {
  check(pairs > 0, "a fleet has pairs of nodes");
  return {moments.excess / static_cast<double>(pairs), moments.residual / static_cast<double>(pairs)};
}

double share_of(const SiblingMoments& moments) {
  return moments.residual > 0.0 ? std::sqrt(std::clamp(moments.excess / moments.residual, 0.0, 1.0)) : 1.0;
}

}  // namespace commfuse
