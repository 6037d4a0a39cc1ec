// SPDX-License-Identifier: Apache-2.0
// Turns the settings of a point into its rows of results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

/// Words that rows share. Until forget(), all rows must have the same machine, prices and jitter.
class SharedWords {
 public:
  /// Returns the kinds of provenance that a schedule's times depend on: "prior+fitted".
  const std::string& provenances(const Point& point, const Structure& structure);
  /// Puts a schedule of these kinds of sites into the row.
  void put_schedule(ResultRow& row, const std::vector<SiteKind>& kinds, const Strategy& strategy,
                    const StrategyOptions& options);
  /// Forgets the provenances. Must be called when the machine, the prices or the jitter change.
  void forget();

 private:
  std::map<const Structure*, std::string> provenances_;
  struct Schedule {
    std::vector<SiteKind> kinds;
    const Strategy* strategy = nullptr;
    StrategyOptions options;
    std::string parameters;
    OptionSet relevant;
  };
  std::optional<Schedule> schedule_;  // belongs to the last row
};

/// Runs points on one thread, and keeps what later points can share with earlier ones. `for_each` runs the samples
/// under jitter, perhaps on several threads.
class PointRunner {
 public:
  /// The library and the structures must outlive the runner, and the library must have loaded everything that the
  /// settings of all points name.
  PointRunner(const Library& library, StructureCache& structures, ForEachIndex for_each = nullptr);

  /// Returns the rows of the generated schedules, then of the implementations in the setting `as`, then of the files
  /// that belong to the point. A schedule or point that cannot run yields a row with the reason; with `as: all`,
  /// implementations that cannot run are omitted. The rows depend only on the settings.
  std::vector<ResultRow> rows(const Settings& settings);

  /// Throws ConfigError if no generated schedule of the point can be run, and if a named implementation does not cover
  /// the scope.
  void require_runnable(const Settings& settings);

 private:
  /// Parts of the last point that the next one shares if no setting that affects them differs.
  enum Part : std::uint8_t { of_point = 1, of_sizes = 2, of_candidates = 4, of_implementations = 8 };

  /// Notes the settings, and forgets the parts of the last point that they change.
  void note(const Settings& settings);
  const Point& point_at(const Settings& settings);
  const std::vector<Candidates>& candidates_at(const Settings& settings);
  const std::vector<Candidates>& implementations_at(const Settings& settings);

  const Library& library_;
  Predictor predictor_;
  std::vector<std::uint8_t> affected_;  // by field: the parts that it affects
  std::vector<std::string> texts_;      // by field: the last settings
  bool has_sizes_ = false;              // point_ has the last ranks, batch and seq
  std::optional<Point> point_;          // the last point
  SharedWords words_;                   // appear in rows at the last point
  /// Schedules, by the strings on which they depend.
  std::map<std::string, std::vector<Candidates>, std::less<>> candidates_;
  const std::vector<Candidates>* last_candidates_ = nullptr;  // entry of candidates_ of the last point
  std::optional<std::vector<Candidates>> implementations_;    // belong to the last point
};

}  // namespace commfuse
