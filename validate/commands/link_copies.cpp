// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/link_copies.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>

#include "model/build_info.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/text/counted.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "model/wrapped.h"
#include "sim/commands/setting_flags.h"
#include "validate/bench/copies.h"
#include "validate/commands/gpu.h"
#include "validate/measure/protocol.h"
#include "validate/verdict/tool_results.h"

namespace commfuse::validate {

namespace {

/// At 1 GB/s, a hundred copies of 256 MiB take half of this time.
constexpr Duration patience_of_copies = std::chrono::seconds(60);
constexpr std::array<std::string_view, 3> engines{"all", "ce", "sm"};

/// Returns the number of GPUs that --ranks requests; by default, all visible ones.
int gpus_of(const CopyRequest& request, int visible) {
  if (request.ranks.empty()) {
    return visible;
  }
  const std::optional<std::int64_t> gpus = parse_integer(request.ranks);
  if (!gpus || *gpus < 1 || *gpus > visible) {
    throw ConfigError(fmt::format("--ranks: {} is not a number of visible GPUs, 1 to {}; write one, as in --ranks {}",
                                  in_quotes(request.ranks), visible, visible));
  }
  return static_cast<int>(*gpus);
}

CopyPlan plan_of(const CopyRequest& request) {
  CopyPlan plan{.sizes = request.sizes, .by_engines = false, .by_kernels = false, .both_ways = request.both_ways};
  for (const std::string_view word : split_list(request.arguments.by)) {
    sim::require_word("--copies", word, engines, "engine");
    plan.by_engines = plan.by_engines || word != "sm";
    plan.by_kernels = plan.by_kernels || word != "ce";
  }
  return plan;
}

}  // namespace

void add_copy_flag(CLI::App& command, CopyArguments& arguments) {
  usual(offers_words(
      command
          .add_option("--copies", arguments.by,
                      "Time copies between GPUs, and between GPUs and host: all, ce (copy engines), sm (kernels)")
          ->type_name("WORDS"),
      {"all", "ce", "sm"}));
}

void refuse_gpu_flags(const CLI::App& command) {
  for (const char* flag : gpu_flags()) {
    if (command.get_option_no_throw(flag) != nullptr && command.count(flag) > 0) {
      throw ConfigError(fmt::format(
          "{} cannot be combined with --copies, which uses all visible GPUs; choose them by CUDA_VISIBLE_DEVICES",
          flag));
    }
  }
}

MicroRecord copies_measured(const CopyRequest& request) {
  CopyPlan plan = plan_of(request);
  const CudaPlugin plugin = usable_plugin();
  plan.gpus = gpus_of(request, plugin.module->devices());
  std::vector<DeviceFacts> facts;
  for (int gpu = 0; gpu < plan.gpus; ++gpu) {
    facts.push_back(plugin.module->open(gpu)->facts());
  }
  if (facts.front().is_software()) {
    note_software_gpu();
  }
  RunRecord record{.executor = "cuda",
                   .compute = "real",
                   .links = "copies",
                   .version = std::string(build_info().version),
                   .git_revision = std::string(build_info().git_revision),
                   .environment = this_environment(),
                   .settings = {{"ranks", fmt::format("{}", plan.gpus)}}};
  const auto read_devices = [&](const std::string& when) {
    for (std::size_t gpu = 0; gpu < facts.size(); ++gpu) {
      record.environment.devices.push_back(device_reading(facts[gpu].uuid, when, static_cast<int>(gpu)));
    }
  };
  read_devices("before");
  const std::unique_ptr<Copier> copier = plugin.module->make_copier(patience_of_copies);
  const BenchResult result = time_copies(copy_programs(plan, *copier), request.options, *copier, show_progress);
  read_devices("after");
  record.micro_benchmarks = result.measured;
  record.environment.gpu = fmt::format("{}; {}", in_words(facts.front()), counted(plan.gpus, "GPU"));
  record.environment.variables = gpu_variables();
  if (record.micro_benchmarks.empty() && !result.failures.empty()) {
    throw std::runtime_error(result.failures.front());
  }
  return {std::move(record), result.failures};
}

std::vector<CopyJudgement> judged_copies(const RunRecord& record, const Machine& machine, double false_alarms) {
  const ToolResults results = results_of(record);
  for (const std::string& sentence : results.passed_over) {
    fmt::print(stderr, "not judged: {}\n", sentence);
  }
  return results.copies.empty() ? std::vector<CopyJudgement>{} : judge_copies(machine, results.copies, false_alarms);
}

std::string in_words(const std::vector<CopyJudgement>& judgements, const std::string& machine) {
  std::string text;
  for (const CopyJudgement& judgement : judgements) {
    text += wrapped(fmt::format("against {}: copies {} are {}: {} of them, {:.1f} GB/s, {:.1f} expected", machine,
                                judgement.wires, name_of(judgement.health), judgement.copies,
                                judgement.measured.value / 1e9, judgement.expected.value / 1e9),
                    "", "  ");
    for (const SuspectedCopies& suspect :
         judgement.health == Health::bad ? judgement.suspects : std::vector<SuspectedCopies>{}) {
      text += wrapped(fmt::format("{} at {:.2f} of the rate ({:.0f}%): {}", suspect.subject, suspect.rate_share,
                                  100.0 * suspect.probability, suspect.fault->summary),
                      "  ", "    ");
      text += fmt::format("    next: {}\n", suspect.fault->next);
    }
  }
  return text;
}

}  // namespace commfuse::validate
