// SPDX-License-Identifier: Apache-2.0
// The measured calls of one kernel, and the result of a fit to them. fit_calls.h has the fit.
#pragma once

#include <string>
#include <vector>

#include "model/fit/fit_quality.h"
#include "model/fit/robust_fit.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

template <class Size>
struct MeasuredCall {
  Size size;
  Duration time{};
};

template <class Size>
struct CallFit {
  Accelerator accelerator;  ///< The given one with the fitted parameters, each with its standard error and provenance.
  std::vector<FittedParameter> fitted_parameters;  ///< all parameters, or with few sizes those that moved
  std::vector<std::string> left;            ///< parameters that few sizes cannot determine; their values are unchanged
  double distance = 0.0;                    ///< with few sizes: distance of the machine from its base (prior_fit.h)
  bool has_few = false;                     ///< few sizes: all rows are fitted and none is held out
  std::vector<MeasuredCall<Size>> medians;  ///< with few sizes: the fitted rows, one per size
  FitQuality fitted;                        ///< on the rows of the fit
  FitQuality held_out;                      ///< on the 20% of groups that the fit has not seen (holdout.h)
};

}  // namespace commfuse
