// SPDX-License-Identifier: Apache-2.0
// Residual errors of implementations: each measured time is compared with the prediction of a fit that did not use the
// time's source. A source (an issue, a pull request, a repository) counts as one draw, however many rows it has,
// because its rows share host, software and GPUs.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace commfuse::score {

/// A measured time, compared with the prediction of a fit that did not use its source.
struct HeldOutTime {
  std::size_t implementation = 0;
  std::string thread;
  bool is_elsewhere = false;  ///< The fit read only rows of other GPU generations.
  double log_ratio = 0.0;     ///< ln(predicted / measured)
  double stated_error = 0.0;  ///< Standard error of ln(predicted) from parameters of the machine and of the fit.
};

/// Returns the residual on generations with measurements: the root mean square error of the implementation's sources
/// and one more source, which errs like the sources of all implementations.
double residual_where_measured(std::size_t implementation, std::span<const HeldOutTime> times);

/// Returns the residual on other generations, by split conformal prediction with sources as draws: the smallest
/// residual with which intervals of one standard error cover 68% of all implementations' times, rounded up as if one
/// more source lay outside. Sources have equal weights.
double residual_elsewhere(std::span<const HeldOutTime> times);

}  // namespace commfuse::score
