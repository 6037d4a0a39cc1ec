// SPDX-License-Identifier: Apache-2.0
// From measurements to a hardware file that extends another one.
#pragma once

#include <string>
#include <vector>

#include "model/fit/fit_quality.h"
#include "model/fit/robust_fit.h"
#include "model/hardware/machine.h"
#include "sim/calibrate/observations.h"

namespace commfuse::calibrate {

/// One measurement beside what the fitted formulas say of it.
struct Residual {
  double measured_us = 0.0;
  double predicted_us = 0.0;
  bool held_back = false;  ///< The fit has not seen it.
};

/// One map of the hardware file and how well it does.
struct FittedPart {
  std::string name;  ///< "GEMMs in bf16", "copies and adds", "attention", "collectives", "exchanges"
  std::string source;
  std::vector<FittedParameter> parameters;
  std::vector<std::string> left{};  ///< Parameters that few rows do not decide: as in the base.
  bool has_few = false;             ///< None of the rows is held back, and the base is the prior.
  double distance = 0.0;            ///< Of few sizes of kernels: how far the machine seems from its base.
  std::vector<Residual> residuals;
  FitQuality fitted;     ///< On the rows of the fit.
  FitQuality held_back;  ///< On those that model/fit/holdout.h keeps back.
  FitScope scope;        ///< What is left, and over which sizes.
  std::string yaml;      ///< Its lines, for where they belong in the file.
};

struct Calibration {
  std::vector<FittedPart> parts;
  std::vector<std::string> skipped;  ///< Sentences: too few rows of a kind.
  std::string yaml;                  ///< The whole file, of a cluster where the base is one.
  std::string node_name;  ///< Of a cluster whose nodes were measured too: what the file calls their hardware.
  std::string node_yaml;  ///< The file of that hardware, to stand beside.
};

/// `base` is what `base_name` names; what the rows leave open stays as it is there. Of an executor's machine nobody
/// knows a data sheet: its peaks are the fastest that was measured. `written_by` says so in the file. Throws
/// ConfigError when there is nothing to fit.
Calibration calibrate(const Machine& base, const std::string& base_name, const std::string& name,
                      const Observations& observations, const std::string& written_by = "commfuse-sim calibrate");

}  // namespace commfuse::calibrate
