// SPDX-License-Identifier: Apache-2.0
// commfuse-sim score: compares predictions with tables of measurements.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/meant.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "reports/accuracy.h"
#include "reports/engine_agreement.h"
#include "reports/pays.h"
#include "reports/residuals.h"
#include "reports/score.h"
#include "sim/commands/answer.h"
#include "sim/commands/commands.h"
#include "sim/commands/setting_flags.h"
#include "sim/commands/verdict_score_text.h"
#include "sim/expect/verdict_score.h"
#include "sim/score/engine_agreement.h"
#include "sim/score/implementation_fit.h"
#include "sim/score/kinds.h"
#include "sim/score/score.h"
#include "sim/sweep/progress.h"

namespace commfuse::sim {

namespace {

struct ScoreRequest {
  std::vector<std::string> data;
  std::vector<std::string> hardware;  // Lists of names, as written.
  score::ScoreOptions options;
  std::string format = "table";
  std::string progress = "auto";
  std::optional<double> max_median;  // Fractions, not percentages.
  std::optional<double> max_p90;
  bool dynamic = false;
  bool verdicts = false;
  bool implementations = false;
  bool pairs = false;
  bool rows = false;
};

using Scores = std::vector<TableScore>;

constexpr std::array<std::string_view, 3> score_formats{"table", "json", "markdown"};

/// Returns the progress display. `caller` must outlive the display.
Progress progress_of(const ScoreRequest& request, Caller& caller, std::size_t total, std::string_view noun) {
  const auto start = std::chrono::steady_clock::now();
  return Progress(
      progress_form(request.progress, caller.shows_bars()), total,
      [start] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start); },
      [&caller](const std::string& text) { caller.progress(text); }, noun);
}

std::vector<std::filesystem::path> tables_of(const ScoreRequest& request) {
  return score::tables_in(request.data.empty() ? std::vector{score::published_tables().string()} : request.data);
}

Scores scores_of(const ScoreRequest& request, Caller& caller) {
  const auto tables = tables_of(request);
  Progress progress = progress_of(request, caller, tables.size(), "tables");
  Scores scores = score::score_tables(tables, request.options, [&] { progress.finished(true); });
  progress.end();
  return scores;
}

/// Returns a line for every table over the limit. A table without scored rows is never over the limit.
std::string lines_over_limit(const Scores& scores, std::optional<double> limit, std::string_view statistic,
                             double ErrorSummary::*member) {
  std::string text;
  for (const TableScore& score : scores) {
    const ErrorSummary summary = summary_of(score.errors);
    if (limit && summary.n > 0 && summary.*member > *limit) {
      text += fmt::format("{}: {} {:.2f}% is over {:.2f}%\n", score.table, statistic, 100.0 * summary.*member,
                          100.0 * *limit);
    }
  }
  return text;
}

void require_kind(const std::string& name) {
  std::vector<std::string_view> names;
  for (const score::Kind& kind : score::kinds()) {
    if (!kind.name.empty() && std::ranges::find(names, kind.name) == names.end()) {
      names.push_back(kind.name);
    }
  }
  if (std::ranges::find(names, name) == names.end()) {
    throw ConfigError(fmt::format("--kind: unknown kind {}; {}", in_quotes(name), remedy_for(name, names, "kinds")));
  }
}

/// Returns the name in configs/hardware that a word of --hardware means. Throws ConfigError for other words.
std::string node_meant(std::string_view word) {
  const std::string name = meant_name(Catalogue::hardware, word);
  const std::vector<std::string> nodes = known_names(Catalogue::nodes);
  if (std::ranges::find(nodes, name) != nodes.end()) {
    return name;
  }
  const std::vector<std::string> machines = known_names(Catalogue::hardware);
  if (std::ranges::find(machines, name) != machines.end() || sized_cluster(name)) {
    throw ConfigError(fmt::format(
        "--hardware: {} is a cluster; name the hardware of its nodes, such as h100-sxm, which includes rows "
        "of several nodes",
        in_quotes(word)));
  }
  const std::vector<std::string_view> names(nodes.begin(), nodes.end());
  throw ConfigError(
      fmt::format("--hardware: unknown hardware {}; {}", in_quotes(word), remedy_for(word, names, "hardware")));
}

