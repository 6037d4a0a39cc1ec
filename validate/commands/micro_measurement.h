// SPDX-License-Identifier: Apache-2.0
// What `bench`, `calibrate` and `links` share: flags become a record of single ops.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/record/run_record.h"
#include "validate/bench/bench.h"
#include "validate/commands/gpu.h"
#include "validate/commands/pace_flags.h"

namespace CLI {
class App;
}

namespace commfuse::validate {

class Crew;
class Launch;

/// As written on the command line.
struct MicroArguments {
  std::string executor;  // empty: mpi under mpirun, else cpu
  std::string ranks;     // empty: as many as processes, or 2 threads
  std::string dtypes = "bf16";
  std::string parts = "all";
  PaceArguments pace;
  GpuArguments gpu;
  bool quick = false;
};

/// --executor, --ranks, --link-bandwidth and --link-latency. The arguments must outlive the parsing.
void add_where_flags(CLI::App& command, MicroArguments& arguments);
/// These, --dtype and --quick.
void add_micro_flags(CLI::App& command, MicroArguments& arguments);

/// Who measures, and on how many ranks.
struct MicroWhere {
  std::int32_t ranks = 2;
  std::optional<Pace> pace{};
  Crew* crew = nullptr;             ///< Of processes.
  std::shared_ptr<Gpu> gpu{};       ///< Of virtual ranks.
  std::shared_ptr<GpuCrew> gpus{};  ///< Of processes with a GPU each. None of these: threads.

  /// Whether this process has a rank, and whether it has all that was measured in the end.
  [[nodiscard]] bool takes_part() const;
  [[nodiscard]] bool leads() const;
  /// Whether a device only counts what it is given; then there is nothing to report but Gpu::dry_run_in_words().
  [[nodiscard]] bool is_dry() const;
  /// Clocks and power of all GPUs, whole on the leader; all ranks call it. `when`: "before" or "after".
  [[nodiscard]] std::vector<DeviceReading> readings(const std::string& when) const;
};

/// Starts MPI where that is meant. Throws ConfigError for flags that make no sense; `fewest` ranks are needed.
MicroWhere where_of(const MicroArguments& arguments, Launch& launch, std::int64_t fewest = 1);

struct MicroRecord {
  RunRecord record;
  std::vector<std::string> failures;  ///< A sentence for each op that could not be measured.

  /// Prints the failures. The exit code of a command that has reported everything else.
  [[nodiscard]] int said() const;
};

/// Where stderr is a terminal, one line that is written over.
void show_progress(std::size_t done, std::size_t visits);

/// The dtypes that --dtype lists. Throws ConfigError.
std::vector<DType> dtypes_of(const std::string& list);

/// Measures them now; progress goes to stderr where that is a terminal. Throws std::runtime_error where nothing could
/// be measured. All ranks call it; the record is whole where where.leads(). Requires where.takes_part().
MicroRecord micro_measured(const MicroWhere& where, const std::vector<MicroProgram>& programs, BenchOptions options);
/// What --dtype and --quick ask for.
MicroRecord micro_measured(const MicroWhere& where, const MicroArguments& arguments);

}  // namespace commfuse::validate
