// SPDX-License-Identifier: Apache-2.0
// Measurements of an executor: one file of runs. `compare`, `calibrate` and reports read files of all executors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/program/recorder.h"
#include "model/units.h"

namespace commfuse {

inline constexpr std::string_view run_record_schema = "commfuse.record/1";

enum class RunStatus : std::uint8_t {
  done,
  wrong,   ///< it finished, but its numbers failed a level of correctness
  failed,  ///< it did not finish
};
std::string_view name_of(RunStatus status);

/// Result of one level of correctness: "T0", "T1", "T-int", "T2", "T3".
struct LevelResult {
  std::string level;
  std::int64_t elements = 0;  ///< number of compared elements
  std::int64_t wrong = 0;
  double worst = 0.0;  ///< T3: the largest error in units of its bound
  friend bool operator==(const LevelResult&, const LevelResult&) = default;
};

/// Names and values, both as users write them: {"seq", "8K"}.
using Words = std::vector<std::pair<std::string, std::string>>;

/// Measurements of one schedule, iteration by iteration.
struct MeasuredRun {
  std::string strategy;         ///< name without parameters
  Words options;                ///< options of the strategy that make a difference
  std::string parameters;       ///< the options in words, for tables: "k=8"
  std::string schedule_sha256;  ///< digest of the schedule's canonical text
  RunStatus status = RunStatus::done;
  std::string message;                ///< reason for a failure; otherwise empty
  std::vector<Duration> makespans{};  ///< per iteration, in the order of the runs: the largest of all ranks
  /// Spans of one traced iteration, which is not in `makespans`; empty if no iteration was traced.
  Timeline spans{};
  std::vector<LevelResult> levels{};  ///< empty if nothing was compared
  friend bool operator==(const MeasuredRun&, const MeasuredRun&) = default;
};

/// State of one GPU before or after a measurement; a throttled GPU is slower. The values come from NVIDIA's management
/// library; values that it did not report are missing.
struct DeviceReading {
  std::string when;                         ///< "before" or "after"
  std::int64_t rank = 0;                    ///< 0 if one GPU runs all ranks
  std::string gpu;                          ///< its UUID, "GPU-..."
  std::optional<std::int64_t> clock_mhz{};  ///< clock of the multiprocessors
  std::optional<std::int64_t> memory_clock_mhz{};
  std::optional<double> power_w{};
  std::optional<std::int64_t> temperature_c{};
  std::string throttle_reasons{};  ///< "none", or "power cap, thermal"; empty if unknown
  friend bool operator==(const DeviceReading&, const DeviceReading&) = default;
};

struct Environment {
  std::string cpu;  ///< model of the CPU
  std::int64_t cores = 0;
  std::string os;  ///< name and release of the kernel
  std::string compiler;
  std::string build;                     ///< Release or Debug
  std::string mpi{};                     ///< "Open MPI v4.1.4"; empty if all ranks were in one process
  std::vector<std::string> hosts{};      ///< by rank, if each rank is a process; otherwise empty
  std::string gpu{};                     ///< "NVIDIA H200, 132 SMs, ..., driver 13.0"; empty without a GPU
  std::string attention{};               ///< library that computed attention on the GPU: "cuDNN 9.19.0"; empty if none
  Words variables{};                     ///< NCCL_* and CUDA_* variables of the environment, by name; only with a GPU
  std::vector<DeviceReading> devices{};  ///< by rank, before and after the measurement; empty without a GPU
  friend bool operator==(const Environment&, const Environment&) = default;
};

/// Real time of waits of `stated` duration in this process, measured before all other runs.
struct NoiseFloor {
  Duration stated{};
  int threads = 0;  ///< threads that waited simultaneously; 0 if the record does not state it
  std::vector<Duration> samples{};
  friend bool operator==(const NoiseFloor&, const NoiseFloor&) = default;
};

inline constexpr std::string_view inside_schedule = "schedule";

/// One op on every rank simultaneously, repeated, alone or concurrently with another op. The prices of ops are fitted
/// to it, so it contains no makespan of a schedule.
struct MicroBenchmark {
  /// "product", "add", "copy", "exchange", "all_gather" and so on; "next", "wake", "transfer": see micro_program.h;
  /// "host_to_device_memcpy_ce" and so on: see copies.h.
  std::string op;
  /// Concurrent work of another lane of the rank: "product", "exchange"; empty: none; inside_schedule: all ops of a
  /// schedule.
  std::string beside;
  std::string dtype;   ///< dtype of the data that are multiplied or moved; empty without data
  std::int64_t m = 0;  ///< sizes of a GEMM
  std::int64_t n = 0;
  std::int64_t k = 0;
  /// Bytes read and written; for an exchange, bytes sent one way; for a collective, the nccl-tests size.
  std::int64_t bytes = 0;
  std::int64_t ranks = 1;
  /// Rank to which the times belong; for a "transfer" the sender. -1: no single rank.
  std::int64_t rank = -1;
  std::int64_t peer = -1;           ///< receiver of a "transfer"
  bool in_place = false;            ///< a collective whose smaller buffer is the rank's part of the larger one
  std::vector<Duration> samples{};  ///< one per repetition: the longest of all ranks; for "next" and "wake" all times
  friend bool operator==(const MicroBenchmark&, const MicroBenchmark&) = default;
};

struct RunRecord {
  std::string executor;  ///< "cpu", "mpi", "cuda-virtual", "cuda-peer" or "nccl"; "cuda" for copies
  std::string compute;   ///< "real", or "emulated": ops last as long as their price
  std::string links;     ///< way in which bytes moved, for example "copied", "paced", "emulated" or "nccl"
  /// Factor by which all emulated work was slowed down; the times in this record are divided by it.
  double dilation = 1.0;
  std::string version;       ///< version of the program
  std::string git_revision;  ///< revision of the program
  Environment environment;
  Words settings;            ///< settings of the point, by key
  std::uint64_t seed = 0;    ///< seed of the order in which schedules alternated
  std::int64_t warm_up = 0;  ///< iterations of every schedule before the first measured one
  NoiseFloor noise{};
  std::vector<MeasuredRun> runs{};
  std::vector<MicroBenchmark> micro_benchmarks{};  ///< empty for a record of schedules
  friend bool operator==(const RunRecord&, const RunRecord&) = default;
};

/// Returns one JSON object, with one field per line; times are whole picoseconds, spans are [rank, op, start, end].
std::string to_json(const RunRecord& record);

/// Reads the output of to_json(); unknown keys are ignored. `path` is for messages only. Throws ConfigError:
/// `path:line:col: sentence; remedy` if the text is not JSON, `path: runs[2].status: sentence; remedy` if it is not a
/// run record.
RunRecord parse_run_record(const std::string& text, const std::string& path);

/// Returns the file's record. Throws ConfigError like parse_run_record, and when the file cannot be read or is larger
/// than 256 MiB.
RunRecord load_run_record(const std::string& path);

}  // namespace commfuse
