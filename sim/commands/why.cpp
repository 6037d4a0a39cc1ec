// SPDX-License-Identifier: Apache-2.0
// commfuse-sim why: explains one prediction.
#include "sim/why/why.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/check.h"
#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/stderr_text.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "reports/comparison.h"
#include "reports/point_rows.h"
#include "reports/why.h"
#include "sim/commands/commands.h"
#include "sim/commands/left_out.h"
#include "sim/commands/schedule_files.h"
#include "sim/commands/setting_flags.h"
#include "sim/commands/uncovered.h"
#include "sim/parallel/run_points.h"
#include "sim/point/grid.h"

namespace commfuse::sim {

namespace {

struct WhyRequest {
  SettingArguments settings;
  ScheduleArguments schedules;
  std::string format = "text";
  std::string max_parameters = "12";
};

/// Returns the number of parameters to print.
std::size_t parameter_count_of(const std::string& text) {
  const std::optional<std::int64_t> number = parse_integer(text);
  if (!number || *number < 0) {
    throw ConfigError(
        fmt::format("--most: {} is not a number of parameters; write a whole number, 0 or more", in_quotes(text)));
  }
  return static_cast<std::size_t>(*number);
}

/// Returns one row for each strategy or schedule, and notes the strategies that are left out. Throws ConfigError for
/// the first row that cannot run and is not left out.
std::vector<ResultRow> rows_of(const Settings& settings, const Library& library) {
  require_all_runnable({settings}, library);
  LeftOut left_out(names_strategies(settings));
  std::vector<ResultRow> rows = left_out.kept(run_points({settings}, library, {.threads = 1}).front());
  fmt::print(stderr, "{}", for_stderr(left_out.in_words()));
  check(!rows.empty(), "settings that can be run have a schedule");
  return rows;
}

/// Returns the implementation that --as names if it is the only one and no strategy is chosen; null otherwise.
const Implementation* only_choice(const Settings& settings, const Library& library) {
  const Implementations named = implementations_named(settings, library);
  return named.size() == 1 && !names_strategies(settings) ? named.front().get() : nullptr;
}

/// Returns the row of the only implementation that the user chose, or else the fastest row that can win.
const ResultRow& explained_row(const std::vector<ResultRow>& rows, const Implementation* chosen) {
  const ResultRow* best = nullptr;
  for (const ResultRow& row : rows) {
    const bool may_be_explained =
        chosen == nullptr ? reports::can_win(row, rows) : !row.implements.empty() && row.strategy == chosen->name;
    if (may_be_explained && (best == nullptr || row.analysis.critical.makespan < best->analysis.critical.makespan)) {
      best = &row;
    }
  }
  check(best != nullptr, "an explanation needs at least one row that can win");
  return *best;
}

/// Returns the prediction of a row of the point: of a file, of an implementation or of a generated schedule.
Prediction prediction_of(const Point& point, const ResultRow& row, const Implementation* implementation,
                         std::span<const HandWritten> files, Predictor& predictor) {
  const auto file = std::ranges::find_if(
      files, [&](const HandWritten& schedule) { return schedule.structure.digest == row.schedule_sha256; });
  if (implementation == nullptr && file != files.end()) {
    return predictor.predict(point, *file);
  }
  const Strategy& strategy = implementation == nullptr ? *find_strategy(row.strategy) : *implementation->strategy;
  return predictor.predict(point, strategy, row.options);
}

bool is_used_by_layers(const Field& field) { return field.uses.has(Use::layer); }

int why(const WhyRequest& request) {
  constexpr std::array<std::string_view, 2> formats{"text", "json"};
  require_word("--output", request.format, formats, "format");
  const std::size_t max_parameters = parameter_count_of(request.max_parameters);
  std::optional<std::vector<HandWritten>> schedules = read_schedules(request.schedules);
  if (!schedules) {
    return exit_code::gate_missed;
  }
  const Settings settings = fitted(settings_of_run(request.settings), *schedules);
  Library library;
  library.load(settings);
  library.add(*std::move(schedules));
  const Point point = point_of(settings, library);
  const std::vector<ResultRow> rows = rows_of(settings, library);
  const ResultRow& row = explained_row(rows, only_choice(settings, library));
  StructureCache structures;
  Predictor predictor(structures);
  const Implementation* implementation = implementation_of(row, implementations_named(settings, library));
  const Point priced = implementation == nullptr ? point : priced_as(point, *implementation);
  const Prediction prediction = prediction_of(priced, row, implementation, library.schedules(), predictor);
  Explanation explanation = explain(priced, prediction, predictor);
  explanation.row = row;
  explanation.verdict = rows.size() > 1 ? reports::verdict(rows, verdict_rule_of(settings)) : std::string{};
  fmt::print(stderr, "{}", for_stderr(uncovered_in_words(settings, library)));
  fmt::print(
      "{}", request.format == "json" ? reports::why_json(explanation) : reports::why_text(explanation, max_parameters));
  return exit_code::done;
}

}  // namespace

void add_why(CLI::App& app, int& status) {
  add_verb(app, "why", "Explain one prediction: costs, critical path, sensitivity", [&status](CLI::App& command) {
    const auto request = std::make_shared<WhyRequest>();
    add_setting_flags(command, request->settings, is_used_by_layers);
    add_schedule_flags(command, request->schedules);
    usual(offers_words(command.add_option("-o,--output", request->format, "text, json")
                           ->group("Grid and output")
                           ->type_name("FORMAT")
                           ->capture_default_str()
                           ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast),
                       {"text", "json"}));
    usual(command
              .add_option("--most", request->max_parameters,
                          "Number of parameters to list in text output, largest sensitivity first")
              ->group("Grid and output")
              ->type_name("COUNT")
              ->capture_default_str()
              ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast));
    command.footer(
        "With several strategies, the fastest is explained; --strategy chooses another,\n"
        "and --as alone chooses an implementation.\n"
        "\n"
        "Examples:\n"
        "  commfuse-sim why --model llama-3.1-70b --hardware h100-sxm --seq 8K\n"
        "  commfuse-sim why --strategy serial --seq 8K --most 30\n"
        "  commfuse-sim why --strategy sliced --slices 8 -o json\n"
        "  commfuse-sim why --schedule mine.yaml --seq 8K");
    command.callback([request, &status] { status = why(*request); });
  });
}

}  // namespace commfuse::sim