std::vector<std::string> nodes_meant(const std::vector<std::string>& lists) {
  std::vector<std::string> nodes;
  for (const std::string& list : lists) {
    for (const std::string_view word : split_list(list)) {
      nodes.push_back(node_meant(word));
    }
  }
  return nodes;
}

/// Returns the tables with scored or faulty rows if the user named hardware; without --hardware, all tables.
Scores of_hardware(const ScoreRequest& request, Scores scores) {
  if (!request.hardware.empty()) {
    std::erase_if(scores, [](const TableScore& score) { return score.scored == 0 && score.fault_count == 0; });
  }
  return scores;
}

/// Throws ConfigError if a file that the user named is of no known kind. Folders may contain other files.
void require_tables(const ScoreRequest& request, const Scores& scores) {
  for (const TableScore& score : scores) {
    if (score.note == score::of_no_kind && std::ranges::find(request.data, score.path) != request.data.end()) {
      throw ConfigError(
          fmt::format("{}:1: {}; the first line names them, as in hw,dtype,m,n,k,time_us", score.path, score.note));
    }
  }
}

/// Returns the first reason for skipping a row, in parentheses.
std::string first_reason(const Scores& scores) {
  for (const TableScore& score : scores) {
    if (!score.skipped.empty()) {
      return fmt::format(" ({})", score.skipped.front().reason);
    }
  }
  return "";
}

/// Throws ConfigError if nothing was scored although a limit, a kind or hardware is given; otherwise a limit would
/// seem to be met. Faulty rows are reported elsewhere.
void require_scored(const ScoreRequest& request, const Scores& scores) {
  const auto any = [&](const auto& holds) { return std::ranges::any_of(scores, holds); };
  if (any([](const TableScore& score) { return score.fault_count > 0; })) {
    return;
  }
  if (!request.hardware.empty() && !any([](const TableScore& score) { return score.scored > 0; })) {
    throw ConfigError(fmt::format(
        "--hardware {}: no row of this hardware was scored{}; name tables with --data, or remove --hardware",
        fmt::join(request.hardware, ","), first_reason(scores)));
  }
  if (!request.options.kind.empty() && !any([](const TableScore& score) { return score.scored > 0; })) {
    throw ConfigError(
        fmt::format("--kind {}: no table of this kind was scored{}; name one with --data, or remove --kind",
                    request.options.kind, first_reason(scores)));
  }
  if ((request.max_median || request.max_p90) && !any([](const TableScore& score) { return !score.errors.empty(); })) {
    throw ConfigError(fmt::format("{0}: no row was scored{1}; name other tables with --data, or remove {0}",
                                  request.max_median ? "--max-median" : "--max-p90", first_reason(scores)));
  }
}

/// Converts a percentage to a fraction. Rejects NaN, which CLI11's range checks accept.
double fraction_of(double percent, const std::string& flag) {
  if (std::isnan(percent)) {
    throw ConfigError(fmt::format("{}: nan is not a percentage; write one, as in 8", flag));
  }
  return percent / 100.0;
}

/// Scores the agreement of the engines. The exit code is gate_missed if a bar is not reached.
Answer run_agreement(const ScoreRequest& request, Caller& caller) {
  const std::vector<std::string> machines = known_names(Catalogue::hardware);
  Progress progress = progress_of(request, caller, score::runs_of_engine_agreement(machines), "points");
  std::vector<EngineAgreement> agreements = score::engine_agreement(machines, [&] { progress.finished(true); });
  progress.end();
  const bool is_met = std::ranges::all_of(agreement_bars(agreements), &AgreementBar::met);
  return {.code = is_met ? exit_code::done : exit_code::gate_missed,
          .write = [agreements = std::move(agreements)](std::string_view format, const Sink& sink) {
            require_word("--output", format, score_formats, "format");
            sink(format == "json"       ? reports::agreement_json(agreements)
                 : format == "markdown" ? reports::agreement_section(agreements)
                                        : reports::agreement_table(agreements));
          }};
}

