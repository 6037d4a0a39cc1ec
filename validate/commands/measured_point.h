// SPDX-License-Identifier: Apache-2.0
// Shared by `run` and `compare`: settings become schedules with their predictions, and these become measurements.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/record/run_record.h"
#include "sim/commands/setting_flags.h"
#include "sim/point/request.h"
#include "validate/commands/gpu.h"
#include "validate/commands/pace_flags.h"
#include "validate/measure/protocol.h"

namespace CLI {
class App;
}

namespace commfuse::validate {

class Crew;

/// The flags as written on the command line.
struct MeasureArguments {
  sim::SettingArguments settings;
  std::string executor;  // Empty for cpu, or for mpi where there is a crew.
  std::string compute;   // Empty for real on mpi and on a machine of the executor, else for emulated.
  PaceArguments pace;
  GpuArguments gpu;
  std::string dilation = "auto";
  std::string iterations = "25";
  std::string warm_up = "3";
  bool traced = false;
  std::string out;
};

/// Adds the flags. The arguments must outlive the parsing.
void add_measure_flags(CLI::App& command, MeasureArguments& arguments);

/// A point and the schedules that run there. It is neither copied nor moved, because predictions point into the cache.
class PredictedPoint {
 public:
  /// Throws ConfigError, as point_of and Predictor::predict do, and for jitter, faults and interference at run time.
  explicit PredictedPoint(const Settings& settings);
  PredictedPoint(const PredictedPoint&) = delete;
  PredictedPoint& operator=(const PredictedPoint&) = delete;
  ~PredictedPoint() = default;

  /// Returns the best schedule of each strategy that the settings name, or all schedules if they ask for all.
  std::vector<Prediction> asked_for();
  /// Returns the prediction of a schedule that was measured. Throws ConfigError if this program has no such schedule.
  Prediction recorded(const MeasuredRun& run, const std::string& path);

  /// Returns when every op of it runs.
  Timeline timeline(const Prediction& prediction) {
    return predictor_.timeline(point_, *prediction.structure, prediction.sizes);
  }

  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const Point& point() const { return point_; }

 private:
  Settings settings_;
  Library library_;
  Point point_;
  StructureCache structures_;
  Predictor predictor_;
};

/// Returns the settings of files, environment and flags. On a machine of an executor (Machine::executor) the defaults
/// are those of a point that two cores run in a minute, and stderr says so. The second function starts with the
/// record's settings, over which flags take precedence.
Settings settings_of(const MeasureArguments& arguments);
Settings settings_of(const RunRecord& record, const MeasureArguments& arguments);

struct Measured {
  RunRecord record;
  std::string dry_run;  ///< The counts of a dry run, whose record means nothing; otherwise empty.
};

/// Runs the schedules. With --out the record is on disk afterwards, except for a dry run. Throws ConfigError for flags
/// that make no sense. Where ranks are processes, each calls this, and the record is whole, and written, on the leader.
Measured measured(PredictedPoint& point, std::span<const Prediction> predictions, const MeasureArguments& arguments,
                  Crew* crew = nullptr);

/// Throws ConfigError if a flag says how to measure where there is nothing to measure.
void require_no_measuring(const CLI::App& command);

}  // namespace commfuse::validate
