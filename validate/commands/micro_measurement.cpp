// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/micro_measurement.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "model/build_info.h"
#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "sim/commands/setting_flags.h"
#include "validate/commands/executor_names.h"
#include "validate/commands/real_variant.h"
#include "validate/cpu/cpu_executor.h"
#include "validate/measure/protocol.h"
#include "validate/mpi/launch.h"
#include "validate/mpi/mpi_executor.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate {

namespace {

constexpr std::int64_t usual_threads = 2;
constexpr std::int64_t max_threads = 16;

MakeExecutor maker_of(const MicroWhere& where) {
  if (where.gpus) {
    return where.gpus->timed();
  }
  if (where.crew != nullptr) {
    return [crew = where.crew](Lowered lowered, Sizes sizes) {
      return std::make_unique<MpiExecutor>(std::move(lowered), std::move(sizes), *crew);
    };
  }
  if (where.gpu) {
    return where.gpu->timed();
  }
  return [pace = where.pace](Lowered lowered, Sizes sizes) {
    return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), CpuOptions{.pace = pace});
  };
}

std::int32_t ranks_of(const std::string& text, std::int64_t usual, std::int64_t fewest, std::int64_t max_ranks) {
  if (text.empty()) {
    return static_cast<std::int32_t>(std::max(usual, fewest));
  }
  const std::optional<std::int64_t> ranks = parse_integer(text);
  if (!ranks || *ranks < fewest || *ranks > max_ranks) {
    throw ConfigError(fmt::format("--ranks: {} is not a whole number from {} to {}; write one, as in --ranks {}",
                                  in_quotes(text), fewest, max_ranks, std::min(max_ranks, usual_threads)));
  }
  return static_cast<std::int32_t>(*ranks);
}

}  // namespace

void show_progress(std::size_t done, std::size_t measurements) {
  if (::isatty(STDERR_FILENO) != 0 && (done % 16 == 0 || done == measurements)) {
    fmt::print(stderr, "\r{} of {} measurements{}", done, measurements, done == measurements ? "\n" : "");
  }
}

bool MicroWhere::takes_part() const { return crew == nullptr || crew->process() < ranks; }
bool MicroWhere::is_dry() const { return gpu != nullptr && gpu->is_dry(); }
std::vector<DeviceReading> MicroWhere::readings(const std::string& when) const {
  return gpus ? gpus->readings(when) : gpu ? std::vector{gpu->reading(when)} : std::vector<DeviceReading>{};
}
bool MicroWhere::leads() const { return crew == nullptr || crew->leads(); }

void add_where_flags(CLI::App& command, MicroArguments& arguments) {
  usual(offers_words(command
                         .add_option("--executor", arguments.executor,
                                     "Executor of the ops: cpu (ranks and lanes are threads), cuda-virtual (virtual "
                                     "ranks on one GPU), mpi (ranks are processes, the default under mpirun), nccl (a "
                                     "GPU per process) or cuda-peer (as nccl, by copies into peers' memory)")
                         ->default_str("cpu"),
                     {"cpu", "cuda-virtual", "cuda-peer", "mpi", "nccl"}));
  usual(command
            .add_option("--ranks", arguments.ranks,
                        "Ranks that run each op simultaneously; under mpirun, by default all processes")
            ->default_str("2")
            ->type_name("COUNT"));
  add_pace_flags(command, arguments.pace, "Options");
  add_gpu_flags(command, arguments.gpu, "On a GPU");
}

void add_micro_flags(CLI::App& command, MicroArguments& arguments) {
  add_where_flags(command, arguments);
  usual(offers_words(command
                         .add_option("--dtype", arguments.dtypes,
                                     "bf16, fp16, fp32 or several, comma-separated; messages use the first")
                         ->capture_default_str()
                         ->type_name("WORDS"),
                     {"bf16", "fp16", "fp32"}));
  usual(offers_words(command
                         .add_option("--only", arguments.parts,
                                     "Ops to time: all, or some of products,kernels,gaps,messages,neighbours")
                         ->capture_default_str()
                         ->type_name("WORDS"),
                     {"all", "products", "kernels", "gaps", "messages", "neighbours"}));
  usual(command.add_flag("--quick", arguments.quick, "Measure fewer sizes"));
}

std::vector<DType> dtypes_of(const std::string& list) {
  std::vector<DType> chosen;
  for (const std::string_view word : split_list(list)) {
    const auto* const dtype = std::ranges::find_if(
        all_dtypes, [&](DType candidate) { return can_store(candidate) && name_of(candidate) == word; });
    if (dtype == all_dtypes.end()) {
      throw ConfigError(fmt::format("--dtype: {} is not available; choose from bf16, fp16, fp32", in_quotes(word)));
    }
    if (std::ranges::find(chosen, *dtype) == chosen.end()) {
      chosen.push_back(*dtype);
    }
  }
  return chosen;
}

