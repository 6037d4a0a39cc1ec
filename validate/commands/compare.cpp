// SPDX-License-Identifier: Apache-2.0
// commfuse-validate compare: compares measurements with predictions, and prints a verdict.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/program/names.h"
#include "model/stderr_text.h"
#include "model/text/quantity.h"
#include "model/text/shell_word.h"
#include "model/text/suggest.h"
#include "model/wrapped.h"
#include "reports/atomic_file.h"
#include "reports/export/trace.h"
#include "validate/commands/commands.h"
#include "validate/commands/compared_page.h"
#include "validate/commands/measured_point.h"
#include "validate/commands/output_files.h"
#include "validate/compare/comparison.h"

namespace commfuse::validate {

namespace {

struct CompareRequest {
  MeasureArguments arguments;
  std::string record;
  std::string format = "table";
  std::string limit;
  std::string trace;
  std::string page;
  bool by_op = false;

  [[nodiscard]] bool needs_spans() const { return by_op || !trace.empty(); }
};

/// Returns the predicted timeline of a schedule, then the measured one.
std::vector<reports::TracedRun> timelines_of(const Point& point, const MeasuredRun& run, const Prediction& prediction,
                                             const Timeline& predicted) {
  std::vector<reports::TracedRun> timelines;
  for (const bool is_measured : {false, true}) {
    const ResultRow row{.model = point.model.name,
                        .hardware = point.machine.name,
                        .scope = std::string(name_of(point.scope)),
                        .ranks = point.ranks,
                        .batch = point.batch,
                        .seq = point.seq,
                        .strategy = fmt::format("{} {}", run.strategy, is_measured ? "measured" : "predicted"),
                        .parameters = run.parameters};
    timelines.push_back({.row = row,
                         .program = prediction.structure->plan.lowered.program,
                         .timeline = is_measured ? run.spans : predicted,
                         .sizes = prediction.sizes});
  }
  return timelines;
}

/// Adds the times of ops if the user requested them and the schedule finished. A page shows them whenever the record
/// has them.
void compare_ops(const CompareRequest& request, PredictedPoint& point, const MeasuredRun& run,
                 const Prediction& prediction, Compared& result) {
  std::vector<reports::TracedRun>& timelines = result.timelines.emplace_back();
  if (run.makespans.empty() || (!request.needs_spans() && (request.page.empty() || run.spans.empty()))) {
    return;
  }
  const Timeline predicted = of_measured_ranks(point.timeline(prediction), run.spans);
  if (run.spans.empty() || !same_ops(predicted, run.spans)) {
    throw ConfigError(fmt::format("{}: {} lacks the spans of some ops; measure again with --spans",
                                  request.record.empty() ? "the record" : request.record, run.strategy));
  }
  if (request.by_op) {
    result.schedules.back().ops = compared_ops(prediction.structure->program(), predicted, run.spans);
  }
  timelines = timelines_of(point.point(), run, prediction, predicted);
}

ComparedSchedule compared(const MeasuredRun& run, const Prediction& prediction) {
  ComparedSchedule schedule{.strategy = run.strategy,
                            .parameters = run.parameters,
                            .schedule_sha256 = run.schedule_sha256,
                            .predicted = prediction.analysis.critical.makespan};
  if (!run.makespans.empty()) {
    schedule.makespans = run.makespans;
    schedule.measured = summary_of(run.makespans);
  }
  return schedule;
}

/// Returns a sentence about the first setting with which an emulated run was priced differently from the prediction;
/// empty if there is none.
std::string repriced_in_words(const RunRecord& record, const Settings& settings) {
  for (const auto& [key, value] : record.settings) {
    const Field* field = find_field(key);
    if (field != nullptr && field->type != FieldType::count && settings.at(*field).text != value) {
      return fmt::format(
          "ops slept for prices with {} {}, but the prediction uses {}; remove this setting, or measure again", key,
          value, settings.at(*field).text);
    }
  }
  return "";
}

/// Returns why the times of a record cannot be compared with predictions of a point; empty if they can.
std::string mismatch_in_words(const RunRecord& record, const PredictedPoint& point) {
  if (evidence_of(record) == Evidence::emulated) {
    return repriced_in_words(record, point.settings());
  }
  const bool ran_on_cpus = record.executor == "cpu" || record.executor == "mpi";
  const bool predicted_for_cpus = !point.point().machine.executor.empty();
  if (ran_on_cpus == predicted_for_cpus) {
    return "";
  }
  const std::string hardware = point.settings().text("hardware");
  return ran_on_cpus ? fmt::format(
                           "real compute on CPUs, but predicted for {}; add --hardware cpu, or the file that "
                           "commfuse-validate calibrate wrote",
                           hardware)
                     : fmt::format(
                           "real compute on GPUs, but predicted for {}; add --hardware with the machine of "
                           "these GPUs",
                           hardware);
}

Compared compared_with_new_run(const CompareRequest& request, std::vector<HandWritten> schedules) {
  if (request.arguments.gpu.dry_run) {
    throw ConfigError("--dry-run measures nothing to compare; use it with run");
  }
  const Settings settings = sim::fitted(settings_of(request.arguments), schedules);
  PredictedPoint point(settings, std::move(schedules));
  const std::vector<Prediction> predictions = point.requested();
  MeasureArguments arguments = request.arguments;
  arguments.traced = arguments.traced || request.needs_spans() || !request.page.empty();
  Measured measurement = measured(point, predictions, arguments);
  Compared result{.record = std::move(measurement.record),
                  .hardware = point.settings().text("hardware"),
                  .strategies = given_strategies(settings),
                  .ranks = point.point().ranks,
                  .unwritten = std::move(measurement.unwritten)};
  result.mismatch = mismatch_in_words(result.record, point);
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    result.schedules.push_back(compared(result.record.runs[i], predictions[i]));
    compare_ops(request, point, result.record.runs[i], predictions[i], result);
  }
  return result;
}

Compared compared_with_record(const CompareRequest& request, std::vector<HandWritten> schedules) {
  Compared result{.record = load_run_record(request.record)};
  if (result.record.runs.empty()) {
    throw ConfigError(fmt::format(
        "{}: the record holds no schedule; give a record of run --out, or pass this file to commfuse-sim calibrate",
        request.record));
  }
  PredictedPoint point(settings_of(result.record, request.arguments, request.record), std::move(schedules));
  result.ranks = point.point().ranks;
  result.hardware = point.settings().text("hardware");
  result.changed = changed_settings(result.record, request.record, point.settings());
  result.mismatch = mismatch_in_words(result.record, point);
  for (const MeasuredRun& run : result.record.runs) {
    if (std::ranges::any_of(run.makespans, [](Duration makespan) { return makespan <= Duration{}; })) {
      throw ConfigError(fmt::format("{}: a makespan of {} is 0; measure again", request.record, run.strategy));
    }
    const Prediction prediction = point.recorded(run, request.record);
    result.schedules.push_back(compared(run, prediction));
    compare_ops(request, point, run, prediction, result);
  }
  return result;
}

std::optional<double> limit_of(const CompareRequest& request) {
  if (request.limit.empty()) {
    return std::nullopt;
  }
  const std::optional<double> percent = parse_number(request.limit);
  if (!percent || *percent < 0.0) {
    throw ConfigError(
        fmt::format("--limit: {} is not a percentage; write one, as in --limit 5", in_quotes(request.limit)));
  }
  return *percent / 100.0;
}

/// Returns the flags that determine how a new run is executed and paced, if they differ from their defaults.
std::string run_flags_of(const MeasureArguments& arguments) {
  using Flag = std::pair<const char*, std::string MeasureArguments::*>;
  const MeasureArguments defaults;
  std::string flags;
  const auto add = [&](const char* flag, const std::string& value, const std::string& preset) {
    flags += value == preset ? "" : fmt::format(" {} {}", flag, shell_word(value));
  };
  for (const auto& [flag, member] :
       {Flag{"--executor", &MeasureArguments::executor}, Flag{"--compute", &MeasureArguments::compute},
        Flag{"--dilation", &MeasureArguments::dilation}, Flag{"--iterations", &MeasureArguments::iterations},
        Flag{"--warm-up", &MeasureArguments::warm_up}}) {
    add(flag, arguments.*member, defaults.*member);
  }
  add("--link-bandwidth", arguments.pace.bandwidth, "");
  add("--link-latency", arguments.pace.latency, "");
  using GpuFlag = std::pair<const char*, std::string GpuArguments::*>;
  for (const auto& [flag, member] :
       {GpuFlag{"--device", &GpuArguments::device}, GpuFlag{"--view", &GpuArguments::view},
        GpuFlag{"--issue", &GpuArguments::issue}, GpuFlag{"--l2", &GpuArguments::level2},
        GpuFlag{"--link", &GpuArguments::link}, GpuFlag{"--link-ctas", &GpuArguments::ctas},
        GpuFlag{"--multiprocessors", &GpuArguments::multiprocessors}, GpuFlag{"--partition", &GpuArguments::partition},
        GpuFlag{"--attention-by", &GpuArguments::attention}}) {
    add(flag, arguments.gpu.*member, defaults.gpu.*member);
  }
  return flags;
}

std::string settings_in_words(const Words& settings) {
  std::string words;
  for (const auto& [key, value] : settings) {
    words += fmt::format(" --set {}", shell_word(fmt::format("{}={}", key, value)));
  }
  return words;
}

/// Returns the command that makes the page again. The command names the record and the settings that differ from it or,
/// without a record, every setting of the point and the flags of the run.
std::string command_of(const CompareRequest& request, const Compared& result) {
  const std::string command = "commfuse-validate compare";
  std::string files;
  for (const std::string& file : request.arguments.schedules.files) {
    files += fmt::format(" --schedule {}", shell_word(file));
  }
  for (const std::string& size : request.arguments.schedules.sizes) {
    files += fmt::format(" --size {}", shell_word(size));
  }
  if (!request.record.empty()) {
    return fmt::format("{} {} --hardware {}{}{} --page {}", command, shell_word(request.record),
                       shell_word(result.hardware), settings_in_words(result.changed), files, shell_word(request.page));
  }
  Words settings = result.record.settings;
  settings.insert(settings.end(), result.strategies.begin(), result.strategies.end());
  // A schedule file determines the scope itself.
  std::erase_if(settings, [&](const auto& entry) { return !files.empty() && entry.first == "scope"; });
  return fmt::format("{}{}{}{} --page {}", command, settings_in_words(settings), files, run_flags_of(request.arguments),
                     shell_word(request.page));
}

void write_files(const CompareRequest& request, const Compared& result) {
  if (!request.trace.empty()) {
    std::vector<reports::TracedRun> timelines;
    for (const std::vector<reports::TracedRun>& of_schedule : result.timelines) {
      timelines.insert(timelines.end(), of_schedule.begin(), of_schedule.end());
    }
    reports::write_trace(timelines, request.trace);
  }
  if (!request.page.empty()) {
    reports::atomic_write(request.page, reports::html_report(page_of(result, command_of(request, result))));
  }
}

int run(const CompareRequest& request) {
  sim::require_word("--output", request.format, std::array<std::string_view, 2>{"table", "json"}, "format");
  const std::optional<double> limit = limit_of(request);
  for (const std::string& out : {request.page, request.trace, request.arguments.out}) {
    reports::require_no_input(out, std::array{request.record});
    reports::require_no_input(out, sim::files_named(request.arguments.settings));
    reports::require_no_input(out, request.arguments.schedules.files);
  }
  require_outputs({{"--out", request.arguments.out}, {"--page", request.page}, {"--trace", request.trace}});
  std::optional<std::vector<HandWritten>> schedules = sim::read_schedules(request.arguments.schedules);
  if (!schedules) {
    return exit_code::gate_missed;
  }
  const Compared result = request.record.empty() ? compared_with_new_run(request, *std::move(schedules))
                                                 : compared_with_record(request, *std::move(schedules));
  const bool as_json = request.format == "json";
  const std::exception_ptr unwritten = exception_of([&] { write_files(request, result); });
  const Evidence evidence = evidence_of(result.record);
  fmt::print("{}", as_json ? to_json(result.schedules, evidence) : to_table(result.schedules, evidence));
  if (!as_json && !result.record.noise.samples.empty()) {
    fmt::print("{}", wrapped(fmt::format("Noise floor: {}; {} compute, {}.", in_words(result.record.noise),
                                         result.record.compute, pace_in_words(result.record.dilation)),
                             "", "  "));
  }
  if (!result.mismatch.empty()) {
    fmt::print(stderr, "{}", for_stderr(fmt::format("note: {}\n", result.mismatch)));
  }
  bool is_wrong = false;
  for (const MeasuredRun& measured_run : result.record.runs) {
    is_wrong = is_wrong || measured_run.status == RunStatus::wrong;
    if (measured_run.status != RunStatus::done) {
      fmt::print(stderr, "{}", for_stderr(fmt::format("{}: {}\n", measured_run.strategy, measured_run.message)));
    }
  }
  rethrow(result.unwritten);
  rethrow(unwritten);
  const std::optional<Agreement> agreement = agreement_of(result.schedules);
  if (is_wrong || !agreement || agreement->compared < result.schedules.size()) {
    return exit_code::failed;
  }
  return limit && agreement->median_error > *limit ? exit_code::gate_missed : exit_code::done;
}

}  // namespace

