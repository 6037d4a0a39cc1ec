// SPDX-License-Identifier: Apache-2.0
// From measured matrix products to the parameters of model/cost/gemm.h.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/cost/gemm.h"
#include "model/fit/fit_quality.h"
#include "model/fit/robust_fit.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// One call on all SMs, launch not counted.
struct MeasuredGemm {
  GemmSize size;
  Duration time{};
};

struct GemmFitOptions {
  std::string machine;  ///< As the table names it: part of the key that chooses the held-back rows.
  std::string source;   ///< Of the table, for the provenance: "gemm_h100_bf16_aic.csv".
  bool has_power_ceiling = true;
  bool has_conversion = false;        ///< The times include the conversion of the activations into the dtype.
  bool has_resident_weights = false;  ///< Some rows have weights that the L2 holds; `resident_share` stays as it is.
};

struct GemmFit {
  GemmParameters parameters;                       ///< Each with its standard error and provenance.
  std::vector<FittedParameter> fitted_parameters;  ///< Of few sizes only those that moved.
  std::vector<std::string> left;                   ///< Names of those that few sizes do not decide: as they were.
  double distance = 0.0;              ///< Of few sizes: how far the machine seems from its base (prior_fit.h).
  bool has_few = false;               ///< Every row is fitted, none is held back.
  std::vector<MeasuredGemm> medians;  ///< Of few sizes: the rows that were fitted, one a size.
  FitQuality fitted;                  ///< On the rows of the fit.
  FitQuality held_back;               ///< On one (n, k) in five, which the fit has not seen (model/fit/holdout.h).
};

/// Robust least squares on log(predicted / measured), and on the same of P T(m/P) / T(m) for P of 4 and 8 where both
/// were measured: what slicing costs. All rows are of `dtype`, whose peak, like the rest of the accelerator, is taken
/// as it is. Standard errors count rows of one (n, k) as one observation. Where fewer than 50 sizes are left to
/// fit, all rows are fitted with the accelerator's own parameters as the prior (few_rows.h). Requires a row, and times
/// above 0.
GemmFit fit_gemm(const Accelerator& accelerator, DType dtype, std::span<const MeasuredGemm> rows,
                 const GemmFitOptions& options);

/// The lines of a hardware file's `gemm:` map that the fit decided, each behind `indent` spaces.
std::string gemm_yaml(const GemmFit& fit, int indent);

}  // namespace commfuse
