// SPDX-License-Identifier: Apache-2.0
// From the settings of a point to its rows of results.
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

/// Whether generated schedules are tried beside those of the library's files.
bool runs_generated(const Settings& settings, const Library& library);

/// Whether every row has a result.
bool all_feasible(const std::vector<ResultRow>& rows);

/// Runs points on one thread, and keeps what the next point has in common with the last ones.
class PointRunner {
 public:
  /// Both outlive it; the library has loaded what the settings of all points name.
  PointRunner(const Library& library, StructureCache& structures) : library_(library), predictor_(structures) {}

  /// The generated schedules, then those of files that belong to the point. A schedule or point that cannot be run is a
  /// row with its reason. A pure function of the settings.
  std::vector<ResultRow> rows(const Settings& settings);

  /// Throws ConfigError where no generated schedule of the point can be run.
  void require_runnable(const Settings& settings);

 private:
  const Point& point_at(const Settings& settings);
  const std::vector<Candidates>& candidates_at(const Settings& settings);

  const Library& library_;
  Predictor predictor_;
  std::optional<Point> point_;          // the last one,
  std::vector<std::string> made_from_;  // and what it was made from, but for what is put in anew for every point
  std::map<std::string, std::vector<Candidates>, std::less<>> candidates_;  // by what they depend on
};

}  // namespace commfuse