namespace {

/// Returns the parts that a list names. Throws ConfigError for an unknown one.
std::vector<BenchPart> parts_of(const std::string& list) {
  std::vector<BenchPart> parts;
  if (list == "all") {
    return parts;
  }
  std::array<std::string_view, bench_parts.size()> names;
  std::ranges::transform(bench_parts, names.begin(), [](const auto& part) { return part.first; });
  for (const std::string_view word : split_list(list)) {
    sim::require_word("--only", word, names, "op");
    parts.push_back(std::ranges::find(bench_parts, word, [](const auto& part) { return part.first; })->second);
  }
  return parts;
}

}  // namespace

MicroWhere where_of(const MicroArguments& arguments, Launch& launch, std::int64_t fewest) {
  if (!arguments.executor.empty()) {
    sim::require_word("--executor", arguments.executor, timed_executors, "executor");
  }
  MicroWhere where{.pace = pace_of(arguments.pace)};
  const std::optional<CrewLinks> links = crew_links_of(arguments.executor);
  if (links || arguments.executor == "mpi" || (arguments.executor.empty() && launch.under_mpi())) {
    if (where.pace) {
      throw ConfigError("rank processes send over real links; remove --link-bandwidth and --link-latency");
    }
    where.crew = links ? &launch.crew_anyhow(default_patience) : &launch.crew(default_patience);
    const int processes = where.crew->processes();
    if (processes < fewest) {
      throw ConfigError(fmt::format("this command needs {} ranks, but {} process runs; start more, as in mpirun -np {}",
                                    fewest, processes, fewest));
    }
    where.ranks = ranks_of(arguments.ranks, processes, fewest, processes);
    if (links && where.takes_part()) {
      where.gpus = std::make_shared<GpuCrew>(arguments.gpu, *where.crew, where.ranks, *links);
    }
  } else {
    where.ranks = ranks_of(arguments.ranks, usual_threads, fewest, max_threads);
    if (arguments.executor == "cuda-virtual") {
      where.gpu = std::make_shared<Gpu>(arguments.gpu, where.pace);
    }
  }
  return where;
}

namespace {

/// Adds what is known about the GPUs once they have run.
void note_gpus(const MicroWhere& where, bool all_finished, Environment& environment) {
  if (!where.gpu && !where.gpus) {
    return;
  }
  environment.gpu = where.gpu ? where.gpu->in_words() : where.gpus->in_words();
  environment.attention = where.gpu ? where.gpu->attention_by() : where.gpus->attention_by();
  environment.variables = gpu_variables();
  if (all_finished) {
    for (DeviceReading& reading : where.readings("after")) {
      environment.devices.push_back(std::move(reading));
    }
  }
  if (where.leads()) {
    where.gpu ? where.gpu->note_attention() : where.gpus->note_attention();
  }
}

}  // namespace

int MicroRecord::print_failures() const {
  for (const std::string& failure : failures) {
    fmt::print(stderr, "{}\n", failure);
  }
  return failures.empty() ? exit_code::done : exit_code::failed_points;
}

MicroRecord micro_measured(const MicroWhere& where, const std::vector<MicroProgram>& programs, BenchOptions options) {
  options.alone = where.crew == nullptr;
  RunRecord record{.executor = where.gpus              ? where.gpus->executor()
                               : where.crew != nullptr ? "mpi"
                               : where.gpu             ? "cuda-virtual"
                                                       : "cpu",
                   .compute = "real",
                   .links = where.gpus              ? where.gpus->links()
                            : where.crew != nullptr ? "mpi"
                            : where.gpu             ? where.gpu->links()
                            : where.pace            ? "paced"
                                                    : "copied",
                   .version = std::string(build_info().version),
                   .git_revision = std::string(build_info().git_revision),
                   .environment = this_environment(),
                   .settings = {{"ranks", fmt::format("{}", where.ranks)}},
                   .noise = noise_floor(where.crew != nullptr ? 1 : where.ranks)};
  if (where.crew != nullptr) {
    record_hosts(*where.crew, where.ranks, record.environment);
  }
  record.environment.devices = where.readings("before");
  const BenchResult result = bench(programs, options, maker_of(where), where.leads() ? show_progress : nullptr);
  record.micro_benchmarks = result.measured;
  note_gpus(where, options.alone || result.failures.empty(), record.environment);
  // The leader reports the measurements so far; it learns of the other processes' failures when they exit.
  if (!result.failures.empty() && (record.micro_benchmarks.empty() || !where.leads())) {
    throw std::runtime_error(result.failures.front());
  }
  return {std::move(record), result.failures};
}

MicroRecord micro_measured(const MicroWhere& where, const MicroArguments& arguments) {
  const BenchPlan plan{.ranks = where.ranks,
                       .dtypes = dtypes_of(arguments.dtypes),
                       .parts = parts_of(arguments.parts),
                       .quick = arguments.quick,
                       .gpu = where.gpu || where.gpus};
  const std::vector<MicroProgram> programs = micro_programs(plan);
  if (programs.empty()) {
    throw ConfigError(
        fmt::format("--only {}: messages need at least two ranks; raise --ranks, or time other ops", arguments.parts));
  }
  return micro_measured(where, programs, {.enough = std::chrono::milliseconds(20), .seed = 1});
}

}  // namespace commfuse::validate
