// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/run_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "model/analysis/memory.h"
#include "model/config_error.h"
#include "model/stderr_text.h"
#include "model/workload/parameters.h"
#include "model/wrapped.h"
#include "reports/crossover.h"
#include "reports/point_rows.h"
#include "reports/step_pays.h"
#include "reports/step_rows.h"
#include "sim/commands/render.h"
#include "sim/commands/setting_flags.h"
#include "sim/commands/shown_figures.h"
#include "sim/parallel/run_points.h"
#include "sim/point/grid.h"
#include "sim/step/predict_steps.h"

namespace commfuse::sim {

namespace {

std::string whole_model_table(std::span<const StepRow> rows, const VerdictRule& rule,
                              const reports::ModelWords& words) {
  const std::string scaling = reports::scaling_text(reports::scalings_of(rows));
  return reports::step_table(rows, rule, words) + (scaling.empty() ? "" : "\n") + scaling;
}

std::string whole_model_map(std::span<const StepRow> rows, const VerdictRule& rule,
                            const reports::ModelWords& /*words*/) {
  const std::string memory_text = reports::memory_sentence(rows);
  std::vector<std::string> reasons;
  for (const StepRow& row : rows) {
    if (!row.feasible()) {
      reasons.emplace_back(row.text("reason"));
    }
  }
  std::string text = (memory_text.empty() ? memory_text : wrapped(memory_text, "", "  ") + "\n") +
                     reports::map_text(reports::maps_of(rows, rule), rule);
  for (const std::string& part : {reports::scaling_text(reports::scalings_of(rows)), infeasible_in_words(reasons)}) {
    text += (part.empty() ? "" : "\n") + part;
  }
  return text;
}

std::string whole_model_verdicts(std::span<const StepRow> rows, const VerdictRule& rule,
                                 const reports::ModelWords& /*words*/) {
  return reports::step_verdicts(rows, rule);
}

template <std::string (*write)(std::span<const StepRow>)>
std::string plain(std::span<const StepRow> rows, const VerdictRule& /*rule*/, const reports::ModelWords& /*words*/) {
  return write(rows);
}

void add_words(const Settings& settings, const Library& library, reports::ModelWords& words) {
  const Transformer& model = library.model(settings.text("model"));
  if (!words.contains(model.name)) {
    words.emplace(model.name, parameters_in_words(model));
  }
}

/// Returns a note about the rows whose corrected time is limited to the dense peak.
std::string peak_note_of(std::span<const StepRow> rows) {
  std::vector<std::string> names;
  for (const StepRow& row : rows) {
    const std::string name(row.text("strategy"));
    if (row.feasible() && is_at_peak(row.number("mfu")) && std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  }
  return peak_note(names);
}

bool is_read_by_people(std::string_view format) { return format == "table" || format == "map" || format == "verdict"; }

}  // namespace

StepRender step_renderer(std::string_view format) {
  constexpr std::array<std::string_view, 6> formats{"table", "json", "jsonl", "csv", "map", "verdict"};
  require_word("--output", format, formats, "format");
  return format == "json"      ? plain<reports::to_json>
         : format == "jsonl"   ? plain<reports::to_json_lines>
         : format == "csv"     ? plain<reports::to_csv>
         : format == "map"     ? whole_model_map
         : format == "verdict" ? whole_model_verdicts
                               : whole_model_table;
}

std::string warnings_once(std::span<const StepRow> rows) {
  std::string lines;
  std::vector<std::string> printed;
  for (const StepRow& row : rows) {
    if (reports::is_implemented(row) || !row.has("warnings")) {  // The table states the warnings of implementations.
      continue;
    }
    for (std::string& warning : reports::warnings_in(row.text("warnings"))) {
      // The first line of the output states what does not fit in memory.
      if (!is_memory_warning(warning) && std::ranges::find(printed, warning) == printed.end()) {
        lines += fmt::format("warning: {}\n", warning);
        printed.push_back(std::move(warning));
      }
    }
  }
  return for_stderr(lines);
}

reports::ModelWords models_in_words(const std::vector<Settings>& points, const Library& library) {
  reports::ModelWords words;
  for (const Settings& settings : points) {
    add_words(settings, library, words);
  }
  return words;
}

reports::ModelWords models_in_words(const PointList& points, const Library& library) {
  reports::ModelWords words;
  PointCursor cursor(points);
  for (std::size_t point = 0; point < points.size(); ++point) {
    add_words(cursor.at(point), library, words);
  }
  return words;
}

Answer run_steps(const std::vector<Settings>& points, const Library& library, std::string_view format, Caller& caller,
                 std::optional<StepEvidence> evidence) {
  step_renderer(format);  // Rejects an unknown format before any work.
  require_whole_models(points);
  StepPoints predicted(library);
  const bool is_corrected = evidence.has_value();
  std::string heading;
  if (is_corrected) {
    heading = wrapped(in_words(*evidence), "", "") + "\n";
    predicted.correct_by(*std::move(evidence));
  }
  const auto rows = std::make_shared<std::vector<StepRow>>();
  bool has_uncovered = false;
  for (const Settings& settings : points) {
    if (caller.cancel() != nullptr && caller.cancel()->load()) {
      throw Interrupted{};
    }
    bool has_implementation = false;
    for (StepRow& row : predicted.rows(settings)) {
      const bool is_implementation = reports::is_implemented(row);
      if (is_implementation && !row.feasible()) {
        throw ConfigError(row.text("reason"));
      }
      has_implementation = has_implementation || is_implementation;
      rows->push_back(std::move(row));
    }
    has_uncovered = has_uncovered || (settings.text("as") == "all" && !has_implementation);
  }
  if (has_uncovered) {
    caller.note(for_stderr(
        "--as all: at some points no implementation runs a GEMM; only ideal schedules are compared there\n"));
  }
  if (const std::string warnings = warnings_once(*rows); !warnings.empty()) {
    caller.note(warnings);
  }
  if (is_corrected) {
    caller.note(for_stderr(peak_note_of(*rows)));
  }
  const VerdictRule rule = verdict_rule_of(points.front());
  return {.format = std::string(format),
          .write =
              [rows, rule, words = models_in_words(points, library), heading](std::string_view chosen_format,
                                                                              const Sink& sink) {
                const StepRender render = step_renderer(chosen_format);
                sink(is_read_by_people(chosen_format) ? heading : std::string{});
                sink(render(*rows, rule, words));
              },
          .models = [rows] { return *rows; },
          .figures = [rows, rule] { return figures_of(*rows, rule); }};
}

}  // namespace commfuse::sim
