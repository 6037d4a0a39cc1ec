// SPDX-License-Identifier: Apache-2.0
// commfuse-sim sweep: many points from a file into a folder.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <memory>
#include <utility>

#include "model/build_info.h"
#include "model/config/command_line.h"
#include "model/config_error.h"
#include "reports/crossover.h"
#include "reports/html/report.h"
#include "reports/rows.h"
#include "reports/step_rows.h"
#include "sim/commands/commands.h"
#include "sim/commands/render.h"
#include "sim/commands/run_steps.h"
#include "sim/commands/setting_flags.h"
#include "sim/commands/sweep_folder.h"
#include "sim/commands/traced.h"
#include "sim/predict_steps.h"
#include "sim/sweep/progress.h"
#include "sim/sweep/sweep_file.h"

namespace commfuse::sim {

namespace {

struct SweepRequest {
  SettingArguments settings;
  std::string file;
  std::string out;
  std::string format = "table";
  std::string progress = "auto";
  bool force = false;
};

// A signal reaches no object; this is all it touches.
std::atomic<bool> interrupted{false};
std::atomic<int> signal_number{0};

/// The first signal ends the sweep in order; a second one ends the program at once.
void install_handlers() {
  struct sigaction action {};
  action.sa_handler = [](int number) {
    signal_number = number;
    interrupted = true;
  };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

void say(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

Sweep sweep_of(const SweepRequest& request) {
  Resolver resolver;
  read_files(request.settings, resolver);
  Sweep sweep = read_sweep(request.file, resolver);
  read_above_files(request.settings, resolver);
  sweep.grid.axes = merged_axes(std::move(sweep.grid.axes), request.settings.axes, resolver);
  sweep.grid.settings = resolver.finish();
  return sweep;
}

struct Results {
  std::vector<Settings> points;
  std::vector<std::vector<ResultRow>> by_point;
  std::vector<ResultRow> rows;
  bool complete = true;
};

Progress::Clock clock_from_now() {
  return [start = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
  };
}

Results play(const Sweep& sweep, const Library& library, std::vector<Settings> points, ProgressForm form) {
  Progress progress(form, points.size(), clock_from_now(), say);
  Results results{.points = std::move(points)};
  results.by_point = run_points(results.points, library,
                                {.threads = static_cast<int>(sweep.grid.settings.count("threads")),
                                 .finished = [&](bool feasible) { progress.finished(feasible); },
                                 .stop = &interrupted});
  progress.end();
  for (const std::vector<ResultRow>& some : results.by_point) {
    results.rows.insert(results.rows.end(), some.begin(), some.end());
  }
  results.complete =
      std::all_of(results.rows.begin(), results.rows.end(), [](const auto& row) { return row.feasible(); });
  return results;
}

/// The points that are shown in time: the smallest and the largest with a result.
std::vector<std::size_t> shown_points(const Results& results) {
  std::vector<std::size_t> shown;
  const auto tokens = [&](std::size_t i) {
    const ResultRow& row = results.by_point[i].front();
    return std::pair(row.batch * row.seq, row.ranks);
  };
  for (std::size_t i = 0; i < results.by_point.size(); ++i) {
    const auto& rows = results.by_point[i];
    if (std::any_of(rows.begin(), rows.end(), [](const ResultRow& row) { return row.feasible(); })) {
      shown.push_back(i);
    }
  }
  if (shown.size() > 2) {
    const auto [least, most] = std::minmax_element(shown.begin(), shown.end(),
                                                   [&](std::size_t a, std::size_t b) { return tokens(a) < tokens(b); });
    shown = {*least, *most};
  }
  return shown;
}

std::string report_of(const Sweep& sweep, const Library& library, const Results& results) {
  reports::ReportInput input{.title = sweep.title,
                             .rows = results.rows,
                             .gantts = {},
                             .command = fmt::format("commfuse-sim sweep {} --out FOLDER", settings_file),
                             .version = fmt::format("commfuse-sim {}", build_info().version)};
  for (const std::size_t i : shown_points(results)) {
    input.gantts.push_back(traced(point_of(results.points[i], library), results.by_point[i]));
  }
  return reports::html_report(input);
}

using Files = std::vector<std::pair<std::string, std::string>>;

/// Who wins where, of a sweep that has something to compare.
template <class Row>
void add_maps(std::span<const Row> rows, Files& files) {
  const std::vector<CrossoverMap> maps = reports::maps_of(rows);
  if (!maps.empty()) {
    files.emplace_back("map.csv", reports::map_csv(maps));
    files.emplace_back("crossovers.csv", reports::crossings_csv(maps));
    files.emplace_back("map.json", reports::map_json(maps, reports::scalings_of(rows)));
  }
}

Files files_of(const Sweep& sweep, const Library& library, const Results& results) {
  Files files;
  if (sweep.writes("csv")) {
    files.emplace_back("results.csv", reports::to_csv(results.rows));
  }
  if (sweep.writes("json")) {
    files.emplace_back("results.json", reports::to_json(results.rows));
  }
  if (sweep.writes("report")) {
    files.emplace_back("report.html", report_of(sweep, library, results));
  }
  if (sweep.writes("map")) {
    add_maps(std::span<const ResultRow>(results.rows), files);
  }
  return files;
}

std::vector<Settings> some_points_of(const SweepRequest& request, const Sweep& sweep) {
  std::vector<Settings> points = points_of(sweep.grid);
  if (points.empty()) {
    throw ConfigError(fmt::format("{}: no point meets the constraints; loosen one or widen an axis", request.file));
  }
  return points;
}

std::vector<StepRow> play_steps(const std::vector<Settings>& points, const Library& library, ProgressForm form) {
  Progress progress(form, points.size(), clock_from_now(), say);
  StepPoints predicted(library);
  std::vector<StepRow> rows;
  for (const Settings& settings : points) {
    if (interrupted) {
      throw Interrupted{};
    }
    std::vector<StepRow> some = predicted.rows_or_reason(settings);
    progress.finished(std::any_of(some.begin(), some.end(), [](const StepRow& row) { return row.feasible(); }));
    std::move(some.begin(), some.end(), std::back_inserter(rows));
  }
  progress.end();
  return rows;
}

/// Whole models. They leave tables and no report, which shows layers.
int sweep_steps(const SweepRequest& request, const Sweep& sweep, const Library& library,
                const std::vector<Settings>& points, const SweepFolder& folder, ProgressForm form) {
  const StepRender render = step_renderer(request.format);
  require_whole_models(points);
  const std::vector<StepRow> rows = play_steps(points, library, form);
  Files files;
  if (sweep.writes("csv")) {
    files.emplace_back("results.csv", reports::to_csv(rows));
  }
  if (sweep.writes("json")) {
    files.emplace_back("results.json", reports::to_json(rows));
  }
  if (sweep.writes("map")) {
    add_maps(std::span<const StepRow>(rows), files);
  }
  folder.write(files);
  warn_once(rows);
  fmt::print("{}", render(rows));
  return std::all_of(rows.begin(), rows.end(), [](const StepRow& row) { return row.feasible(); })
             ? exit_code::done
             : exit_code::failed_points;
}

int sweep_into_folder(const SweepRequest& request) {
  install_handlers();
  const Render render = renderer(request.format);
  require_word("--progress", request.progress, progress_words, "form");
  const Sweep sweep = sweep_of(request);
  const Library library = library_of(sweep.grid);
  std::vector<Settings> points = some_points_of(request, sweep);
  const SweepFolder folder(request.out, to_yaml(sweep), request.force);
  try {
    const ProgressForm form = progress_form(request.progress, ::isatty(STDERR_FILENO) != 0);
    if (std::any_of(points.begin(), points.end(), is_whole_model)) {
      return sweep_steps(request, sweep, library, points, folder, form);
    }
    const Results results = play(sweep, library, std::move(points), form);
    folder.write(files_of(sweep, library, results));
    fmt::print("{}", render(results.rows));
    return results.complete ? exit_code::done : exit_code::failed_points;
  } catch (const Interrupted&) {
    say(fmt::format("interrupted; nothing was written to {}\n", request.out));
    return 128 + signal_number.load();
  }
}

}  // namespace

void add_sweep(CLI::App& app, int& status) {
  add_verb(app, "sweep", "Predict the points of a sweep file into a folder", [&status](CLI::App& command) {
    const auto request = std::make_shared<SweepRequest>();
    command.add_option("FILE", request->file, "The sweep, in YAML; configs/sweeps/llama-mlp.yaml is one to copy")
        ->required();
    const std::string group = "Grid and output";
    command.add_option("--out", request->out, "Folder for results and settings")
        ->group(group)
        ->type_name("FOLDER")
        ->required();
    command.add_flag("--force", request->force, "Write into a folder that holds something else")->group(group);
    command.add_option("--progress", request->progress, "On stderr: auto (a bar on a terminal), plain, json, none")
        ->group(group)
        ->type_name("FORM")
        ->capture_default_str()
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    add_output_flag(command, request->format);
    add_axis_flag(command, request->settings);
    add_setting_flags(command, request->settings);
    command.footer(
        "The file holds settings, axes, constraints; flags add to it or take the place of\n"
        "what it says. A point that cannot be run becomes a row with its reason, and the\n"
        "exit code is 3. Whole models (scope step, prefill, decode) leave no report.html.\n"
        "Several strategies leave map.csv (who wins at which point, and by how much),\n"
        "crossovers.csv (where that changes along an axis) and map.json (both).\n\n"
        "Examples:\n"
        "  commfuse-sim sweep configs/sweeps/llama-mlp.yaml --out out/llama-mlp\n"
        "  commfuse-sim sweep configs/sweeps/training-plans.yaml --out out/plans\n"
        "  commfuse-sim sweep configs/sweeps/crossover.yaml --out out/crossover -o map\n"
        "  commfuse-sim sweep mine.yaml --out out/mine --axis ranks=2,4,8 -o csv");
    command.callback([request, &status] { status = sweep_into_folder(*request); });
  });
}

}  // namespace commfuse::sim
