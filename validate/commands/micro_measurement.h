// SPDX-License-Identifier: Apache-2.0
// Shared by `bench`, `calibrate` and `links`: flags become a record of single ops.
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

/// The flags as written on the command line.
struct MicroArguments {
  std::string executor;  // Empty: mpi under mpirun, else cpu.
  std::string ranks;     // Empty: the number of processes, or 2 threads.
  std::string dtypes = "bf16";
  std::string parts = "all";
  PaceArguments pace;
  GpuArguments gpu;
  bool quick = false;
};

/// Adds --executor, --ranks, --link-bandwidth, --link-latency and the flags of GPU executors. The arguments must
/// outlive the parsing.
void add_where_flags(CLI::App& command, MicroArguments& arguments);
/// Adds the flags of add_where_flags(), --dtype, --only and --quick.
void add_micro_flags(CLI::App& command, MicroArguments& arguments);

/// The executor that measures, and its number of ranks.
struct MicroWhere {
  std::int32_t ranks = 2;
  std::optional<Pace> pace{};
  Crew* crew = nullptr;        ///< Ranks are processes.
  std::shared_ptr<Gpu> gpu{};  ///< Ranks are virtual ranks of this GPU.
  /// Ranks are processes with a GPU each, and `crew` is set too. If all three pointers are null, ranks are threads.
  std::shared_ptr<GpuCrew> gpus{};

  /// Returns true if this process has a rank.
  [[nodiscard]] bool takes_part() const;
  /// Returns true if this process gets the measurements of all ranks.
  [[nodiscard]] bool leads() const;
  /// Returns true if the device only counts its calls; only Gpu::dry_run_in_words() is then to be reported.
  [[nodiscard]] bool is_dry() const;
  /// Returns clocks and power of all GPUs; the list is complete only on the leader. All ranks must call it. `when` is
  /// "before" or "after".
  [[nodiscard]] std::vector<DeviceReading> readings(const std::string& when) const;
};

/// Starts MPI and opens this process's GPU if the flags require it. Throws ConfigError for invalid flags and for fewer
/// than `fewest` ranks, and HardwareAbsent without a usable GPU.
MicroWhere where_of(const MicroArguments& arguments, Launch& launch, std::int64_t fewest = 1);

struct MicroRecord {
  RunRecord record;
  std::vector<std::string> failures;  ///< A sentence for each op that could not be measured.

  /// Prints the failures and returns the exit code of a command that has reported everything else.
  [[nodiscard]] int print_failures() const;
};

/// Overwrites one line with the progress, on a terminal only.
void show_progress(std::size_t done, std::size_t measurements);

/// Returns the dtypes that --dtype lists. Throws ConfigError for an unknown one.
std::vector<DType> dtypes_of(const std::string& list);

/// Measures the programs now; prints progress on stderr if that is a terminal. Throws std::runtime_error if nothing
/// could be measured or, on a process that does not lead, if the bench stopped early. All ranks must call it; the
/// record is complete if where.leads(). Requires where.takes_part().
MicroRecord micro_measured(const MicroWhere& where, const std::vector<MicroProgram>& programs, BenchOptions options);
/// Measures the programs that --dtype, --only and --quick select.
MicroRecord micro_measured(const MicroWhere& where, const MicroArguments& arguments);

}  // namespace commfuse::validate