/// Scores verdicts. The exit code is gate_missed if a bar is not reached.
Answer run_verdicts(const ScoreRequest& request) {
  expect::VerdictScore score = expect::score_verdicts(tables_of(request));
  if (score.healthy == 0) {
    throw ConfigError("--verdicts: no table of a healthy node; name a folder of such tables with --data");
  }
  const bool is_met = std::ranges::all_of(score.counts, &expect::VerdictCount::is_met);
  return {.code = is_met ? exit_code::done : exit_code::gate_missed,
          .write = [score = std::move(score)](std::string_view format, const Sink& sink) {
            require_word("--output", format, score_formats, "format");
            sink(format == "json"       ? verdict_score_json(score)
                 : format == "markdown" ? verdict_score_section(score)
                                        : verdict_score_table(score));
          }};
}

/// Throws ConfigError if a flag has no output in the format.
void require_output(const ScoreRequest& request, std::string_view format) {
  if (request.options.residuals && format == "markdown") {
    throw ConfigError("--residuals has no markdown output; use -o table or -o json");
  }
  if (request.pairs && format != "table") {
    throw ConfigError("--pairs prints only text; remove -o");
  }
  if (request.implementations && format != "table") {
    throw ConfigError("--implementations prints only YAML; remove -o");
  }
}

std::string text_of(const ScoreRequest& request, const Scores& scores, std::string_view format) {
  require_word("--output", format, score_formats, "format");
  require_output(request, format);
  return request.rows    ? reports::score_rows_csv(scores)
         : request.pairs ? reports::pairs_table(scores)
         : request.options.residuals
             ? format == "json" ? reports::residuals_json(scores) : reports::residuals_table(scores)
         : format == "json"     ? reports::score_json(scores)
         : format == "markdown" ? reports::accuracy_page(scores)
                                : reports::score_table(scores);
}

Answer run_score(ScoreRequest request, Caller& caller) {
  require_word("--output", request.format, score_formats, "format");
  require_word("--progress", request.progress, progress_words, "format");
  if (request.rows && (request.dynamic || request.format != "table")) {
    throw ConfigError("--rows prints only CSV of tables; remove --dynamic and -o");
  }
  require_output(request, request.format);
  if (request.dynamic) {
    return run_agreement(request, caller);
  }
  if (request.verdicts) {
    return run_verdicts(request);
  }
  if (request.implementations) {
    return text_answer(score::implementation_costs_yaml(tables_of(request)));
  }
  if (!request.options.kind.empty()) {
    require_kind(request.options.kind);
  }
  request.options.hardware = nodes_meant(request.hardware);
  Scores all_scores = scores_of(request, caller);
  require_tables(request, all_scores);
  require_scored(request, all_scores);
  const auto scores = std::make_shared<const Scores>(of_hardware(request, std::move(all_scores)));
  const std::string faults = reports::score_faults(*scores);
  const std::string over = lines_over_limit(*scores, request.max_median, "median", &ErrorSummary::median) +
                           lines_over_limit(*scores, request.max_p90, "p90", &ErrorSummary::p90);
  const int code = faults.empty() ? exit_code::done : exit_code::failed_points;
  return {.code = over.empty() ? code : exit_code::gate_missed,
          .write = [request, scores](std::string_view format,
                                     const Sink& sink) { sink(text_of(request, *scores, format)); },
          .notes = faults + over};
}

CLI::Option* add_limit(CLI::App& command, const std::string& flag, std::optional<double>& limit,
                       const std::string& help) {
  return command
      .add_option_function<double>(
          flag, [&limit, flag](double percent) { limit = fraction_of(percent, flag); }, help)
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("PERCENT");
}

CLI::Option* add_hardware_flag(CLI::App& command, ScoreRequest& request) {
  return usual(offers_names(command
                                .add_option("--hardware", request.hardware,
                                            "Only rows of this hardware, on one node or several: names in "
                                            "configs/hardware, separated by commas; repeatable")
                                ->type_name("NAMES")
                                ->allow_extra_args(false),
                            Catalogue::hardware));
}

/// Adds the flag --verdicts. The flags that it excludes must already have been added.
void add_verdicts_flag(CLI::App& command, ScoreRequest& request) {
  CLI::Option* verdicts =
      command.add_flag("--verdicts", request.verdicts, "Score verdicts on nodes known to be healthy or degraded");
  for (const char* const other : {"--dynamic", "--implementations", "--pairs", "--rows", "--kind", "--hardware",
                                  "--held-out", "--residuals", "--max-median", "--max-p90"}) {
    verdicts->excludes(other);
  }
}

