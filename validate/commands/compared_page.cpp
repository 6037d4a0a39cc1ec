// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/compared_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "model/build_info.h"
#include "validate/measure/protocol.h"

namespace commfuse::validate {

namespace {

/// Returns a string such as "1 host" or "2 hosts".
std::string with_noun(std::int64_t count, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? singular : plural);
}

std::string levels_in_words(const MeasuredRun& run) {
  if (run.status != RunStatus::done) {
    return run.message;
  }
  std::string text;
  for (const LevelResult& level : run.levels) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", level.level);
  }
  return text;
}

reports::MeasuredSchedule schedule_of(const ComparedSchedule& compared, const MeasuredRun& run,
                                      std::vector<reports::TracedRun> timelines) {
  reports::MeasuredSchedule schedule{.name = compared.name(),
                                     .predicted = compared.predicted,
                                     .levels = levels_in_words(run),
                                     .timelines = std::move(timelines)};
  for (std::size_t i = 0; i < schedule.timelines.size(); ++i) {
    schedule.timelines[i].row.strategy = i == 0 ? "predicted" : "measured";
    schedule.timelines[i].row.parameters.clear();
  }
  if (compared.measured) {
    schedule.median = compared.measured->median;
    schedule.p10 = compared.measured->p10;
    schedule.p90 = compared.measured->p90;
    schedule.rounds = compared.measured->samples;
  }
  return schedule;
}

/// Turns "network_bandwidth" into "network bandwidth", so that a narrow column can wrap it.
std::string key_in_words(std::string key) {
  std::ranges::replace(key, '_', ' ');
  return key;
}

std::vector<std::pair<std::string, std::string>> facts_of(const Compared& compared) {
  const RunRecord& record = compared.record;
  const Environment& environment = record.environment;
  std::vector<std::pair<std::string, std::string>> facts{{"predicted on", compared.hardware}};
  for (const auto& [key, value] : compared.changed) {
    facts.emplace_back("predicted with " + key_in_words(key), value);
  }
  facts.emplace_back("executor",
                     fmt::format("{}, compute {}, links {}", record.executor, record.compute, record.links));
  facts.emplace_back("pace", pace_in_words(record.dilation));
  facts.emplace_back("processor",
                     fmt::format("{}, {}", environment.cpu, with_noun(environment.cores, "core", "cores")));
  facts.emplace_back("system", environment.os);
  facts.emplace_back("build", fmt::format("{}, {}, {} {}", environment.build, environment.compiler, record.version,
                                          record.git_revision));
  if (!environment.mpi.empty()) {
    const std::set<std::string> hosts(environment.hosts.begin(), environment.hosts.end());
    facts.emplace_back("MPI", fmt::format("{}, {} on {}", environment.mpi,
                                          with_noun(std::ssize(environment.hosts), "process", "processes"),
                                          with_noun(std::ssize(hosts), "host", "hosts")));
  }
  facts.emplace_back("warm-up", with_noun(record.warm_up, "iteration", "iterations") + " of every schedule");
  for (const auto& [key, value] : record.settings) {
    facts.emplace_back(key_in_words(key), value);
  }
  return facts;
}

}  // namespace

reports::MeasuredReport page_of(const Compared& compared, const std::string& command) {
  const std::optional<Agreement> agreement = agreement_of(compared.schedules);
  reports::MeasuredReport page{
      .title = "Predicted against measured",
      .verdict = agreement ? verdict_in_words(compared.schedules, *agreement, evidence_of(compared.record))
                           : "No schedule finished.",
      .facts = facts_of(compared),
      .command = command,
      .version = fmt::format("commfuse {}", build_info().version)};
  if (!compared.mismatch.empty()) {
    page.verdict += fmt::format(" Not comparable: {}.", compared.mismatch);
  }
  if (!compared.record.noise.samples.empty()) {
    page.noise = fmt::format("Noise floor: {}.", in_words(compared.record.noise));
  }
  for (std::size_t i = 0; i < compared.schedules.size(); ++i) {
    page.schedules.push_back(schedule_of(compared.schedules[i], compared.record.runs[i], compared.timelines[i]));
  }
  return page;
}

}  // namespace commfuse::validate
