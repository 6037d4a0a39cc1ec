// SPDX-License-Identifier: Apache-2.0
// Turns the settings of a point into its rows of results.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/result.h"
#include "sim/point/request.h"

namespace commfuse {

/// Returns whether generated schedules are tried, in addition to the schedules from the library's files.
bool runs_generated(const Settings& settings, const Library& library);

/// Returns whether every row has a result.
bool all_feasible(const std::vector<ResultRow>& rows);

/// Runs points on one thread, and keeps what later points can share with earlier ones. `for_each` runs the samples
/// under jitter, which may use several threads.
class PointRunner {
 public:
  /// The library and the structures must outlive the runner, and the library must have loaded everything that the
  /// settings of all points name.
  PointRunner(const Library& library, StructureCache& structures, ForEachIndex for_each = nullptr)
      : library_(library), predictor_(structures, for_each) {}

  /// Returns the rows of the generated schedules, then of the files that belong to the point. A schedule or point that
  /// cannot run yields a row with the reason. A pure function of the settings.
  std::vector<ResultRow> rows(const Settings& settings);

  /// Throws ConfigError if no generated schedule of the point can be run.
  void require_runnable(const Settings& settings);

 private:
  const Point& point_at(const Settings& settings);
  const std::vector<Candidates>& candidates_at(const Settings& settings);

  const Library& library_;
  Predictor predictor_;
  std::optional<Point> point_;            // the last point
  std::vector<std::string> point_texts_;  // its settings as texts, except those that are set for every point
  std::map<std::string, std::vector<Candidates>, std::less<>> candidates_;  // by the texts that they depend on
};

}  // namespace commfuse
