// SPDX-License-Identifier: Apache-2.0
// How sure a predicted time is, and which of two is shorter.
//
//   error(T)^2       = sum over doubts of effect^2                   effect = ln(T one standard error up / T)
//   error(T_a / T_b)^2 = sum over doubts of (effect_a - effect_b)^2
//   P(T_a < T_b)     = S(ln(T_b / T_a) / error(T_a / T_b))           S: share_below() of error_tail.h
//
// First-order propagation of errors that are independent of each other (JCGM 100:2008, 5.1.2), on logarithms. What two
// times hang on alike cancels in their ratio: a link's rate is as wrong for one schedule as for another.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "model/cost/priced_shape.h"
#include "model/units.h"

namespace commfuse {

/// A parameter of an implementation, "ag_gemm.per_call"; empty: what its fit leaves.
struct ImplementationDoubt {
  std::string implementation;
  std::string parameter;
  friend auto operator<=>(const ImplementationDoubt&, const ImplementationDoubt&) = default;
};

/// A parameter of the machine by its place in parameters_of, what the fit leaves of one shape, or one of these.
using DoubtOf = std::variant<std::size_t, PricedShape, ImplementationDoubt>;

struct Doubt {
  DoubtOf of;
  double effect = 0.0;  ///< On ln(makespan), of one standard error.
};

/// Of one prediction: in the order of `of`, each once, none without effect.
struct Uncertainty {
  std::vector<Doubt> doubts;
};

/// One standard error, relative.
double error_of(const Uncertainty& uncertainty);

/// Of the ratio of two times on one machine.
double ratio_error(const Uncertainty& a, const Uncertainty& b);

/// How likely `a` is the shorter. 1/2 for equal times; 0 or 1 for others that nothing doubts. Requires times above 0.
double probability_shorter(Duration a, const Uncertainty& of_a, Duration b, const Uncertainty& of_b);

}  // namespace commfuse
