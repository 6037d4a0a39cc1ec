// SPDX-License-Identifier: Apache-2.0
// commfuse-sim run: one point, or a grid of points, strategies side by side.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "model/config/suggest.h"
#include "model/config_error.h"
#include "reports/comparison.h"
#include "reports/rows.h"
#include "sim/commands/commands.h"
#include "sim/grid.h"

namespace commfuse::sim {

namespace {

struct RunRequest {
  PointRequest point;
  StrategyRequest strategy;
  std::vector<std::string> axes;
  std::string format = "table";
  int threads = 0;
};

using Render = std::string (*)(std::span<const ResultRow>);

std::string table(std::span<const ResultRow> rows) {
  const std::string summary = reports::summary(rows);
  return reports::comparison_table(rows) + (summary.empty() ? "" : "\n" + summary);
}

Render renderer(const std::string& format) {
  constexpr std::array<std::pair<std::string_view, Render>, 4> formats{
      {{"table", table}, {"json", reports::to_json}, {"jsonl", reports::to_json_lines}, {"csv", reports::to_csv}}};
  std::vector<std::string_view> names;
  for (const auto& [name, render] : formats) {
    if (name == format) {
      return render;
    }
    names.push_back(name);
  }
  throw ConfigError(
      fmt::format("--output does not know {}; {}", in_quotes(format), remedy_for(format, names, "formats")));
}

void add_point_flags(CLI::App& command, PointRequest& point) {
  const std::string group = "What is run";
  command.add_option("--model", point.model, "Name in configs/models, or a path")->group(group)->capture_default_str();
  command.add_option("--hardware", point.hardware, "Name in configs/hardware, or a path")
      ->group(group)
      ->capture_default_str();
  command.add_option("--ranks", point.ranks, "Tensor-parallel ranks")->group(group)->capture_default_str();
  command.add_option("--seq", point.seq, "Tokens of a sequence; 32K is 32768")->group(group)->capture_default_str();
  command.add_option("--batch", point.batch, "Sequences")->group(group)->capture_default_str();
  command.add_option("--dtype", point.dtype, "bf16, fp16, fp32, fp8")->group(group)->capture_default_str();
  command.add_option("--scope", point.scope, "mlp, or one site: qkv, out_proj, gate_up, down")
      ->group(group)
      ->capture_default_str();
}

void add_strategy_flags(CLI::App& command, StrategyRequest& strategy) {
  const std::string group = "Which schedules";
  command.add_option("--strategy", strategy.strategies, "all, or some of: serial,sliced,commfuse")
      ->group(group)
      ->capture_default_str();
  command.add_option("--variants", strategy.variants, "best: one row a strategy; all: one row a schedule")
      ->group(group)
      ->capture_default_str();
  command.add_option("--slices", strategy.slices, "sliced: this k, not the best of 2, 4, 8")->group(group);
  command.add_option("--form", strategy.form, "commfuse: ring or direct, not the better")->group(group);
  command.add_option("--add-lane", strategy.add_lane, "commfuse ring: compute or aux, not the better")->group(group);
}

void add_model_flags(CLI::App& command, PointRequest& point) {
  const std::string group = "How it is played";
  command.add_option("--interference", point.interference, "static: communication takes SMs from kernels; none")
      ->group(group)
      ->capture_default_str();
  command.add_option("--launch", point.launch, "stream: the host issues op by op; graph: one launch")
      ->group(group)
      ->capture_default_str();
}

void run(const RunRequest& request) {
  const Render render = renderer(request.format);
  if (request.threads < 0) {
    throw ConfigError(
        fmt::format("--threads {} is negative; write a number of threads, or 0 for all cores", request.threads));
  }
  const std::vector<Point> points = points_of(request.point, request.axes);
  fmt::print("{}", render(run_points(points, request.strategy, request.threads)));
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("run", "Predict one point, or a grid with --axis");
  const auto request = std::make_shared<RunRequest>();
  add_point_flags(*command, request->point);
  add_strategy_flags(*command, request->strategy);
  add_model_flags(*command, request->point);
  const std::string group = "Grid and output";
  command
      ->add_option("--axis", request->axes,
                   "Vary a setting: seq=1K..128K doubles, ranks=2,4,8 lists, seq=4K..16K+4K adds; repeatable, first is "
                   "outermost")
      ->group(group)
      ->allow_extra_args(false);
  command->add_option("-o,--output", request->format, "table, json, jsonl, csv")->group(group)->capture_default_str();
  command->add_option("-j,--threads", request->threads, "Threads; 0 is all cores")->group(group)->capture_default_str();
  command->footer(
      "Examples:\n"
      "  commfuse-sim run --model llama-3.1-70b --hardware h100-sxm --ranks 8 --seq 32K\n"
      "  commfuse-sim run --axis seq=1K..128K --axis ranks=2,4,8\n"
      "  commfuse-sim run --seq 8K --strategy sliced,commfuse --variants all -o csv");
  command->callback([request, &status] {
    run(*request);
    status = 0;
  });
}

}  // namespace commfuse::sim
