// SPDX-License-Identifier: Apache-2.0
// commfuse-sim run: one point, or a grid of points, strategies side by side.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "model/config/choices.h"
#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/text/suggest.h"
#include "reports/atomic_file.h"
#include "reports/crossover.h"
#include "reports/export/trace.h"
#include "reports/figure/breakdown.h"
#include "reports/figure/crossing.h"
#include "reports/figure/gantt.h"
#include "reports/figure/svg.h"
#include "sim/commands/commands.h"
#include "sim/commands/measured_step_flags.h"
#include "sim/commands/plot_text.h"
#include "sim/commands/render.h"
#include "sim/commands/run_lab.h"
#include "sim/commands/run_steps.h"
#include "sim/commands/schedule_files.h"
#include "sim/commands/setting_flags.h"
#include "sim/commands/spread.h"
#include "sim/commands/traced.h"
#include "sim/parallel/run_points.h"
#include "sim/sweep/sweep_file.h"

namespace commfuse::sim {

namespace {

struct RunRequest {
  SettingArguments settings;
  ScheduleArguments schedules;
  std::string format = "table";
  std::string trace;
  std::string figure;
  std::string file;
  std::string gpus;
  MeasuredArguments measured;
  bool plot = false;
};

Grid grid_of(const SettingArguments& arguments) {
  Resolver resolver;
  read_files(arguments, resolver);
  read_above_files(arguments, resolver);
  Grid grid;
  grid.axes = merged_axes({}, arguments.axes, resolver);
  grid.settings = resolver.finish();
  return grid;
}

/// Here every point was asked for by hand, so one that cannot be run is a mistake.
std::vector<ResultRow> rows_of(const Grid& grid, const std::vector<Settings>& points, const Library& library) {
  require_all_runnable(points, library);
  std::vector<ResultRow> rows;
  for (std::vector<ResultRow>& some : run_points(points, library, {.threads = choices_of(grid.settings).threads})) {
    for (ResultRow& row : some) {
      if (!row.feasible()) {
        throw ConfigError(row.reason);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

/// Whether strategies are run beside the files.
bool names_strategies(const Grid& grid) {
  return commfuse::names_strategies(grid.settings) ||
         std::any_of(grid.axes.begin(), grid.axes.end(), [](const GridAxis& axis) {
           return std::any_of(axis.fields.begin(), axis.fields.end(),
                              [](const Field* field) { return field->key.starts_with("strategy."); });
         });
}

void draw(const RunRequest& request, const std::vector<reports::TracedRun>& runs, const VerdictRule& rule) {
  std::vector<std::string> read = files_named(request.settings);
  read.insert(read.end(), request.schedules.files.begin(), request.schedules.files.end());
  reports::require_no_input(request.figure, read);
  if (!request.trace.empty()) {
    const std::filesystem::path path = reports::trace_path(runs, request.trace);
    reports::require_no_input(path, read);
    reports::write_trace(runs, path);
    if (path != request.trace) {
      fmt::print(stderr, "the trace is {}\n", path.string());
    }
  }
  if (!request.figure.empty()) {
    reports::atomic_write(request.figure, reports::svg(reports::gantt_figure(runs, "gantt", rule)));
  }
}

/// A name may end in nothing, as /dev/stdout does.
void require_svg(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (!ending.empty() && ending != ".svg") {
    throw ConfigError(
        fmt::format("--figure: {} does not end in .svg; use such a name, or draw other formats with "
                    "commfuse-sim plot",
                    in_quotes(path)));
  }
}

void require_no_drawing(const RunRequest& request) {
  for (const auto& [flag, given] :
       {std::pair("--trace", !request.trace.empty()), std::pair("--figure", !request.figure.empty()),
        std::pair("--schedule", !request.schedules.files.empty()), std::pair("--plot", request.plot)}) {
    if (given) {
      throw ConfigError(fmt::format("{}: not available for scopes step, prefill and decode; remove it", flag));
    }
  }
}

void require_no_measured_step(const RunRequest& request) {
  for (const auto& [flag, given] : {std::pair("--measured-step", !request.measured.time.empty()),
                                    std::pair("--measured-config", !request.measured.config.empty())}) {
    if (given) {
      throw ConfigError(fmt::format("{}: a layer is no training step; choose --scope step, or remove it", flag));
    }
  }
}

/// What programs read has nothing below it.
void require_room_for_plot(const RunRequest& request) {
  constexpr std::array<std::string_view, 3> for_programs{"json", "jsonl", "csv"};
  if (request.plot && std::ranges::find(for_programs, request.format) != for_programs.end()) {
    throw ConfigError(fmt::format("--plot: goes below a table; leave out --plot, or -o {}", request.format));
  }
}

/// Of one point where its time goes, of several how far ahead a strategy is along the sequence, or who wins where.
void plot(const std::vector<ResultRow>& rows, const std::vector<reports::TracedRun>& runs, const VerdictRule& rule) {
  std::vector<reports::Figure> figures;
  if (!runs.empty()) {
    figures = {reports::breakdown_figure(runs), reports::gantt_figure(runs, "gantt", rule)};
  } else {
    for (const CrossoverMap& map : reports::maps_of(rows, rule)) {
      figures.push_back(reports::winner_figure(map));
    }
    if (auto lead = reports::lead_figure(rows, "commfuse", "lead", rule)) {
      figures.push_back(*std::move(lead));
    }
  }
  print_plots(figures);
}

/// GPUs are spread once, and not point by point.
void require_no_spread_axis(const Grid& grid) {
  for (const GridAxis& axis : grid.axes) {
    for (const Field* field : axis.fields) {
      if (field->key == "ranks" || field->key == "hardware" || field->key == "scope" ||
          field->key.starts_with("parallel.")) {
        throw ConfigError(
            fmt::format("--gpus: {} is an axis, and GPUs are spread over ranks and nodes once; leave one of "
                        "them out",
                        field->key));
      }
    }
  }
}

int run(const RunRequest& request) {
  const Render render = renderer(request.format);
  require_room_for_plot(request);
  require_svg(request.figure);
  std::optional<std::vector<HandWritten>> schedules = read_schedules(request.schedules);
  if (!schedules) {
    return exit_code::gate_missed;
  }
  Grid grid = grid_of(request.settings);
  if (!request.gpus.empty()) {
    require_no_spread_axis(grid);
    spread_over(request.gpus, grid.settings);
  }
  fit(grid, *schedules, names_strategies(grid));
  const VerdictRule rule = verdict_rule_of(grid.settings);
  Library library = library_of(grid);
  const std::vector<Settings> points = points_of(grid);
  if (std::any_of(points.begin(), points.end(), is_whole_model)) {
    require_no_drawing(request);
    const Settings* own = points.size() == 1 ? &points.front() : nullptr;
    const auto measured = measured_of(request.measured, own, points.front().text("hardware"));
    return run_steps(points, library, request.format, measured ? std::optional(evidence_of(*measured)) : std::nullopt);
  }
  require_no_measured_step(request);
  library.add(*std::move(schedules));
  for (const auto& [flag, path] : {std::pair("--trace", &request.trace), std::pair("--figure", &request.figure)}) {
    if (!path->empty() && points.size() != 1) {
      throw ConfigError(fmt::format("{}: there are {} points; choose one, or remove it", flag, points.size()));
    }
  }
  const std::vector<ResultRow> rows = rows_of(grid, points, library);
  std::vector<reports::TracedRun> runs;
  if (points.size() == 1 && (request.plot || !request.trace.empty() || !request.figure.empty())) {
    runs = traced(point_of(points.front(), library), rows,
                  {library.schedules(), implementations_named(points.front(), library)});
    draw(request, runs, rule);
  }
  fmt::print("{}", render(rows, rule, models_in_words(points, library)));
  if (request.plot) {
    plot(rows, runs, rule);
  }
  return exit_code::done;
}

/// FILE is a lab workload, or settings like those of --config, below which they rank.
int run_file(RunRequest request) {
  if (!is_lab(request.file)) {
    request.settings.files.insert(request.settings.files.begin(), request.file);
    return run(request);
  }
  for (const auto& [flag, given] :
       {std::pair("--trace", !request.trace.empty()), std::pair("--figure", !request.figure.empty()),
        std::pair("--schedule", !request.schedules.files.empty()), std::pair("--plot", request.plot),
        std::pair("--gpus", !request.gpus.empty()), std::pair("--measured-step", !request.measured.time.empty())}) {
    if (given) {
      throw ConfigError(fmt::format("{}: not available for lab workloads; remove it", flag));
    }
  }
  return run_lab_file(request.file, request.settings, request.format);
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  add_verb(app, "run", "Predict one point, or a grid with --axis", [&status](CLI::App& command) {
    const auto request = std::make_shared<RunRequest>();
    command.add_option("file", request->file, "Settings, as --config reads them, or a workload of configs/lab")
        ->type_name("FILE");
    add_setting_flags(command, request->settings);
    usual(command
              .add_option("--gpus", request->gpus,
                          "Number of GPUs: replicas of a training step, else tensor ranks, on the nodes they need")
              ->group("What to simulate")
              ->type_name("COUNT"));
    add_schedule_flags(command, request->schedules);
    add_measured_flags(command, request->measured);
    add_axis_flag(command, request->settings);
    add_output_flag(command, request->format);
    usual(
        command
            .add_option("--trace", request->trace,
                        "Write what happens when, for ui.perfetto.dev, as .json, .json.gz or .pftrace; without such an "
                        "ending: JSON, protobuf above 200,000 slices. One point only")
            ->group("Grid and output")
            ->type_name("FILE"));
    command
        .add_option("--figure", request->figure,
                    "Draw the schedules on one time axis, each on its critical rank, as SVG. One point only")
        ->group("Grid and output")
        ->type_name("FILE");
    command.add_flag("--plot", request->plot, "Draw in the terminal, below the table")->group("Grid and output");
    command.footer(
        "Examples:\n"
        "  commfuse-sim run --model llama-3.1-70b --hardware h100-sxm --ranks 8 --seq 32K\n"
        "  commfuse-sim run --axis seq=1K..128K --axis ranks=2,4,8\n"
        "  commfuse-sim run --seq 8K --strategy sliced,commfuse --variants all -o csv\n"
        "  commfuse-sim run --seq 32K --trace 32K.json.gz\n"
        "  commfuse-sim run configs/lab/fa.yaml --set ranks=1024\n"
        "  commfuse-sim run --scope step --model llama-3.1-8b --batch 8 --seq 8K\n"
        "  commfuse-sim run --scope step --hardware h100 --gpus 64 --tp 8 --seq 8K\n"
        "  commfuse-sim run --schedule mine.yaml --strategy all --seq 8K");
    command.callback([request, &status] { status = request->file.empty() ? run(*request) : run_file(*request); });
  });
}

}  // namespace commfuse::sim
