// SPDX-License-Identifier: Apache-2.0
#include "sim/tune/fastest_plans.h"

#include <algorithm>

namespace commfuse {

namespace {

/// A plan with its time or with a lower bound of its time.
struct Ranked {
  Duration time{};
  std::size_t plan = 0;  ///< index into the plans given
  StepPrediction step;
};

bool shorter(const Ranked& a, const Ranked& b) { return a.time != b.time ? a.time < b.time : a.plan < b.plan; }

}  // namespace

TiedPlan tied_plan(const TunedPlan& plan) {
  return {.gpus = plan.plan.gpus(),
          .memory = static_cast<double>(plan.step.memory.total().count),
          .kinds = plan.plan.kinds_of_parallelism()};
}

FastestPlans fastest_plans(StepPoint point, const std::vector<TrainingPlan>& plans, SiteTimes& times, std::size_t limit,
                           double within) {
  std::vector<Ranked> bounds;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    point.plan = plans[i];
    bounds.push_back({.time = least_step_time(point, times), .plan = i});
  }
  std::sort(bounds.begin(), bounds.end(), shorter);
  FastestPlans fastest;
  std::vector<Ranked> best;
  for (const Ranked& bound : bounds) {
    const bool is_full = best.size() == limit && (best.empty() || !shorter(bound, best.back()));
    const bool is_far = !best.empty() && to_seconds(bound.time) > (1.0 + within) * to_seconds(best.front().time);
    if (is_full || is_far) {
      break;
    }
    ++fastest.priced;
    point.plan = plans[bound.plan];
    Ranked ranked{.plan = bound.plan, .step = predict_step(point, times)};
    ranked.time = ranked.step.time;
    best.insert(std::upper_bound(best.begin(), best.end(), ranked, shorter), ranked);
    best.resize(std::min(best.size(), limit));
  }
  for (const Ranked& ranked : best) {
    fastest.best.push_back({.plan = plans[ranked.plan], .step = ranked.step});
  }
  return fastest;
}

}  // namespace commfuse
