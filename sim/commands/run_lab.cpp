// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/run_lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/config/choices.h"
#include "model/config_error.h"
#include "model/stderr_text.h"
#include "model/text/counted.h"
#include "model/text/quantity.h"
#include "model/wrapped.h"
#include "sim/engine/load_faults.h"
#include "sim/lab/lab.h"
#include "sim/parallel/parallel.h"
#include "sim/point/request.h"
#include "sim/point/unused_variables.h"

namespace commfuse::sim {

namespace {

constexpr std::array<std::string_view, 2> lab_formats{"table", "json"};

Settings lab_settings_of(const SettingArguments& arguments, Caller& caller) {
  Settings settings = settings_of(arguments);
  caller.note(for_stderr(ignore_unused_variables(settings, Use::lab, "a lab workload")));
  caller.note(for_stderr(notes_on_unused_draws(settings, Use::lab)));
  for (const Field& field : run_fields()) {
    const Origin& origin = settings.at(field).origin;
    const bool is_set = origin.source != Source::preset && origin.source != Source::environment;
    if (is_set && field.of_point && !field.uses.has(Use::lab)) {
      throw ConfigError(fmt::format("{}: a lab workload does not use this setting; remove it, or run without the file",
                                    origin.where));
    }
  }
  if (!arguments.axes.empty()) {
    throw ConfigError("--axis: a lab workload is a single point; run it once per value");
  }
  return settings;
}

std::array<std::pair<std::string_view, Estimate>, 5> estimates(const Percentiles& percentiles) {
  return {{{"mean", percentiles.mean},
           {"p50", percentiles.p50},
           {"p95", percentiles.p95},
           {"p99", percentiles.p99},
           {"p99.9", percentiles.p99_9}}};
}

std::string lab_table(const LabWorkload& lab, const LabRun& run) {
  std::string text =
      wrapped(fmt::format("{}: {}, chunks of {} at {}, {} latency", lab.name, counted(lab.ranks, "rank"),
                          format_size(lab.chunk), bandwidth_in_words(lab.rate), format_duration(lab.latency)),
              "", "  ");
  text += fmt::format("  messages   {:>14}\n  tiles      {:>14}\n", run.messages, run.tiles);
  text += fmt::format("  makespan   {:>14.3f} us\n", to_microseconds(run.makespan));
  text += fmt::format("  evaluator  {:>14}{}\n", word_of(evaluator_choices, run.evaluator),
                      run.simulated_one_rank ? ", one rank represents all" : "");
  if (run.tails) {
    text += fmt::format("  {} under jitter, us      95% interval\n", counted(run.tails->percentiles.samples, "run"));
    for (const auto& [name, estimate] : estimates(run.tails->percentiles)) {
      text += fmt::format("  {:<10} {:>14.3f}    {}\n", name, to_microseconds(estimate.value),
                          estimate.range ? fmt::format("{:.3f}..{:.3f}", to_microseconds(estimate.range->low),
                                                       to_microseconds(estimate.range->high))
                                         : "too few samples");
    }
  }
  return text;
}

std::string lab_json(const LabWorkload& lab, const LabRun& run) {
  nlohmann::ordered_json object{{"schema", "commfuse.lab_result/1"},
                                {"workload", lab.name},
                                {"ranks", lab.ranks},
                                {"messages", run.messages},
                                {"tiles", run.tiles},
                                {"makespan_ps", run.makespan.count()},
                                {"evaluator", word_of(evaluator_choices, run.evaluator)},
                                {"one_rank_for_all", run.simulated_one_rank}};
  if (run.tails) {
    object["samples"] = run.tails->percentiles.samples;
    for (const auto& [name, estimate] : estimates(run.tails->percentiles)) {
      object[fmt::format("{}_ps", name)] = estimate.value.count();
      if (estimate.range) {
        object[fmt::format("{}_low_ps", name)] = estimate.range->low.count();
        object[fmt::format("{}_high_ps", name)] = estimate.range->high.count();
      }
    }
  }
  return nlohmann::ordered_json::array({object}).dump(-1, ' ', false,
                                                      nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace

bool is_lab(const std::string& path) {
  YamlFile file(path);
  return file.root().has("schema") && file.root().text("schema") == lab_schema;
}

Answer run_lab_file(const std::string& path, const SettingArguments& arguments, std::string_view format,
                    Caller& caller) {
  require_word("--output", format, lab_formats, "format");
  const Settings settings = lab_settings_of(arguments, caller);
  const RunChoices run = choices_of(settings);
  LabWorkload lab = load_lab(path);
  if (settings.at(*find_field("ranks")).origin.source != Source::preset) {
    lab.ranks = run.ranks;
  }
  if (settings.at(*find_field("seed")).origin.source != Source::preset) {
    lab.seed = run.seed;
  }
  LabOptions options{.simulation = run.simulation};
  options.monte_carlo = monte_carlo_of(run, load_jitter_tables(run.jitter).tables);
  options.faults = load_faults(run.faults);
  options.for_each = for_each_index;
  LabRun lab_run = run_lab(lab, options);
  return {
      .format = std::string(format),
      .write = [lab = std::move(lab), lab_run = std::move(lab_run)](std::string_view chosen_format, const Sink& sink) {
        require_word("--output", chosen_format, lab_formats, "format");
        sink(chosen_format == "json" ? lab_json(lab, lab_run) : lab_table(lab, lab_run));
      }};
}

}  // namespace commfuse::sim
