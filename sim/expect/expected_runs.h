// SPDX-License-Identifier: Apache-2.0
// Predicts the times of layers and steps of a model on a machine, as `commfuse-sim run` does, with the range of healthy
// measurements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config/settings.h"
#include "model/expect/expectation.h"
#include "model/record/result.h"
#include "model/record/step_row.h"

namespace commfuse::expect {

struct ExpectedRun {
  std::string scope;  ///< A scope of `run`, for example "layer" or "step".
  std::string model;
  std::string strategy;  ///< With its parameters, for example "sliced k=4".
  std::int64_t ranks = 0;
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  Duration time{};     ///< Under jitter, the mean.
  double error = 0.0;  ///< Standard error of ln(time).
  ExpectedRange range;
};

/// Runs, and the rows of `run` from which they come: layers or steps.
struct ExpectedRuns {
  std::vector<ExpectedRun> runs;
  std::vector<ResultRow> layers;
  std::vector<StepRow> steps;
};

/// Returns one run per strategy that can run, in the order of `run`, without lower bounds that no schedule reaches.
/// `settings` must describe one point. Throws ConfigError as `run` does, if no strategy can run, and if `uncertainty`
/// is off.
ExpectedRuns expected_runs(const Settings& settings, double false_alarms);

}  // namespace commfuse::expect