constexpr const char* about =
    "An error is |predicted / measured - 1|. A table's header determines its kind;\n"
    "its comments or a column name the machine (known_as in configs/hardware). Rows\n"
    "that the model cannot express are skipped and counted; faulty rows are named on\n"
    "stderr, and the exit code is 3. docs/accuracy.md shows the current scores.\n"
    "\n"
    "--dynamic runs every shipped machine with --interference static and dynamic,\n"
    "which takes some seconds, and exits with 4 if the results differ too much.\n"
    "\n"
    "Examples:\n"
    "  commfuse-sim score\n"
    "  commfuse-sim score --data measured/ --held-out -o json\n"
    "  commfuse-sim score --hardware h100-sxm,h200-sxm --kind collective\n"
    "  commfuse-sim score --data mine.csv --max-median 8 --max-p90 20\n"
    "  commfuse-sim score --data measured/ --residuals\n"
    "  commfuse-sim score --verdicts --data measured/\n"
    "  commfuse-sim score --dynamic";

}  // namespace

void add_score(CLI::App& app, Caller& caller) {
  add_verb(app, "score", "Compare predictions with tables of measurements", [&caller](CLI::App& command) {
    const auto request = std::make_shared<ScoreRequest>();
    CLI::Option* data =
        usual(command.add_option("--data", request->data, "CSV tables, or folders of them; default: configs/published")
                  ->type_name("PATH"));
    CLI::Option* kind = usual(
        command.add_option("--kind", request->options.kind, "Only tables of one kind, for example gemm or collective")
            ->type_name("KIND"));
    CLI::Option* hardware = add_hardware_flag(command, *request);
    CLI::Option* held_out =
        usual(command.add_flag("--held-out", request->options.held_out, "Only rows that every fit held out"));
    CLI::Option* median =
        add_limit(command, "--max-median", request->max_median, "Exit with 4 if a table's median error is above this");
    CLI::Option* p90 =
        add_limit(command, "--max-p90", request->max_p90, "Exit with 4 if a table's 90th percentile is above this");
    CLI::Option* residuals = command.add_flag("--residuals", request->options.residuals,
                                              "Print the residuals for hardware files, from the rows used by the fits");
    residuals->excludes(held_out);
    command
        .add_flag("--implementations", request->implementations,
                  "Fit implementations to tables of overlapped kernels; print lines of their files")
        ->excludes(kind)
        ->excludes(hardware)
        ->excludes(held_out)
        ->excludes(residuals)
        ->excludes(median)
        ->excludes(p90);
    usual(command.add_flag("--pairs", request->pairs,
                           "Print every overlapped kernel next to serial, with the command of each"))
        ->excludes(residuals)
        ->excludes("--implementations");
    command
        .add_flag("--rows", request->rows, "Print measured and predicted time, or factor, of every scored row as CSV")
        ->excludes(residuals)
        ->excludes("--pairs")
        ->excludes("--implementations");
    command.add_flag("--dynamic", request->dynamic, "Score default prices against the dynamic engine")
        ->excludes(data)
        ->excludes(kind)
        ->excludes(hardware)
        ->excludes(held_out)
        ->excludes(residuals)
        ->excludes(median)
        ->excludes(p90)
        ->excludes("--implementations")
        ->excludes("--pairs");
    add_verdicts_flag(command, *request);
    usual(offers_words(command.add_option("-o,--output", request->format, "table, json, markdown (docs/accuracy.md)")
                           ->type_name("FORMAT")
                           ->capture_default_str()
                           ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast),
                       {"table", "json", "markdown"}));
    offers_words(command
                     .add_option("--progress", request->progress,
                                 "Progress on stderr: auto (a bar on a terminal), plain, json, none")
                     ->type_name("FORMAT")
                     ->capture_default_str()
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast),
                 {"auto", "plain", "json", "none"});
    command.footer(about);
    command.callback([request, &caller] {
      Answer answer = run_score(*request, caller);
      answer.format = request->format;
      caller.take(answer);
    });
  });
}

}  // namespace commfuse::sim
