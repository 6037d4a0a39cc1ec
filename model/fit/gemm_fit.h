// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of model/cost/gemm.h to measured GEMMs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/cost/gemm.h"
#include "model/fit/fit_quality.h"
#include "model/fit/robust_fit.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// One call on all SMs, without launch time.
struct MeasuredGemm {
  GemmSize size;
  Duration time{};
};

/// With few sizes the `has_...` flags are ignored: what the accelerator has is fitted.
struct GemmFitOptions {
  std::string machine;  ///< the machine's name in the table: part of the key that selects the held-out rows
  std::string source;   ///< table, for the provenance: "gemm_h100_bf16_aic.csv"
  bool has_power_ceiling = true;
  bool has_conversion = false;  ///< the times include the conversion of the activations into the dtype
  /// `cached_weight_cost` is fitted: some rows have weights that the L2 holds. (`resident_share` is never fitted.)
  bool has_resident_weights = false;
  /// `cached_output_cost` is fitted: the L2 holds the outputs of some rows and not those of others.
  /// (`resident_output_share` is never fitted.)
  bool has_resident_output = false;
  bool has_operand_feed = false;  ///< `operand_feed` is fitted; it stays unchanged otherwise.
};

struct GemmFit {
  GemmParameters parameters;  ///< each with its standard error and provenance
  /// The fitted table of kernel choices; null with fewer than `min_choice_rows` rows: then the accelerator's own stays.
  std::shared_ptr<const KernelChoice> kernel_choice;
  std::vector<FittedParameter> fitted_parameters;  ///< all parameters, or with few sizes those that moved
  std::vector<std::string> left;      ///< parameters that few sizes cannot determine; their values are unchanged
  double distance = 0.0;              ///< with few sizes: distance of the machine from its base (prior_fit.h)
  bool has_few = false;               ///< few sizes: all rows are fitted and none is held out
  std::vector<MeasuredGemm> medians;  ///< with few sizes: the fitted rows, one per size
  FitQuality fitted;                  ///< on the rows of the fit
  FitQuality held_out;                ///< on the 20% of pairs (n, k) that the fit has not seen (model/fit/holdout.h)
};

/// Fits by robust least squares on log(predicted / measured), and on log(predicted / measured) of the cost of slicing,
/// P T(m/P) / T(m), for P = 4 and P = 8, each where both m/P and m were measured and m/P is large. All rows must have
/// dtype `dtype`; its peak and the rest of the accelerator stay unchanged. Standard errors count rows of one (n, k) as
/// one observation. If fewer than 50 sizes remain for the fit, all rows are fitted with the accelerator's own
/// parameters as the prior (few_rows.h). From `min_choice_rows` rows on, the table of kernel choices is then fitted to
/// the error that the formula leaves. Requires at least one row, and times above 0.
GemmFit fit_gemm(const Accelerator& accelerator, DType dtype, std::span<const MeasuredGemm> rows,
                 const GemmFitOptions& options);

/// Returns the lines of a hardware file's `gemm:` map that the fit determined, each indented by `indent` spaces.
std::string gemm_yaml(const GemmFit& fit, int indent);

}  // namespace commfuse
