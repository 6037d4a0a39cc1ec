// SPDX-License-Identifier: Apache-2.0
#include "model/expect/sibling_shares.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr auto shares = [] {
  constexpr std::size_t steps = 20;
  std::array<double, steps + 1> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(i) / steps;
  }
  return values;
}();

}  // namespace

SiblingShares shipped_shares() { return {.bandwidth = 0.10, .latency = 0.16}; }

std::span<const double> tried_shares() { return shares; }

double healthy_likelihood(std::span<const ClassHalf> halves, Limit limit) {
  std::vector<ClassHalf> side;
  std::copy_if(halves.begin(), halves.end(), std::back_inserter(side),
               [&](const ClassHalf& half) { return half.limit == limit; });
  return side.empty() ? 0.0 : log_likelihood(side, FaultPattern(side.size(), 0.0));
}

double share_of(std::span<const ShareLikelihood> likelihoods) {
  ShareLikelihood product(shares.size(), 0.0);
  for (const ShareLikelihood& likelihood : likelihoods) {
    check(likelihood.size() == shares.size(), "a likelihood has one value per share");
    for (std::size_t i = 0; i < shares.size(); ++i) {
      product[i] += likelihood[i];
    }
  }
  const double largest = *std::max_element(product.begin(), product.end());
  double sum = 0.0;
  double weight = 0.0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const bool is_end = i == 0 || i + 1 == shares.size();  // the trapezoid rule
    const double density = (is_end ? 0.5 : 1.0) * math::exp(product[i] - largest);
    sum += density * shares[i];
    weight += density;
  }
  return sum / weight;
}

}  // namespace commfuse
