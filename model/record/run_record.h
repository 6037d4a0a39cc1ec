// SPDX-License-Identifier: Apache-2.0
// What an executor measured: one file of runs that compare, calibrate and reports read, whichever executor wrote it.
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
  wrong,   ///< it came to its end, and its numbers missed a level
  failed,  ///< it did not come to its end
};
std::string_view name_of(RunStatus status);

/// How one level of correctness came out: "T0", "T1", "T-int", "T2", "T3".
struct LevelResult {
  std::string level;
  std::int64_t elements = 0;  ///< Compared.
  std::int64_t wrong = 0;
  double worst = 0.0;  ///< T3: the largest error in units of its bound.
  friend bool operator==(const LevelResult&, const LevelResult&) = default;
};

/// Names and values, both as a user writes them: {"seq", "8K"}.
using Words = std::vector<std::pair<std::string, std::string>>;

/// One schedule, iteration after iteration.
struct MeasuredRun {
  std::string strategy;         ///< The bare name.
  Words options;                ///< Of the strategy, those that make a difference.
  std::string parameters;       ///< The same in words, for tables: "k=8".
  std::string schedule_sha256;  ///< Digest of the schedule's canonical text.
  RunStatus status = RunStatus::done;
  std::string message;                ///< Why it failed; else empty.
  std::vector<Duration> makespans{};  ///< By iteration, in the order they were run: the largest of all ranks.
  Timeline spans{};                   ///< Of one traced iteration, which is not among `makespans`; empty: none was.
  std::vector<LevelResult> levels{};  ///< Empty: nothing was compared.
  friend bool operator==(const MeasuredRun&, const MeasuredRun&) = default;
};

/// What of a machine changes what is measured on it.
/// State of one GPU before or after a measurement, as NVIDIA's management library reports it. What the library did not
/// report is missing.
struct DeviceReading {
  std::string when;                         ///< "before" or "after".
  std::int64_t rank = 0;                    ///< 0 where one GPU runs all ranks.
  std::string gpu;                          ///< Its UUID, "GPU-...".
  std::optional<std::int64_t> clock_mhz{};  ///< Clock of the multiprocessors.
  std::optional<std::int64_t> memory_clock_mhz{};
  std::optional<double> power_w{};
  std::optional<std::int64_t> temperature_c{};
  std::string throttle_reasons{};  ///< "none", or "power cap, thermal"; empty: unknown.
  friend bool operator==(const DeviceReading&, const DeviceReading&) = default;
};

struct Environment {
  std::string cpu;  ///< Its model.
  std::int64_t cores = 0;
  std::string os;  ///< Name and release of the kernel.
  std::string compiler;
  std::string build;                     ///< Release or Debug.
  std::string mpi{};                     ///< "Open MPI v4.1.4"; empty: all ranks were in one process.
  std::vector<std::string> hosts{};      ///< By rank, where each is a process; else empty.
  std::string gpu{};                     ///< "NVIDIA H200, 132 SMs, ..., driver 13.0"; empty: none took part.
  std::string attention{};               ///< What computed it there: "cuDNN 9.19.0"; empty: nothing did.
  Words variables{};                     ///< NCCL_* and CUDA_* variables of the environment, by name; only with a GPU.
  std::vector<DeviceReading> devices{};  ///< By rank, before and after the measurement; empty without a GPU.
  friend bool operator==(const Environment&, const Environment&) = default;
};

/// How long an op of `stated` really took, on as many ranks at once as the runs have, before anything else was run.
struct NoiseFloor {
  Duration stated{};
  std::vector<Duration> samples{};
  friend bool operator==(const NoiseFloor&, const NoiseFloor&) = default;
};

inline constexpr std::string_view inside_schedule = "schedule";

/// One op on every rank at once, again and again, alone or beside another one. What it is fitted to prices ops, so
/// no makespan of a schedule is in it.
struct MicroBenchmark {
  std::string op;  ///< "product", "add", "copy", "exchange", "all_gather" and so on; "next", "wake", "transfer": see
                   ///< micro_program.h.
  /// What another lane of the rank does meanwhile: "product", "exchange"; empty: nothing; inside_schedule: all that a
  /// schedule does.
  std::string beside;
  std::string dtype;   ///< Of what is multiplied or moved; empty where nothing is.
  std::int64_t m = 0;  ///< Of a product, as n and k.
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t bytes = 0;  ///< Read and written; of an exchange sent one way; of a collective as nccl-tests counts.
  std::int64_t ranks = 1;
  std::int64_t rank = -1;           ///< Whose time alone this is; of a "transfer" the one that sends. -1: nobody's.
  std::int64_t peer = -1;           ///< Of a "transfer" the rank that receives.
  std::vector<Duration> samples{};  ///< One a repetition: the longest of all ranks; of "next" and "wake" every one.
  friend bool operator==(const MicroBenchmark&, const MicroBenchmark&) = default;
};

struct RunRecord {
  std::string executor;      ///< "cpu", "mpi".
  std::string compute;       ///< "real", or "emulated": ops last as long as they are priced.
  std::string links;         ///< "copied", "paced", "emulated", or "mpi".
  double dilation = 1.0;     ///< Everything emulated was played this much slower; the times here are divided by it.
  std::string version;       ///< Of the program.
  std::string git_revision;  ///< The same.
  Environment environment;
  Words settings;            ///< Of the point, by key.
  std::uint64_t seed = 0;    ///< Of the order in which schedules took turns.
  std::int64_t warm_up = 0;  ///< Iterations of every schedule before the first that counts.
  NoiseFloor noise{};
  std::vector<MeasuredRun> runs{};
  std::vector<MicroBenchmark> micro_benchmarks{};  ///< Empty of a record of schedules.
  friend bool operator==(const RunRecord&, const RunRecord&) = default;
};

/// One JSON object, a field a line; times are whole picoseconds, spans are [rank, op, start, end].
std::string to_json(const RunRecord& record);

/// Reads what to_json() writes; keys that it does not know are passed over. `path` is for messages only. Throws
/// ConfigError: `path:line:col: sentence; remedy` where the text is no JSON, `path: runs[2].status: sentence; remedy`
/// where it is no such record.
RunRecord parse_run_record(const std::string& text, const std::string& path);

/// The file's record. Throws ConfigError as above, and when the file cannot be read or is larger than 256 MiB.
RunRecord load_run_record(const std::string& path);

}  // namespace commfuse
