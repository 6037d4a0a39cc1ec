// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "model/analysis/knee.h"
#include "model/config/catalogue.h"
#include "model/config/choices.h"
#include "model/config/framework.h"
#include "model/config_error.h"
#include "model/math/functions.h"
#include "model/workload/model_flops.h"
#include "model/workload/parameters.h"
#include "sim/plan/kind_planner.h"
#include "sim/plan/step_error.h"
#include "sim/plan/what_if.h"
#include "sim/tune/wishes.h"

namespace commfuse {

namespace {

LayoutTerms layout_terms(const PlanFile& file) {
  const Framework framework = load_framework(file.settings.text("framework"));
  const Settings settings = with_defaults_of(framework, file.settings);
  LayoutTerms terms{.base = base_of(settings), .wish = wish_of(settings), .memory_share = file.memory_share};
  terms.framework = framework;
  terms.rule = choices_of(file.settings).verdict;
  const Jitter jitter = load_jitter(choices_of(file.settings).jitter);
  terms.rank_sigma = jitter.rank_sigma.value;
  terms.communication_sigma = jitter.communication_sigma.value;
  return terms;
}

void put_limits(CapacityPlan& plan, const PlanFile& file) {
  plan.deadline_text = file.deadline_text;
  if (file.deadline) {
    plan.deadline_days = file.deadline->count() / 86400.0;
  }
  plan.budget = file.budget;
  plan.asked_confidence = file.confidence;
  plan.currency = file.currency;
  if (file.p99_step) {
    plan.p99_limit_s = file.p99_step->count();
  }
  if (file.power) {
    plan.power_limit_mw = file.power->value / 1e6;
  }
  plan.memory_share = file.memory_share;
  plan.failures_per_gpu_hour = file.failures.per_gpu_hour;
  plan.checkpoint_s = file.failures.checkpoint.count();
  plan.restart_s = file.failures.restart.count();
  plan.pue = file.pue;
  plan.energy_price = file.energy_price;
}

/// Returns a plan that has only the question: the part of the file that the answer repeats.
CapacityPlan question_of(const PlanFile& file, const Transformer& model, const LayoutTerms& terms) {
  const TrainingPlan& base = terms.base;
  const ModelParameters parameters = parameters_of(model);
  const Tokens one_sequence{1, base.seq};
  CapacityPlan plan{.title = file.title, .model = model.name};
  plan.parameters = static_cast<double>(parameters.total());
  plan.active_parameters = static_cast<double>(parameters.active());
  plan.shape = fmt::format("{} layers, hidden {}, {} heads, {} of keys and values, FFN {}", model.layers, model.hidden,
                           model.heads, model.kv_heads, model.ffn);
  plan.six_n = 6.0 * plan.active_parameters;
  plan.flops_per_token =
      training_flops(model, one_sequence, AttentionCount::causal).count / static_cast<double>(base.seq);
  plan.tokens = file.tokens;
  plan.batch = base.global_batch;
  plan.seq = base.seq;
  plan.dtype = name_of(base.dtype);
  plan.framework = terms.framework.name;
  put_limits(plan, file);
  const ModelError model_error = model_error_of(file, model, terms);
  plan.model_error = model_error.value;
  plan.model_error_source = model_error.source;
  plan.model_error_of_run = model_error.of_run;
  plan.change = file.change;
  const RunChoices run = choices_of(file.settings);
  plan.jitter = run.jitter;
  plan.seed = run.seed;
  plan.draws = interval_draws;
  return plan;
}

/// Sets the price at which each kind costs as much as the cheapest other kind, if there is one.
void add_break_even_prices(CapacityPlan& plan) {
  for (CapacityKind& kind : plan.kinds) {
    const CapacityRun* best = kind.best();
    const CapacityRun* other = nullptr;
    for (const CapacityKind& rival : plan.kinds) {
      const CapacityRun* run = &rival == &kind ? nullptr : rival.best();
      if (run != nullptr && (other == nullptr || run->cost.value < other->cost.value)) {
        other = run;
      }
    }
    if (best != nullptr && other != nullptr) {
      const double price = kind.price + (other->cost.value - best->cost.value) / best->gpu_hours.value;
      if (price >= 0.0) {  // Below 0, the kind costs more than the other even if its GPUs are free: energy decides.
        kind.break_even_price = price;
      }
    }
  }
}

void add_pareto(CapacityPlan& plan) {
  std::vector<RunPlace> places;
  std::vector<CurvePoint> points;
  for (std::size_t kind = 0; kind < plan.kinds.size(); ++kind) {
    for (std::size_t run = 0; run < plan.kinds[kind].runs.size(); ++run) {
      const CapacityRun& candidate = plan.kinds[kind].runs[run];
      places.push_back({kind, run});
      points.push_back({candidate.days.value, candidate.cost.value});
    }
  }
  std::vector<CurvePoint> curve;
  for (const std::size_t point : pareto_of(points)) {
    plan.pareto.push_back(places[point]);
    curve.push_back({math::log(points[point].x), points[point].y});  // GPU counts double from run to run
  }
  plan.knee = knee_of(curve);
}

}  // namespace

CapacityPlan plan_capacity(const PlanFile& file, const StepEvidence* evidence) {
  const Transformer model = load_model(choices_of(file.settings).model);
  const LayoutTerms terms = layout_terms(file);
  StructureCache structures;
  CapacityPlan plan = question_of(file, model, terms);
  std::vector<std::unique_ptr<KindPlanner>> planners;
  for (const GpuOffer& offer : file.gpus) {
    planners.push_back(std::make_unique<KindPlanner>(file, offer, model, terms, structures));
  }
  const auto is_measured = [&](const std::unique_ptr<KindPlanner>& planner) {
    return evidence != nullptr && planner->covers(*evidence);
  };
  if (evidence != nullptr && std::none_of(planners.begin(), planners.end(), is_measured)) {
    throw ConfigError(
        fmt::format("--measured-step: measured on {}, which the plan does not offer; add it, or give a step measured "
                    "on a kind in the plan",
                    evidence->hardware));
  }
  for (const std::unique_ptr<KindPlanner>& planner : planners) {
    plan.kinds.push_back(planner->plan(is_measured(planner) ? evidence : nullptr));
  }
  if (const std::optional<RunChoice> choice = choose_run(file, plan.kinds)) {
    plan.answer = choice->chosen.kind;
    planners[choice->chosen.kind]->take(plan.kinds[choice->chosen.kind], choice->chosen.run);
    plan.ties = choice->ties;
    plan.tie_rule = choice->reason;
    plan.model_error = planners[choice->chosen.kind]->model_error();
    plan.has_measured_step = is_measured(planners[choice->chosen.kind]);
  }
  add_break_even_prices(plan);
  add_pareto(plan);
  if (plan.answer) {
    WhatIfs what_ifs(*planners[*plan.answer], *plan.best_kind()->best(), plan.best_kind()->step_error);
    plan.what_ifs = what_ifs.all_changes();
    plan.curves = what_ifs.curves();
    plan.sensitivities = what_ifs.sensitivities();
  }
  return plan;
}

}  // namespace commfuse
