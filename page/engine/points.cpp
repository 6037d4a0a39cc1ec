// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "model/check.h"
#include "model/config_error.h"
#include "model/program/names.h"
#include "page/engine/answers.h"
#include "page/engine/settings.h"
#include "reports/comparison.h"
#include "reports/point_rows.h"
#include "reports/rows.h"
#include "reports/step_rows.h"
#include "reports/trace_label.h"
#include "reports/why.h"
#include "sim/commands/traced.h"
#include "sim/point/point_runner.h"
#include "sim/step/predict_steps.h"
#include "sim/why/why.h"

namespace commfuse::page {

namespace {

using nlohmann::json;

/// Numbers distinct strings, starting with 0.
class Words {
 public:
  std::size_t number_of(const std::string& text) {
    const auto [entry, is_new] = numbers_.emplace(text, numbers_.size());
    if (is_new) {
      texts_.push_back(text);
    }
    return entry->second;
  }
  [[nodiscard]] const json& texts() const { return texts_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  json texts_ = json::array();
};

/// Returns the timeline of the rank that finishes last. An op is [lane, start, end, kind, label, critical].
json timeline_of(const reports::TracedRun& run, std::size_t row) {
  const Program& program = *run.program;
  const Rank rank = run.row.analysis.critical_rank;
  std::set<std::pair<Rank, OpId>> critical;
  if (run.path) {
    for (const PathStep& step : *run.path) {
      if (step.kind != PathKind::issue) {  // A faster op does not shorten the time in which the host issues it.
        critical.emplace(step.rank, step.op);
      }
    }
  }
  json lanes = json::array();
  for (const Lane& lane : program.lanes) {
    lanes.push_back(name_of(lane));
  }
  Words kinds;
  Words labels;
  json ops = json::array();
  std::int64_t end = 0;
  for (const OpSpan& span : run.timeline) {
    end = std::max(end, span.end.time_since_epoch().count());
    if (span.rank != rank) {
      continue;
    }
    const Op& op = program.ops[position(span.op)];
    ops.push_back({op.lane, span.start.time_since_epoch().count(), span.end.time_since_epoch().count(),
                   kinds.number_of(std::string(name_of(op.purpose))),
                   labels.number_of(reports::op_label(program, op, rank)), critical.contains({rank, span.op}) ? 1 : 0});
  }
  return {
      {"row", row},           {"label", reports::label(run.row)}, {"ranks", run.row.ranks}, {"rank", rank},
      {"makespan_ps", end},   {"lanes", std::move(lanes)},        {"kinds", kinds.texts()}, {"labels", labels.texts()},
      {"ops", std::move(ops)}};
}

json timelines_of(const Point& point, const std::vector<ResultRow>& rows, Implementations implementations,
                  sim::TracingTools tools) {
  json timelines = json::array();
  std::size_t row = 0;
  for (const reports::TracedRun& run : sim::traced(point, rows, {{}, implementations}, tools)) {
    while (!rows[row].feasible()) {
      ++row;
    }
    timelines.push_back(timeline_of(run, row++));
  }
  return timelines;
}

}  // namespace

/// Holds data that points share, so that each file is read only once.
class Points::Engine {
 public:
  Engine() : runner_(library_, structures_), predictor_(structures_), steps_(library_) {}

  json point(const json& request) {
    const Settings settings = settings_of(request.at("settings"));
    library_.load(settings);
    return is_whole_model(settings) ? whole_model(settings) : layer(settings, request.value("timelines", false));
  }

  json why(const json& request) {
    const bool is_implementation = request.contains("implementation");
    json texts = request.at("settings");
    if (is_implementation) {
      texts["as"] = request["implementation"];
    } else {
      texts["as"] = "none";
      texts["strategy.name"] = request.at("strategy");
    }
    const Settings settings = settings_of(texts);
    library_.load(settings);
    const std::vector<ResultRow> rows = feasible_rows(settings);
    const ResultRow& row = is_implementation ? implemented(rows) : rows.front();
    const Point point = point_of(settings, library_);
    const Implementation* implementation = implementation_of(row, implementations_named(settings, library_));
    const Point priced = implementation == nullptr ? point : priced_as(point, *implementation);
    const Strategy& strategy = implementation == nullptr ? *find_strategy(row.strategy) : *implementation->strategy;
    Explanation explanation = explain(priced, predictor_.predict(priced, strategy, row.options), predictor_);
    explanation.row = row;
    explanation.verdict = rows.size() > 1 ? reports::verdict(rows, verdict_rule_of(settings)) : std::string{};
    return {{"json", reports::why_json(explanation)}};
  }

 private:
  /// Throws ConfigError for the first row that cannot be run, as `run` does.
  std::vector<ResultRow> feasible_rows(const Settings& settings) {
    require_runnable(point_of(settings, library_));
    std::vector<ResultRow> rows = runner_.rows(settings);
    for (const ResultRow& row : rows) {
      if (!row.feasible()) {
        throw ConfigError(row.reason);
      }
    }
    check(!rows.empty(), "settings that can be run have a schedule");
    return rows;
  }

  /// Returns the row of the requested implementation. Throws ConfigError if no implementation is simulated at this
  /// point.
  static const ResultRow& implemented(const std::vector<ResultRow>& rows) {
    const auto row =
        std::ranges::find_if(rows, [](const ResultRow& candidate) { return !candidate.implements.empty(); });
    if (row == rows.end()) {
      throw ConfigError("no implementation is simulated at this point; choose another");
    }
    return *row;
  }

  json layer(const Settings& settings, bool timelines) {
    const std::vector<ResultRow> rows = feasible_rows(settings);
    const VerdictRule rule = verdict_rule_of(settings);
    json answer{{"json", reports::to_json(rows, reports::verdict_words(rows, rule))},
                {"verdict", reports::verdict(rows, rule)},
                {"command", command_of("run", settings)}};
    if (timelines) {
      answer["timelines"] = timelines_of(point_of(settings, library_), rows, implementations_named(settings, library_),
                                         {structures_, predictor_});
    }
    return answer;
  }

  json whole_model(const Settings& settings) {
    const std::vector<StepRow> rows = steps_.rows(settings);
    return {{"json", reports::to_json(rows)},
            {"verdict", reports::step_verdict(rows, verdict_rule_of(settings))},
            {"command", command_of("run", settings)}};
  }

  Library library_;
  StructureCache structures_;
  PointRunner runner_;
  Predictor predictor_;
  StepPoints steps_;
};

Points::Points() : engine_(std::make_unique<Engine>()) {}
Points::~Points() = default;

json Points::point(const json& request) { return engine_->point(request); }
json Points::why(const json& request) { return engine_->why(request); }

}  // namespace commfuse::page
