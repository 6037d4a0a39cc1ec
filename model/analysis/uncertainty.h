// SPDX-License-Identifier: Apache-2.0
// Uncertainty of predicted times, and the probability that one of two times is shorter. A doubt is one independent
// source of error, such as a parameter of the machine.
//
//   error(T)^2         = sum over doubts of effect^2             effect = ln(T one standard error up / T)
//   error(T_a / T_b)^2 = sum over doubts of (effect_a - effect_b)^2
//   P(T_a < T_b)       = S(ln(T_b / T_a) / error(T_a / T_b))     S: share_below() of error_tail.h
//
// This is first-order propagation of independent errors (JCGM 100:2008, 5.1.2) in logarithms. An error that affects
// both times equally cancels in their ratio: the error of a link's rate, for example, is the same for both schedules.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "model/cost/priced_shape.h"
#include "model/units.h"

namespace commfuse {

/// Parameter of an implementation, such as "ag_gemm.per_call"; an empty `parameter` means the residual of its fit.
struct ImplementationDoubt {
  std::string implementation;
  std::string parameter;
  friend auto operator<=>(const ImplementationDoubt&, const ImplementationDoubt&) = default;
};

/// Parameter of a framework, by its key in the file: "host.issue". `framework` is empty if none was named.
struct FrameworkDoubt {
  std::string framework;
  std::string parameter;
  friend auto operator<=>(const FrameworkDoubt&, const FrameworkDoubt&) = default;
};

/// Residual of the model of training steps, prefills and decoding steps: common to all on a machine (empty `layout`),
/// or specific to one layout.
struct StepDoubt {
  std::string layout;
  friend auto operator<=>(const StepDoubt&, const StepDoubt&) = default;
};

/// Subject of a doubt: a parameter of the machine by its index in parameters_of, the residual of the fit for one shape,
/// or one of the structs above.
using DoubtOf = std::variant<std::size_t, PricedShape, ImplementationDoubt, FrameworkDoubt, StepDoubt>;

struct Doubt {
  DoubtOf of;
  double effect = 0.0;  ///< change of ln(makespan) per standard error
};

/// Doubts of one prediction: sorted by `of`, without duplicates, and all with an effect.
struct Uncertainty {
  std::vector<Doubt> doubts;
};

/// Returns the relative standard error of the time.
double error_of(const Uncertainty& uncertainty);

/// Returns the relative standard error of the ratio of two times on one machine.
double ratio_error(const Uncertainty& a, const Uncertainty& b);

/// Measured time: the doubts of its prediction, and ln(measured / predicted). Requires at least one doubt.
struct Evidence {
  Uncertainty of;
  double log_ratio = 0.0;
};

/// Returns the value of ln(time / predicted) that the evidence implies for another prediction on the machine: 0 when
/// the prediction and the evidence share no doubt, and log_ratio when they share all. It is the conditional mean of a
/// normal distribution given a sum of its coordinates (Bishop, "Pattern Recognition and Machine Learning", 2006,
/// equation 2.81).
double expected_log_ratio(const Uncertainty& uncertainty, const Evidence& evidence);
/// Returns the remaining doubts (equation 2.82): the errors and ratio errors of the result are conditional on the
/// evidence.
Uncertainty given(const Uncertainty& uncertainty, const Evidence& evidence);

/// Returns the probability that `a` is shorter than `b`: 1/2 for equal times; 0 or 1 for different times without
/// doubts. Requires times above 0.
double probability_shorter(Duration a, const Uncertainty& of_a, Duration b, const Uncertainty& of_b);

}  // namespace commfuse
