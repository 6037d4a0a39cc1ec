// SPDX-License-Identifier: Apache-2.0
// What `run` and `compare` share: settings become schedules with their predictions, and these become measurements.
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

/// As written on the command line.
struct MeasureArguments {
  sim::SettingArguments settings;
  std::string executor;  // empty: cpu, or mpi where there is a crew
  std::string compute;   // empty: real on mpi and on a machine of the executor, else emulated
  PaceArguments pace;
  GpuArguments gpu;
  std::string dilation = "auto";
  std::string iterations = "25";
  std::string warm_up = "3";
  bool traced = false;
  std::string out;
};

/// The arguments must outlive the parsing.
void add_measure_flags(CLI::App& command, MeasureArguments& arguments);

/// A point and the schedules that are played there. Lives at one place: predictions point into the cache.
class PredictedPoint {
 public:
  /// Throws ConfigError, as point_of and Predictor::predict do, and for jitter, faults and interference at run time.
  explicit PredictedPoint(const Settings& settings);
  PredictedPoint(const PredictedPoint&) = delete;
  PredictedPoint& operator=(const PredictedPoint&) = delete;
  ~PredictedPoint() = default;

  /// The best schedule of each strategy asked for, or all, as the settings say.
  std::vector<Prediction> asked_for();
  /// One that was measured. Throws ConfigError when this program has no such schedule.
  Prediction recorded(const MeasuredRun& run, const std::string& path);

  /// When every op of it runs.
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

/// From files, environment and flags; on a machine of an executor (Machine::executor) what nobody chose is a point that
/// two cores do in a minute, and stderr says so. From the record's, below what flags say.
Settings settings_of(const MeasureArguments& arguments);
Settings settings_of(const RunRecord& record, const MeasureArguments& arguments);

struct Measured {
  RunRecord record;
  std::string dry_run;  ///< Of a dry run, whose record means nothing: what was counted; else empty.
};

/// Runs the schedules; with --out the record is on disk afterwards, unless it was a dry run. Throws ConfigError for
/// flags that make no sense. On processes, each of which calls this, the record is whole, and written, on the leader.
Measured measured(PredictedPoint& point, std::span<const Prediction> predictions, const MeasureArguments& arguments,
                  Crew* crew = nullptr);

/// The flags that say how to measure, where there is nothing to measure. Throws ConfigError when one was given.
void require_no_measuring(const CLI::App& command);

}  // namespace commfuse::validate