void add_compare(CLI::App& app, int& status) {
  add_verb(app, "compare", "Compare predictions with measurements", [&status](CLI::App& command) {
    const auto request = std::make_shared<CompareRequest>();
    command
        .add_option("RECORD", request->record,
                    "Record of an earlier run (run --out); without one, compare measures now")
        ->type_name("RECORD");
    add_measure_flags(command, request->arguments);
    usual(offers_words(command.add_option("-o,--output", request->format, "table, json")->capture_default_str(),
                       {"table", "json"}));
    usual(command.add_option("--limit", request->limit, "Exit with 4 if the median error is larger, in percent")
              ->type_name("PERCENT"));
    command.add_flag("--by-op", request->by_op,
                     "Also compare by kind of op, summed over ranks, and name the op with the largest error, from one "
                     "more iteration");
    command
        .add_option("--trace", request->trace,
                    "Write predicted and measured timelines next to each other, for ui.perfetto.dev")
        ->type_name("FILE");
    usual(command.add_option("--page", request->page, "HTML file to write: verdict, figure, table, timelines")
              ->type_name("FILE"));
    command.footer(
        "Emulated compute shows whether the order of ops, waits and exchanges on real\n"
        "threads results in the predicted makespan; the prices come from the model.\n"
        "On hardware that commfuse-validate calibrate wrote, ops run for real.\n"
        "\n"
        "Examples:\n"
        "  commfuse-validate compare --seq 8K --ranks 4\n"
        "  commfuse-validate calibrate --out my-cpu.yaml\n"
        "  commfuse-validate compare --hardware ./my-cpu.yaml\n"
        "  commfuse-validate compare --seq 8K --ranks 8 --scope gate_up --limit 5\n"
        "  commfuse-validate compare --seq 8K --ranks 4 --by-op --trace both.json.gz\n"
        "  commfuse-validate compare record.json --page report.html\n"
        "  commfuse-validate compare record.json --hardware my-machine.yaml -o json\n"
        "\n"
        "Exit codes: 0 done; 4 over the limit, or a proof failed; 1 a schedule did not\n"
        "finish, or was wrong; 2 the input is wrong; 69 no GPU is available.");
    command.callback([request, &command, &status] {
      if (!request->record.empty()) {
        refuse_measurement_flags(command);
      }
      require_fitting_gpu_flags(command, request->arguments.executor);
      status = run(*request);
    });
  });
}

}  // namespace commfuse::validate
