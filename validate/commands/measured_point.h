// SPDX-License-Identifier: Apache-2.0
// Shared by `run` and `compare`: settings become schedules with their predictions, and these become measurements.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/record/run_record.h"
#include "sim/commands/schedule_files.h"
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
  sim::ScheduleArguments schedules;
  std::string executor;  // Empty: mpi if there is a crew, else cpu.
  std::string compute;   // Empty: real on processes, on cuda-virtual and on hardware of the executor, else emulated.
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
  /// The schedules of files must belong to the point (sim::fitted), or be those among which recorded() searches. Throws
  /// ConfigError as point_of and Predictor::predict do, for jitter, faults and interference at run time, and for
  /// experts and sliding windows of attention, which executors do not have.
  explicit PredictedPoint(const Settings& settings, std::vector<HandWritten> schedules = {});
  PredictedPoint(const PredictedPoint&) = delete;
  PredictedPoint& operator=(const PredictedPoint&) = delete;
  ~PredictedPoint() = default;

  /// Returns the best schedule of each strategy that the settings name, or all schedules if the settings request all;
  /// then the schedules of files. With files, strategies run only if the user names them. Among several strategies,
  /// leaves out bounds, and those that cannot run at this point unless they are named or serial.
  std::vector<Prediction> requested();
  /// Returns the prediction of a schedule that was measured. Throws ConfigError if this program has no such schedule.
  Prediction recorded(const MeasuredRun& run, const std::string& path);

  /// Returns the start and the end of every op of a schedule.
  Timeline timeline(const Prediction& prediction) {
    return predictor_.timeline(point_, *prediction.structure, prediction.sizes);
  }

  /// Returns the file of a predicted schedule; null for a generated schedule.
  [[nodiscard]] const HandWritten* file_of(const Prediction& prediction) const;

  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const Point& point() const { return point_; }

 private:
  Settings settings_;
  std::vector<HandWritten> schedules_;
  Library library_;
  Point point_;
  StructureCache structures_;
  Predictor predictor_;
};

/// Returns the settings from files, environment and flags. If the hardware is that of an executor (Machine::executor),
/// the defaults describe a point that two cores run in a minute, and a line on stderr states them. The second function
/// starts from the settings of the record at `path`; other sources may change only the machine and other settings of
/// prices. Throws ConfigError if they change what was measured.
Settings settings_of(const MeasureArguments& arguments);
Settings settings_of(const RunRecord& record, const MeasureArguments& arguments, const std::string& path);

/// Returns the settings that choose schedules and that the user gave.
Words given_strategies(const Settings& settings);
/// Returns the settings of the prediction that differ from those of the record at `path`, except the hardware.
Words changed_settings(const RunRecord& record, const std::string& path, const Settings& settings);

struct Measured {
  RunRecord record;
  std::string dry_run;  ///< The counts of a dry run, whose record has no meaning; otherwise empty.
  /// The reason why --out could not be written, for rethrow() after the record is printed; null if it was written.
  std::exception_ptr unwritten;
};

/// Runs the schedules. With --out, also writes the record, except for a dry run. Throws ConfigError for invalid flags,
/// and HardwareAbsent without a usable GPU. Where ranks are processes, each of them must call it; only the leader has
/// the complete record, and writes it.
Measured measured(PredictedPoint& point, std::span<const Prediction> predictions, const MeasureArguments& arguments,
                  Crew* crew = nullptr);

/// Throws ConfigError if a flag that controls measurements was given. Called if nothing is measured.
void refuse_measurement_flags(const CLI::App& command);

}  // namespace commfuse::validate
