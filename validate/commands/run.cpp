// SPDX-License-Identifier: Apache-2.0
// commfuse-validate run: runs schedules in real time, alternately, and records their times.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/columns.h"
#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/stderr_text.h"
#include "model/wrapped.h"
#include "reports/atomic_file.h"
#include "validate/commands/commands.h"
#include "validate/commands/measured_point.h"
#include "validate/commands/output_files.h"
#include "validate/mpi/launch.h"

namespace commfuse::validate {

namespace {

struct RunRequest {
  MeasureArguments arguments;
  std::string format = "table";
};

std::string ms(Duration time) { return fmt::format("{:.3f}", to_seconds(time) * 1e3); }

std::string row_of(const MeasuredRun& run) {
  constexpr auto line = "{:<29} {:>9} {:>9} {:>9} {:>20}\n";
  const std::string name =
      cut(run.parameters.empty() ? run.strategy : fmt::format("{} ({})", run.strategy, run.parameters), 29);
  if (run.makespans.empty()) {
    return fmt::format(line, name, "failed", "-", "-", "-");
  }
  const Summary summary = summary_of(run.makespans);
  const std::string range =
      summary.median.range ? fmt::format("{}..{}", ms(summary.median.range->low), ms(summary.median.range->high)) : "-";
  return fmt::format(line, name, ms(summary.median.value), ms(summary.p10), ms(summary.p90), range);
}

std::string to_table(const RunRecord& record) {
  std::string text =
      fmt::format("{:<29} {:>9} {:>9} {:>9} {:>20}\n", "milliseconds", "median", "p10", "p90", "95% interval");
  for (const MeasuredRun& run : record.runs) {
    text += row_of(run);
  }
  text += wrapped(fmt::format("executor {}, compute {}, links {}, {}", record.executor, record.compute, record.links,
                              pace_in_words(record.dilation)),
                  "", "  ");
  return text + wrapped(fmt::format("noise floor: {}", in_words(record.noise)), "", "  ");
}

int report(const RunRequest& request, const Measured& result) {
  const RunRecord& record = result.record;
  fmt::print("{}", request.format == "json" ? to_json(record) : to_table(record));
  int code = exit_code::done;
  for (const MeasuredRun& run : record.runs) {
    if (run.status != RunStatus::done) {
      code = exit_code::failed;
      fmt::print(stderr, "{}", for_stderr(fmt::format("{}: {}\n", run.strategy, run.message)));
    }
  }
  rethrow(result.unwritten);
  return code;
}

/// Sets the number of ranks to the number of processes, unless the user chose a number.
Settings on_all_processes(Settings settings, int processes) {
  const Field& ranks = *find_field("ranks");
  if (settings.at(ranks).origin.source == Source::preset) {
    settings.put(ranks, {fmt::format("{}", processes), {}});
  }
  return settings;
}

int run_on_processes(const RunRequest& request, Crew& crew) {
  std::optional<std::vector<HandWritten>> schedules = sim::read_schedules(request.arguments.schedules);
  if (!schedules) {
    return exit_code::gate_missed;
  }
  const Settings settings = sim::fitted(settings_of(request.arguments), *schedules);
  PredictedPoint point(on_all_processes(settings, crew.processes()), *std::move(schedules));
  const int ranks = point.point().ranks;
  require_processes(ranks, crew);
  if (crew.process() >= ranks) {
    return exit_code::done;
  }
  const std::vector<Prediction> predictions = point.requested();
  const Measured result = measured(point, predictions, request.arguments, &crew);
  return crew.leads() ? report(request, result) : exit_code::done;
}

int run(const RunRequest& request, Launch& launch) {
  sim::require_word("--output", request.format, std::array<std::string_view, 2>{"table", "json"}, "format");
  reports::require_no_input(request.arguments.out, request.arguments.schedules.files);
  if (crew_links_of(request.arguments.executor)) {
    return run_on_processes(request, launch.crew_anyhow(default_patience));
  }
  if (request.arguments.executor == "mpi" || (request.arguments.executor.empty() && launch.under_mpi())) {
    return run_on_processes(request, launch.crew(default_patience));
  }
  if (!launch.works_alone()) {
    return exit_code::done;
  }
  std::optional<std::vector<HandWritten>> schedules = sim::read_schedules(request.arguments.schedules);
  if (!schedules) {
    return exit_code::gate_missed;
  }
  const Settings settings = sim::fitted(settings_of(request.arguments), *schedules);
  PredictedPoint point(settings, *std::move(schedules));
  const std::vector<Prediction> predictions = point.requested();
  const Measured result = measured(point, predictions, request.arguments);
  if (!result.dry_run.empty()) {
    fmt::print("{}\n", result.dry_run);
    return exit_code::done;
  }
  return report(request, result);
}

}  // namespace

void add_run(CLI::App& app, Launch& launch, int& status) {
  add_verb(app, "run", "Run schedules in real time and record their times", [&launch, &status](CLI::App& command) {
    const auto request = std::make_shared<RunRequest>();
    add_measure_flags(command, request->arguments);
    usual(offers_words(
        command.add_option("-o,--output", request->format, "table; json: the record itself")->capture_default_str(),
        {"table", "json"}));
    command.footer(
        "The makespan of an iteration is the largest over all ranks. The interval is the\n"
        "95% confidence interval of the median, by order statistics.\n"
        "\n"
        "Examples:\n"
        "  commfuse-validate run --seq 8K --ranks 4 --strategy serial,commfuse\n"
        "  commfuse-validate run --seq 8K --ranks 4 --out record.json\n"
        "  commfuse-validate run --compute real --link-bandwidth '1 GB/s' --ranks 2 \\\n"
        "    --model gpt-2-xl --seq 128\n"
        "  mpirun -np 2 commfuse-validate run --model gpt-2-xl --seq 128 \\\n"
        "    --out record.json\n"
        "  commfuse-validate run --executor cuda-virtual --hardware h200-sxm --ranks 8 \\\n"
        "    --link-bandwidth '150 GB/s' --link-latency 8us --out record.json\n"
        "  mpirun -np 8 commfuse-validate run --executor nccl --hardware h200-sxm\n"
        "\n"
        "Exit codes: 0 done; 1 a schedule did not finish, or was wrong; 2 the input is\n"
        "wrong; 4 the proof of a file failed; 69 no GPU is available.");
    command.callback([request, &command, &launch, &status] {
      require_fitting_gpu_flags(command, request->arguments.executor);
      status = run(*request, launch);
    });
  });
}

}  // namespace commfuse::validate
