// SPDX-License-Identifier: Apache-2.0
// commfuse-sim run: simulates a point, or a grid of points, and compares strategies side by side.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "model/config/choices.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/stderr_text.h"
#include "model/text/suggest.h"
#include "reports/atomic_file.h"
#include "reports/export/trace.h"
#include "reports/figure/breakdown.h"
#include "reports/figure/gantt.h"
#include "reports/figure/svg.h"
#include "sim/commands/commands.h"
#include "sim/commands/left_out.h"
#include "sim/commands/measured_step_flags.h"
#include "sim/commands/plot_text.h"
#include "sim/commands/render.h"
#include "sim/commands/run_lab.h"
#include "sim/commands/run_steps.h"
#include "sim/commands/schedule_files.h"
#include "sim/commands/setting_flags.h"
#include "sim/commands/shown_figures.h"
#include "sim/commands/spread.h"
#include "sim/commands/traced.h"
#include "sim/commands/uncovered.h"
#include "sim/parallel/run_points.h"
#include "sim/point/unused_variables.h"
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

/// Returns whether every point takes only microseconds to simulate, because it needs a single prediction: no samples of
/// jitter, and no machines with raised parameters to estimate the uncertainty.
bool is_quick(const Grid& grid) {
  const auto has = [&](std::string_view key, std::string_view value) {
    const bool varies = std::ranges::any_of(grid.axes, [&](const GridAxis& axis) {
      return std::ranges::any_of(axis.fields, [&](const Field* field) { return field->key == key; });
    });
    return !varies && grid.settings.text(key) == value;
  };
  return has("uncertainty", "off") && has("jitter", "none");
}

/// Returns whether strategies run in addition to schedules from files.
bool names_strategies(const Grid& grid) {
  return commfuse::names_strategies(grid.settings) ||
         std::any_of(grid.axes.begin(), grid.axes.end(), [](const GridAxis& axis) {
           return std::any_of(axis.fields.begin(), axis.fields.end(),
                              [](const Field* field) { return field->key.starts_with("strategy."); });
         });
}

/// Simulates the points. Throws ConfigError if a point cannot run, because the user named every point. Unless the
/// points are quick, checks all points before it simulates the first. Notes the strategies that are left out.
RowTable rows_of(const PointList& points, const Library& library, Caller& caller) {
  if (!is_quick(points.grid())) {
    require_all_runnable(points, library);
  }
  RowTable rows;
  const GridOptions options{.threads = choices_of(points.grid().settings).threads, .stop = caller.cancel()};
  LeftOut left_out(names_strategies(points.grid()));
  run_points(points, library, options, [&](std::span<const ResultRow> point_rows) {
    for (const ResultRow& row : left_out.kept(point_rows)) {
      rows.push_back(row);
    }
  });
  caller.note(for_stderr(left_out.in_words()));
  return rows;
}

/// Draws the runs as the request states, and returns the files that were written.
std::vector<std::string> draw(const RunRequest& request, const std::vector<reports::TracedRun>& runs,
                              const VerdictRule& rule, Caller& caller) {
  std::vector<std::string> written;
  std::vector<std::string> files_read = files_named(request.settings);
  files_read.insert(files_read.end(), request.schedules.files.begin(), request.schedules.files.end());
  reports::require_no_input(request.figure, files_read);
  if (!request.trace.empty()) {
    const std::filesystem::path path = reports::trace_path(runs, request.trace);
    reports::require_no_input(path, files_read);
    reports::write_trace(runs, path);
    written.push_back(path.string());
    if (path != request.trace) {
      caller.note(fmt::format("the trace is {}\n", path.string()));
    }
  }
  if (!request.figure.empty()) {
    reports::atomic_write(request.figure, reports::svg(reports::gantt_figure(runs, "gantt", rule)));
    written.push_back(request.figure);
  }
  return written;
}

/// Throws ConfigError for a name with an extension other than .svg. A name without extension, such as /dev/stdout, is
/// allowed.
void require_svg(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (!ending.empty() && ending != ".svg") {
    throw ConfigError(fmt::format(
        "--figure writes SVG, and {} does not end in .svg; rename it, or use commfuse-sim plot for other formats",
        in_quotes(path)));
  }
}

void refuse_drawing_flags(const RunRequest& request) {
  for (const auto& [flag, given] :
       {std::pair("--trace", !request.trace.empty()), std::pair("--figure", !request.figure.empty()),
        std::pair("--schedule", !request.schedules.files.empty()), std::pair("--plot", request.plot)}) {
    if (given) {
      throw ConfigError(fmt::format("{}: not available for scopes step, prefill and decode; remove it", flag));
    }
  }
}

