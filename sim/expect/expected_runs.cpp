// SPDX-License-Identifier: Apache-2.0
#include "sim/expect/expected_runs.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "model/config_error.h"
#include "sim/point/point_runner.h"
#include "sim/step/predict_steps.h"

namespace commfuse::expect {

namespace {

/// Returns a run with the values common to layers and steps. Throws ConfigError if `error` is empty.
ExpectedRun run_with(std::string strategy, Duration time, std::optional<double> error, double false_alarms) {
  if (!error) {
    throw ConfigError("--set uncertainty: ranges need uncertainty; set it to on");
  }
  return {.strategy = std::move(strategy),
          .time = time,
          .error = *error,
          .range = range_of(Expected{.message = {}, .time = time, .shared_error = *error}, false_alarms)};
}

ExpectedRuns layers(const Settings& settings, const Library& library, double false_alarms, std::string& reason) {
  StructureCache structures;
  PointRunner runner(library, structures);
  runner.require_runnable(settings);
  ExpectedRuns expected;
  for (const ResultRow& row : runner.rows(settings)) {
    if (!row.feasible()) {
      reason = row.reason;
    } else if (!row.bound) {
      const std::string strategy =
          row.parameters.empty() ? row.strategy : fmt::format("{} {}", row.strategy, row.parameters);
      // Under jitter, the mean, as for steps.
      const Duration time = row.tails ? row.tails->percentiles.mean.value : row.analysis.critical.makespan;
      ExpectedRun run = run_with(strategy, time, row.makespan_error, false_alarms);
      run.scope = row.scope;
      run.model = row.model;
      run.ranks = row.ranks;
      run.batch = row.batch;
      run.seq = row.seq;
      expected.runs.push_back(std::move(run));
      expected.layers.push_back(row);
    }
  }
  return expected;
}

ExpectedRuns steps(const Settings& settings, const Library& library, double false_alarms, std::string& reason) {
  StepPoints points(library);
  ExpectedRuns expected;
  const auto count = [](const StepRow& row, std::string_view name) { return row.has(name) ? row.count(name) : 0; };
  for (const StepRow& row : points.rows(settings)) {
    if (!row.feasible()) {
      reason = row.text("reason");
      continue;
    }
    std::optional<double> error;
    if (row.has("time_error")) {
      error.emplace(row.number("time_error"));
    }
    ExpectedRun run = run_with(row.text("strategy"), from_seconds(1e-3 * row.number("time_ms")), error, false_alarms);
    run.scope = row.text("scope");
    run.model = row.text("model");
    run.ranks = count(row, "gpus") > 0 ? count(row, "gpus") : count(row, "ranks");
    run.batch = count(row, "batch");
    run.seq = count(row, "seq");
    expected.runs.push_back(std::move(run));
    expected.steps.push_back(row);
  }
  return expected;
}

}  // namespace

ExpectedRuns expected_runs(const Settings& settings, double false_alarms) {
  Library library;
  library.load(settings);
  std::string reason = "no strategy was chosen; choose with --set strategy.name=all";
  ExpectedRuns expected = is_whole_model(settings) ? steps(settings, library, false_alarms, reason)
                                                   : layers(settings, library, false_alarms, reason);
  if (expected.runs.empty()) {
    throw ConfigError(reason);
  }
  return expected;
}

}  // namespace commfuse::expect
