// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/micro_measurement.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "model/build_info.h"
#include "model/config/quantity.h"
#include "model/config/ranges.h"
#include "model/config/suggest.h"
#include "model/config_error.h"
#include "sim/commands/setting_flags.h"
#include "validate/bench/bench.h"
#include "validate/cpu/cpu_executor.h"
#include "validate/measure/protocol.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate {

namespace {

constexpr std::array<std::string_view, 1> executors{"cpu"};
constexpr std::int64_t most_ranks = 16;

std::vector<DType> dtypes_of(const std::string& list) {
  std::vector<DType> chosen;
  for (const std::string_view word : split_list(list)) {
    const auto* const found =
        std::ranges::find_if(all_dtypes, [&](DType one) { return can_store(one) && name_of(one) == word; });
    if (found == all_dtypes.end()) {
      throw ConfigError(fmt::format("--dtype: there is no {} here; choose of bf16, fp16, fp32", in_quotes(word)));
    }
    if (std::ranges::find(chosen, *found) == chosen.end()) {
      chosen.push_back(*found);
    }
  }
  return chosen;
}

/// On a terminal, one line that is written over.
void show_progress(std::size_t done, std::size_t visits) {
  if (::isatty(STDERR_FILENO) != 0 && (done % 16 == 0 || done == visits)) {
    fmt::print(stderr, "\r{} of {} measurements{}", done, visits, done == visits ? "\n" : "");
  }
}

}  // namespace

void add_micro_flags(CLI::App& command, MicroArguments& arguments) {
  command.add_option("--executor", arguments.executor, "Who runs it: cpu, ranks and lanes are threads")
      ->capture_default_str();
  command.add_option("--ranks", arguments.ranks, "That do the same at once")->capture_default_str()->type_name("COUNT");
  command
      .add_option("--dtype", arguments.dtypes, "Some of bf16, fp16, fp32, between commas; messages are in the first")
      ->capture_default_str()
      ->type_name("WORDS");
  add_pace_flags(command, arguments.pace, "");
  command.add_flag("--quick", arguments.quick, "A few sizes of everything");
}

RunRecord micro_measured(const MicroArguments& arguments) {
  sim::require_word("--executor", arguments.executor, executors, "executor");
  const std::optional<std::int64_t> ranks = parse_integer(arguments.ranks);
  if (!ranks || *ranks < 1 || *ranks > most_ranks) {
    throw ConfigError(fmt::format("--ranks: {} is no whole number from 1 to {}; write one, as in --ranks 2",
                                  in_quotes(arguments.ranks), most_ranks));
  }
  const BenchPlan plan{
      .ranks = static_cast<std::int32_t>(*ranks), .dtypes = dtypes_of(arguments.dtypes), .quick = arguments.quick};
  const std::optional<Pace> pace = pace_of(arguments.pace);
  RunRecord record{.executor = arguments.executor,
                   .compute = "real",
                   .links = pace ? "paced" : "copied",
                   .version = std::string(build_info().version),
                   .git_revision = std::string(build_info().git_revision),
                   .environment = this_environment(),
                   .settings = {{"ranks", arguments.ranks}},
                   .noise = noise_floor(plan.ranks)};
  const MakeExecutor threads = [&](Lowered lowered, Sizes sizes) {
    return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), CpuOptions{.pace = pace});
  };
  record.micro_benchmarks = bench(micro_programs(plan), {.seed = 1}, threads, show_progress);
  return record;
}

}  // namespace commfuse::validate
