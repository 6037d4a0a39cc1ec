// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/one_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/config_error.h"
#include "model/cost/price.h"
#include "model/program_text/load_schedule.h"
#include "model/proof/check_program.h"
#include "model/stderr_text.h"
#include "reports/trace_label.h"
#include "sim/commands/schedule_commands.h"
#include "sim/point/grid.h"
#include "sim/point/request.h"

namespace commfuse::sim {

namespace {

void put_costs(const Point& point, OneSchedule& schedule) {
  if (point.needs_engine()) {
    throw ConfigError("an export has one duration per op; remove faults, and choose --interference static or none");
  }
  schedule.costs = price(schedule.program(), schedule.structure.meetings, schedule.sizes, point.machine, point.price);
}

std::string label_of(const Strategy& strategy, const StrategyOptions& options) {
  return reports::strategy_label(std::string{strategy.name}, strategy.describe(options));
}

/// Returns the only candidate. Throws ConfigError if there are several.
const Candidates& only(const std::vector<Candidates>& candidates) {
  if (candidates.size() == 1) {
    return candidates.front();
  }
  std::vector<std::string> strategies;
  std::vector<std::string> schedules;
  for (const Candidates& candidate : candidates) {
    const std::string name{candidate.strategy->name};
    if (std::find(strategies.begin(), strategies.end(), name) == strategies.end()) {
      strategies.push_back(name);
    }
    schedules.push_back(label_of(*candidate.strategy, candidate.options.front()));
  }
  const bool has_several_strategies = strategies.size() > 1;
  throw ConfigError(fmt::format("a single schedule is required, but these settings choose {}; {}",
                                fmt::join(has_several_strategies ? strategies : schedules, ", "),
                                has_several_strategies
                                    ? "choose a strategy with --strategy"
                                    : "choose one with its options, or remove --variants to take the fastest"));
}

/// Returns the fastest schedule of a strategy at the point, the one that `run` shows.
StrategyOptions chosen(const Candidates& candidate, const Point& point) {
  if (candidate.options.size() == 1) {
    return candidate.options.front();
  }
  require_runnable(point);
  StructureCache structures;
  const StrategyOptions best =
      Predictor(structures).predict_best(point, *candidate.strategy, candidate.options).options;
  fmt::print(
      stderr, "{}",
      for_stderr(fmt::format("using the fastest schedule at this point: {}\n", label_of(*candidate.strategy, best))));
  return best;
}

OneSchedule generated(const OneScheduleArguments& arguments, ScheduleUse use) {
  if (!arguments.files.sizes.empty()) {
    throw ConfigError("--size: the model defines all sizes of a generated schedule; remove --size, or name a file");
  }
  const Settings settings = settings_of_run(arguments.settings);
  Library library;
  library.load(settings);
  const Point point = point_of(settings, library);
  const std::vector<Candidates> candidates = candidates_of(settings);
  const Candidates& candidate = only(candidates);
  const StrategyOptions options = chosen(candidate, point);
  fmt::print(stderr, "{}", for_stderr(note_on_experts(point, use)));
  if (use == ScheduleUse::priced) {
    require_runnable(point);
  }
  OneSchedule schedule{
      structure_of(program_of(point.scope, point.model.gated_mlp, point.ranks, *candidate.strategy, options))};
  if (use == ScheduleUse::priced) {
    schedule.sizes = bind_sizes(schedule.program(), quantities_of(point.model, point.load(), point.ranks));
    put_costs(point, schedule);
  }
  return schedule;
}

/// Returns the schedule of a file, without sizes and costs. Returns nothing if the proof fails, after printing the
/// findings on stderr.
std::optional<OneSchedule> unpriced_file(const OneScheduleArguments& arguments) {
  const SettingArguments& settings = arguments.settings;
  const std::string_view flag = !settings.flags.empty()          ? settings.flags.front().first->flag
                                : !settings.sets.empty()         ? "set"
                                : !settings.files.empty()        ? "config"
                                : !arguments.files.sizes.empty() ? "size"
                                                                 : "";
  if (!flag.empty()) {
    throw ConfigError(
        fmt::format("--{0}: has no effect when a file is exported in a format without times; remove --{0}", flag));
  }
  ScheduleFile file = load_schedule(arguments.files.files.front());
  const std::string findings = in_words(file.path.string(), check_program(file.program));
  if (!findings.empty()) {
    fmt::print(stderr, "{}", findings);
    return std::nullopt;
  }
  return OneSchedule{structure_of(std::move(file.program))};
}

std::optional<OneSchedule> priced_file(const OneScheduleArguments& arguments) {
  std::optional<std::vector<HandWritten>> schedules = read_schedules(arguments.files);
  if (!schedules) {
    return std::nullopt;
  }
  Grid grid;
  grid.settings = settings_of_run(arguments.settings);
  if (names_strategies(grid.settings)) {
    throw ConfigError("a strategy chooses among generated schedules; remove it, or the file");
  }
  fit(grid, *schedules, false);
  const Library library = library_of(grid);
  const Point point = point_of(grid.settings, library);
  require_simulatable(point);
  fmt::print(stderr, "{}", for_stderr(note_on_experts(point, ScheduleUse::priced)));
  Sizes sizes = sizes_at(schedules->front(), point);
  OneSchedule schedule{.structure = std::move(schedules->front().structure), .sizes = std::move(sizes)};
  put_costs(point, schedule);
  return schedule;
}

}  // namespace

std::string note_on_experts(const Point& point, ScheduleUse use) {
  const std::int64_t experts = point.price.experts.count;
  if (experts == 0) {
    return "";
  }
  return use == ScheduleUse::priced
             ? fmt::format("note: durations count the {} experts of {}; operations and tensor sizes do not\n", experts,
                           point.model.name)
             : fmt::format("note: a schedule states no experts: its GEMM has a single weight, not the {} of {}\n",
                           experts, point.model.name);
}

std::optional<OneSchedule> one_schedule(const OneScheduleArguments& arguments, ScheduleUse use) {
  if (arguments.files.files.empty()) {
    return generated(arguments, use);
  }
  if (arguments.files.files.size() > 1) {
    throw ConfigError("a single schedule is required; name one file");
  }
  return use == ScheduleUse::priced ? priced_file(arguments) : unpriced_file(arguments);
}

}  // namespace commfuse::sim
