// SPDX-License-Identifier: Apache-2.0
#include "reports/plan/plan_rows.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/record/model_version.h"
#include "reports/layout_cells.h"
#include "reports/plan/plan_words.h"
#include "reports/rows.h"

namespace commfuse::reports {

namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json interval_json(const Interval& interval) {
  return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

Json layout_json(const TrainingPlan& layout) {
  Json json;
  for (const auto& [name, value] : layout_cells(layout)) {
    json[std::string(name)] = std::visit([](auto content) { return Json(content); }, value);
  }
  return json;
}

Json run_json(const CapacityRun& run) {
  Json json{{"gpus", run.gpus}, {"nodes", run.nodes}, {"layout", layout_json(run.layout)}};
  json["over_fastest"] = run.excess_over_fastest;
  json["layout_rule"] = run.layout_rule.empty() ? Json() : Json(run.layout_rule);
  json["step_s"] = interval_json(run.step_s);
  json["step_alike_s"] = run.step_equal_gpus_s;
  json["step_p50_s"] = run.step_p50_s;
  json["step_p95_s"] = run.step_p95_s;
  json["step_p99_s"] = run.step_p99_s;
  json["step_p99_9_s"] = run.step_p99_9_s;
  json["compute_s"] = run.compute_s;
  json["waiting_s"] = run.waiting_s;
  json["gradients_s"] = run.gradients_s;
  json["optimizer_s"] = run.optimizer_s;
  json["tokens_per_second"] = interval_json(run.tokens_per_second);
  json["mfu"] = interval_json(run.mfu);
  json["hfu"] = run.hfu;
  json["memory_gb"] = run.memory_gb;
  json["goodput"] = interval_json(run.goodput);
  json["checkpoint_every_s"] = run.checkpoint_every_s;
  json["failures"] = run.failures;
  json["days"] = interval_json(run.days);
  json["gpu_hours"] = interval_json(run.gpu_hours);
  json["cost"] = interval_json(run.cost);
  json["cost_per_mtok"] = interval_json(run.cost_per_mtok);
  json["energy_mwh"] = run.energy_mwh ? interval_json(*run.energy_mwh) : Json();
  json["power_mw"] = or_null(run.power_mw);
  json["confidence"] = run.confidence;
  json["misses"] = run.misses;
  return json;
}

Json kind_json(const CapacityKind& kind) {
  Json json{{"name", kind.name},
            {"hardware", kind.hardware},
            {"machine", kind.machine},
            {"price", kind.price},
            {"price_date", kind.price_date},
            {"price_source", kind.price_source},
            {"available", kind.available},
            {"count", or_null(kind.count)},
            {"power_w", kind.power_w},
            {"memory_limit_gb", kind.memory_limit_gb},
            {"link_gb_s", kind.link_gb_s},
            {"network_gb_s", or_null(kind.network_gb_s)},
            {"layouts", kind.layouts},
            {"fitting", kind.fitting},
            {"priced", kind.priced},
            {"step_error", kind.step_error},
            {"break_even_price", or_null(kind.break_even_price)},
            {"answer", or_null(kind.answer)},
            {"reason", kind.reason},
            {"best_single_strategy", kind.single}};
  json["smaller_count"] = Json();
  if (const std::optional<SmallerCount>& smaller = kind.smaller) {
    json["smaller_count"] = {{"gpus", smaller->gpus}, {"days", smaller->days}, {"cost", smaller->cost}};
  }
  json["inputs"] = Json::array();
  for (const CapacityInput& input : kind.inputs) {
    json["inputs"].push_back({{"what", input.what},
                              {"value", input.value},
                              {"standard_error", input.standard_error},
                              {"provenance", input.provenance},
                              {"source", input.source}});
  }
  json["sites"] = Json::array();
  for (const CapacitySite& site : kind.sites) {
    json["sites"].push_back({{"site", site.name},
                             {"strategy", site.strategy},
                             {"schedule", site.schedule},
                             {"serial_us", site.serial_us},
                             {"best_us", site.best_us},
                             {"compute_us", site.compute_us},
                             {"link_rate_to_hide", or_null(site.rate_to_hide)}});
  }
  json["doubts"] = Json::array();
  for (const CapacityDoubt& doubt : kind.doubts) {
    json["doubts"].push_back(
        {{"parameter", doubt.parameter}, {"provenance", doubt.provenance}, {"effect", doubt.effect}});
  }
  json["runs"] = Json::array();
  for (const CapacityRun& run : kind.runs) {
    json["runs"].push_back(run_json(run));
  }
  return json;
}

Json request_json(const CapacityPlan& plan) {
  return {{"model", plan.model},
          {"shape", plan.shape},
          {"parameters", plan.parameters},
          {"active_parameters", plan.active_parameters},
          {"flops_per_token", plan.flops_per_token},
          {"six_n", plan.six_n},
          {"attention", "causal"},
          {"tokens", plan.tokens},
          {"batch", plan.batch},
          {"seq", plan.seq},
          {"dtype", plan.dtype},
          {"framework", plan.framework.empty() ? Json() : Json(plan.framework)},
          {"deadline", plan.deadline_text},
          {"deadline_days", or_null(plan.deadline_days)},
          {"budget", or_null(plan.budget)},
          {"confidence", plan.asked_confidence},
          {"currency", plan.currency},
          {"model_error", plan.model_error},
          {"model_error_of_run", plan.model_error_of_run},
          {"p99_step_s", or_null(plan.p99_limit_s)},
          {"power_mw", or_null(plan.power_limit_mw)},
          {"memory_share", plan.memory_share},
          {"failures_per_gpu_hour", plan.failures_per_gpu_hour},
          {"checkpoint_s", plan.checkpoint_s},
          {"restart_s", plan.restart_s},
          {"pue", plan.pue},
          {"energy_price", plan.energy_price},
          {"jitter", plan.jitter},
          {"seed", plan.seed},
          {"draws", plan.draws}};
}

Json what_ifs_json(const CapacityPlan& plan) {
  Json changes = Json::array();
  for (const WhatIf& what_if : plan.what_ifs) {
    changes.push_back({{"change", what_if.change},
                       {"layout", layout_json(what_if.layout)},
                       {"step_s", what_if.step_s},
                       {"days", interval_json(what_if.days)},
                       {"cost", interval_json(what_if.cost)},
                       {"days_share", what_if.days_share},
                       {"cost_share", what_if.cost_share},
                       {"break_even_gpu_hour", or_null(what_if.break_even_gpu_hour)},
                       {"break_even_gpu", or_null(what_if.break_even_gpu)}});
  }
  return changes;
}

Json curves_json(const CapacityPlan& plan) {
  Json curves = Json::array();
  for (const RateCurve& curve : plan.curves) {
    Json points = Json::array();
    for (const RateCurve::Point& point : curve.points) {
      points.push_back({{"times", point.factor}, {"tokens_per_second", point.tokens_per_second}});
    }
    curves.push_back({{"links", curve.links},
                      {"points", std::move(points)},
                      {"knee", or_null(curve.knee)},
                      {"plateau_95", or_null(curve.plateau)},
                      {"to_hide", or_null(curve.to_hide)},
                      {"to_hide_gb_s", or_null(curve.to_hide_gb_s)}});
  }
  return curves;
}

Json sensitivities_json(const CapacityPlan& plan) {
  Json inputs = Json::array();
  for (const Sensitivity& sensitivity : plan.sensitivities) {
    inputs.push_back({{"input", sensitivity.input},
                      {"change", plan.change},
                      {"days_low", sensitivity.days_low},
                      {"days_high", sensitivity.days_high},
                      {"cost_low", sensitivity.cost_low},
                      {"cost_high", sensitivity.cost_high}});
  }
  return inputs;
}

/// Names and values of one line of CSV.
using Cells = std::vector<std::pair<std::string_view, std::string>>;

void add_interval(Cells& cells, std::string_view name, std::string_view low, std::string_view high,
                  const std::optional<Interval>& interval) {
  const auto text = [&](double Interval::*member) {
    return interval ? fmt::format("{}", (*interval).*member) : std::string{};
  };
  cells.emplace_back(name, text(&Interval::value));
  cells.emplace_back(low, text(&Interval::low));
  cells.emplace_back(high, text(&Interval::high));
}

Cells cells_of(const CapacityKind& kind, const CapacityRun& run, bool is_answer) {
  const auto number = [](auto value) { return fmt::format("{}", value); };
  Cells cells{{"kind", csv_text(run.kind)},  {"hardware", csv_text(kind.hardware)},
              {"price", number(kind.price)}, {"price_date", csv_text(kind.price_date)},
              {"gpus", number(run.gpus)},    {"nodes", number(run.nodes)}};
  for (const auto& [name, value] : layout_cells(run.layout)) {
    cells.emplace_back(name, std::visit(number, value));
  }
  add_interval(cells, "step_s", "step_low_s", "step_high_s", run.step_s);
  cells.emplace_back("step_alike_s", number(run.step_equal_gpus_s));
  cells.emplace_back("step_p50_s", number(run.step_p50_s));
  cells.emplace_back("step_p95_s", number(run.step_p95_s));
  cells.emplace_back("step_p99_s", number(run.step_p99_s));
  cells.emplace_back("step_p99_9_s", number(run.step_p99_9_s));
  add_interval(cells, "tokens_per_second", "tokens_per_second_low", "tokens_per_second_high", run.tokens_per_second);
  add_interval(cells, "mfu", "mfu_low", "mfu_high", run.mfu);
  cells.emplace_back("memory_gb", number(run.memory_gb));
  add_interval(cells, "goodput", "goodput_low", "goodput_high", run.goodput);
  add_interval(cells, "days", "days_low", "days_high", run.days);
  add_interval(cells, "gpu_hours", "gpu_hours_low", "gpu_hours_high", run.gpu_hours);
  add_interval(cells, "cost", "cost_low", "cost_high", run.cost);
  add_interval(cells, "cost_per_mtok", "cost_per_mtok_low", "cost_per_mtok_high", run.cost_per_mtok);
  add_interval(cells, "energy_mwh", "energy_mwh_low", "energy_mwh_high", run.energy_mwh);
  cells.emplace_back("confidence", number(run.confidence));
  cells.emplace_back("misses", csv_text(run.misses));
  cells.emplace_back("answer", is_answer ? "true" : "false");
  return cells;
}

}  // namespace

std::string plan_json(const CapacityPlan& plan) {
  Json json{{"schema", capacity_schema}, {"model_version", model_version}, {"title", plan.title}};
  json["verdict"] = plan_verdict(plan);
  json["asked"] = request_json(plan);
  json["answer"] = or_null(plan.answer);
  json["ties"] = Json::array();
  for (const RunPlace& place : plan.ties) {
    json["ties"].push_back({{"kind", place.kind}, {"run", place.run}});
  }
  json["tie_rule"] = plan.tie_rule.empty() ? Json() : Json(plan.tie_rule);
  json["kinds"] = Json::array();
  for (const CapacityKind& kind : plan.kinds) {
    json["kinds"].push_back(kind_json(kind));
  }
  json["pareto"] = Json::array();
  for (const RunPlace& place : plan.pareto) {
    json["pareto"].push_back({{"kind", place.kind}, {"run", place.run}});
  }
  json["knee"] = or_null(plan.knee);
  json["what_if"] = what_ifs_json(plan);
  json["curves"] = curves_json(plan);
  json["sensitivity"] = sensitivities_json(plan);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string plan_csv(const CapacityPlan& plan) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : cells_of({}, {}, false)) {
    names.push_back(name);
  }
  std::string text = fmt::format("{}\r\n", fmt::join(names, ","));
  for (std::size_t k = 0; k < plan.kinds.size(); ++k) {
    const CapacityKind& kind = plan.kinds[k];
    for (std::size_t r = 0; r < kind.runs.size(); ++r) {
      std::vector<std::string> values;
      for (auto& [name, value] : cells_of(kind, kind.runs[r], plan.answer == k && kind.answer == r)) {
        values.push_back(std::move(value));
      }
      text += fmt::format("{}\r\n", fmt::join(values, ","));
    }
  }
  return text;
}

}  // namespace commfuse::reports