void refuse_measured_step(const RunRequest& request) {
  for (const auto& [flag, given] : {std::pair("--measured-step", !request.measured.time.empty()),
                                    std::pair("--measured-config", !request.measured.config.empty())}) {
    if (given) {
      throw ConfigError(fmt::format("{0}: applies to training steps only; choose --scope step, or remove {0}", flag));
    }
  }
}

/// A measured step is compared with a prediction under the jitter of the points that it corrects.
void require_one_jitter(const std::vector<Settings>& points) {
  for (const Settings& point : points) {
    if (point.text("jitter") != points.front().text("jitter")) {
      throw ConfigError("--measured-step: the points differ in jitter; choose one --jitter");
    }
  }
}

void require_table_for_plot(const RunRequest& request) {
  if (request.plot && is_for_programs(request.format)) {
    throw ConfigError(fmt::format("--plot requires -o table; remove --plot, or -o {}", request.format));
  }
}

/// The result of `run` for layers, and how it is drawn and written.
class LayerRun {
 public:
  LayerRun(Grid grid, Library library, Caller& caller)
      : grid_(std::move(grid)),
        library_(std::move(library)),
        points_(grid_, max_run_points),
        rule_(verdict_rule_of(grid_.settings)),
        rows_(rows_of(points_, library_, caller)) {}
  LayerRun(const LayerRun&) = delete;
  LayerRun& operator=(const LayerRun&) = delete;
  ~LayerRun() = default;

  [[nodiscard]] const RowTable& rows() const { return rows_; }
  [[nodiscard]] const VerdictRule& rule() const { return rule_; }
  [[nodiscard]] std::string uncovered() const { return uncovered_in_words(points_, library_); }

  /// Simulates the rows of a single point again with their timelines; empty if there are several points.
  [[nodiscard]] std::vector<reports::TracedRun> runs() const {
    if (points_.size() != 1) {
      return {};
    }
    const Settings settings = PointCursor(points_).at(0);
    return traced(point_of(settings, library_), rows_.rows(0, rows_.size()),
                  {library_.schedules(), implementations_named(settings, library_)});
  }
  /// For a single point, draws where the time goes; for several points, the lead of a strategy by sequence length, or a
  /// map of winners.
  [[nodiscard]] std::vector<reports::Figure> figures() const {
    const std::vector<reports::TracedRun> point_runs = runs();
    return point_runs.empty()
               ? figures_of(rows_.rows(0, rows_.size()), rule_)
               : std::vector{reports::breakdown_figure(point_runs), reports::gantt_figure(point_runs, "gantt", rule_)};
  }
  [[nodiscard]] std::string text(std::string_view format) const {
    return renderer(format)(rows_.rows(0, rows_.size()), rule_, models_in_words(points_, library_));
  }

 private:
  Grid grid_;
  Library library_;
  PointList points_;
  VerdictRule rule_;
  RowTable rows_;
};

Answer answer_of(const std::shared_ptr<const LayerRun>& run, const RunRequest& request) {
  return {.format = request.format,
          .write =
              [run, plot = request.plot](std::string_view format, const Sink& sink) {
                sink(run->text(format));
                sink(plot && !is_for_programs(format) ? plots_in_words(run->figures()) : std::string{});
              },
          .layers = [run] { return std::shared_ptr<const RowTable>(run, &run->rows()); },
          .figures = [run] { return run->figures(); }};
}

/// Throws ConfigError for axes that affect how --gpus distributes the GPUs, because --gpus distributes them once, not
/// for each point.
void refuse_layout_axes(const Grid& grid) {
  for (const GridAxis& axis : grid.axes) {
    for (const Field* field : axis.fields) {
      if (field->key == "ranks" || field->key == "hardware" || field->key == "scope" ||
          field->key.starts_with("parallel.")) {
        throw ConfigError(fmt::format("--gpus: cannot be combined with the axis {}; remove one of them", field->key));
      }
    }
  }
}

/// If an axis varies the batch, sets the batch to the first value of the axis. Otherwise --gpus would choose a batch
/// that no point has.
void take_batch_of_axes(Grid& grid) {
  const Field* const batch = find_field("batch");
  for (const GridAxis& axis : grid.axes) {
    for (std::size_t f = 0; f < axis.fields.size(); ++f) {
      if (axis.fields[f] == batch) {
        grid.settings.put(*batch, {axis.steps.front()[f].text, axis.origin});
      }
    }
  }
}

