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

/// What the model of training steps leaves: of all steps on a machine (empty), or of one layout.
struct StepDoubt {
  std::string layout;
  friend auto operator<=>(const StepDoubt&, const StepDoubt&) = default;
};

/// A parameter of the machine by its place in parameters_of, what the fit leaves of one shape, or one of these.
using DoubtOf = std::variant<std::size_t, PricedShape, ImplementationDoubt, StepDoubt>;

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

/// A time that was measured: what its prediction was doubted for, and ln(measured / predicted). Requires some doubt.
struct Evidence {
  Uncertainty of;
  double log_ratio = 0.0;
};

/// What the evidence makes ln(time / predicted) of another prediction on the machine: 0 where the two share no doubt,
/// and log_ratio where they share all. The mean of a normal distribution given a sum of its coordinates (Bishop,
/// "Pattern Recognition and Machine Learning", 2006, equation 2.81).
double expected_log_ratio(const Uncertainty& uncertainty, const Evidence& evidence);
/// The doubt that is left (equation 2.82): errors and ratios of what this returns are those given the evidence.
Uncertainty given(const Uncertainty& uncertainty, const Evidence& evidence);

/// How likely `a` is the shorter. 1/2 for equal times; 0 or 1 for others that nothing doubts. Requires times above 0.
double probability_shorter(Duration a, const Uncertainty& of_a, Duration b, const Uncertainty& of_b);

}  // namespace commfuse
