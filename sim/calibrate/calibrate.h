// SPDX-License-Identifier: Apache-2.0
// Turns measurements into a hardware file that extends another.
#pragma once

#include <string>
#include <vector>

#include "model/fit/fit_quality.h"
#include "model/fit/robust_fit.h"
#include "model/hardware/machine.h"
#include "sim/calibrate/observations.h"

namespace commfuse::calibrate {

/// One measurement, and the value that the fitted formulas predict for it.
struct Residual {
  double measured_us = 0.0;
  double predicted_us = 0.0;
  bool held_out = false;  ///< Not used by the fit.
};

/// One map of the hardware file and the quality of its fit.
struct FittedPart {
  std::string name;  ///< "GEMMs in bf16", "copies and adds", "attention", "collectives", "exchanges",
                     ///< "all-reduce of vllm"
  std::string source;
  std::vector<FittedParameter> parameters;
  std::vector<std::string> unchanged{};  ///< Parameters for which there are too few rows; they keep the base's values.
  bool has_few = false;                  ///< Fitted to few rows: no row is held back, and the base is the prior.
  double distance = 0.0;                 ///< With few sizes of kernels: distance from the base (model/fit/few_rows.h).
  std::vector<Residual> residuals;
  FitQuality fitted;    ///< Quality on the rows of the fit.
  FitQuality held_out;  ///< Quality on the held-out rows (model/fit/holdout.h).
  FitScope scope;       ///< Residual of the fit, and the sizes that it covers.
  std::string yaml;     ///< Lines of the map, indented as in the file.
};

struct Calibration {
  std::vector<FittedPart> parts;
  std::vector<std::string> skipped;  ///< Sentences about kinds that were not fitted, such as kinds with too few rows.
  std::string yaml;                  ///< The whole file; a cluster file if the base is a cluster.
  std::string node_name;             ///< Name of the nodes' hardware if a cluster's nodes were measured.
  std::string node_yaml;             ///< The hardware file of the nodes, to be saved next to the cluster file.
};

/// Returns the first faulty row with its reason and, if there are several, their number. Requires `observations` to
/// have a faulty row.
std::string first_fault(const Observations& observations);

/// Fits the observations. `base` is the machine that `base_name` names; parameters that the rows do not determine keep
/// the base's values. An executor's machine has no data sheet, so its peaks are the fastest measured rates.
/// `written_by` is the command that the file names as its origin. Throws ConfigError when there is nothing to fit.
Calibration calibrate(const Machine& base, const std::string& base_name, const std::string& name,
                      const Observations& observations, const std::string& written_by = "commfuse-sim calibrate");

}  // namespace commfuse::calibrate