Answer run(const RunRequest& request, Caller& caller) {
  renderer(request.format);  // Rejects an unknown format before any work.
  require_table_for_plot(request);
  require_svg(request.figure);
  std::optional<std::vector<HandWritten>> schedules = read_schedules(request.schedules);
  if (!schedules) {
    return {.code = exit_code::gate_missed};
  }
  Grid grid = grid_of(request.settings);
  caller.note(for_stderr(ignore_unused_variables(grid)));
  caller.note(for_stderr(notes_on_unused_draws(grid)));
  if (!request.gpus.empty()) {
    refuse_layout_axes(grid);
    take_batch_of_axes(grid);
    caller.note(for_stderr(spread_over(request.gpus, grid.settings)));
  }
  fit(grid, *schedules, names_strategies(grid));
  Library library = library_of(grid);
  caller.note(for_stderr(notes_on_unused_methods(grid, library)));
  const std::size_t count = PointList(grid, max_run_points).size();
  if (has_whole_models(grid)) {
    refuse_drawing_flags(request);
    const std::vector<Settings> points = points_of(grid);
    const Settings* single_point = points.size() == 1 ? &points.front() : nullptr;
    if (!request.measured.time.empty()) {
      require_one_jitter(points);
    }
    const auto measured =
        measured_of(request.measured, single_point,
                    {.hardware = points.front().text("hardware"), .jitter = points.front().text("jitter")});
    return run_steps(points, library, request.format, caller,
                     measured ? std::optional(evidence_of(*measured)) : std::nullopt);
  }
  refuse_measured_step(request);
  library.add(*std::move(schedules));
  for (const auto& [flag, path] : {std::pair("--trace", &request.trace), std::pair("--figure", &request.figure)}) {
    if (!path->empty() && count != 1) {
      throw ConfigError(
          fmt::format("{0}: requires a single point, but there are {1}; choose one point, or remove {0}", flag, count));
    }
  }
  const auto layer_run = std::make_shared<const LayerRun>(std::move(grid), std::move(library), caller);
  if (const std::string uncovered = layer_run->uncovered(); !uncovered.empty()) {
    caller.note(for_stderr(uncovered));
  }
  Answer answer = answer_of(layer_run, request);
  if (!request.trace.empty() || !request.figure.empty()) {
    answer.files = draw(request, layer_run->runs(), layer_run->rule(), caller);
  }
  return answer;
}

/// Runs FILE, which is a lab workload or a file of settings. Files of --config take precedence over FILE.
Answer run_file(RunRequest request, Caller& caller) {
  if (!is_lab(request.file)) {
    request.settings.files.insert(request.settings.files.begin(), request.file);
    return run(request, caller);
  }
  for (const auto& [flag, given] :
       {std::pair("--trace", !request.trace.empty()), std::pair("--figure", !request.figure.empty()),
        std::pair("--schedule", !request.schedules.files.empty()),
        std::pair("--size", !request.schedules.sizes.empty()), std::pair("--plot", request.plot),
        std::pair("--gpus", !request.gpus.empty()), std::pair("--measured-step", !request.measured.time.empty()),
        std::pair("--measured-config", !request.measured.config.empty())}) {
    if (given) {
      throw ConfigError(fmt::format("{}: not available for lab workloads; remove it", flag));
    }
  }
  return run_lab_file(request.file, request.settings, request.format, caller);
}

}  // namespace

void add_run(CLI::App& app, Caller& caller) {
  add_verb(app, "run", "Predict one point, or a grid with --axis", [&caller](CLI::App& command) {
    const auto request = std::make_shared<RunRequest>();
    command.add_option("file", request->file, "Config file of settings, or a workload of configs/lab")
        ->type_name("FILE");
    add_setting_flags(command, request->settings);
    usual(command
              .add_option("--gpus", request->gpus,
                          "Number of GPUs: sets the replicas of a training step, else tensor ranks, and the nodes")
              ->group("What to simulate")
              ->type_name("COUNT"));
    add_schedule_flags(command, request->schedules);
    add_measured_flags(command, request->measured);
    add_axis_flag(command, request->settings);
    add_output_flag(command, request->format);
    usual(command
              .add_option("--trace", request->trace,
                          "Write a timeline for ui.perfetto.dev: .json, .json.gz or .pftrace; other names: JSON, or "
                          "protobuf above 200,000 slices. One point only")
              ->group("Grid and output")
              ->type_name("FILE"));
    command
        .add_option("--figure", request->figure,
                    "Draw the schedules' critical ranks on one time axis, as SVG. One point only")
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
        "  commfuse-sim run --scope step --hardware h100 --gpus 64 --tp 8 --zero 2\n"
        "  commfuse-sim run --scope step --model llama-3.1-8b --batch 8 --as te,flux\n"
        "  commfuse-sim run --schedule mine.yaml --strategy all --seq 8K");
    command.callback([request, &caller] {
      caller.take(request->file.empty() ? run(*request, caller) : run_file(*request, caller));
    });
  });
}

}  // namespace commfuse::sim
