// SPDX-License-Identifier: Apache-2.0
// Predicts the times of layers and steps of a model on a machine, as `commfuse-sim run` does, with the range that
// healthy measurements keep to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config/settings.h"
#include "model/expect/expectation.h"

namespace commfuse::expect {

struct ExpectedRun {
  std::string scope;  ///< "layer", "step"
  std::string model;
  std::string strategy;  ///< With its parameters, "sliced k=4".
  std::int64_t ranks = 0;
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  Duration time{};
  double error = 0.0;  ///< One standard error of ln(time).
  ExpectedRange range;
};

/// One row a strategy that can be run, in the order of `run`; limits that no schedule reaches are left out. `settings`
/// are of one point. Throws ConfigError as `run` does, where no strategy can be run, and where `uncertainty` is off.
std::vector<ExpectedRun> expected_runs(const Settings& settings, double false_alarms);

}  // namespace commfuse::expect
