// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/layout_search.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <set>
#include <utility>

#include "model/config_error.h"
#include "model/workload/model_flops.h"

namespace commfuse {

namespace {

constexpr double longest_step = 1e6;  // seconds at the dense peak; longer steps are not planned

std::vector<std::int64_t> divisors(std::int64_t whole, std::int64_t limit) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t divisor = 1; divisor <= std::min(whole, limit); ++divisor) {
    if (whole % divisor == 0) {
      divisors.push_back(divisor);
    }
  }
  return divisors;
}

/// Returns the powers of two up to `limit`, or only the degree that the user chose.
std::vector<std::int64_t> doublings(std::int64_t limit, const std::optional<std::int64_t>& wish) {
  std::vector<std::int64_t> degrees;
  for (std::int64_t degree = 1; degree <= limit && !wish; degree *= 2) {
    degrees.push_back(degree);
  }
  return wish ? std::vector{*wish} : degrees;
}

std::vector<std::int64_t> stages_of(const Transformer& model, const std::optional<std::int64_t>& wish) {
  std::vector<std::int64_t> degrees;
  for (std::int64_t stages = 1; stages <= model.layers + 2; ++stages) {
    if (splits_over(model, stages) && wish.value_or(stages) == stages) {
      degrees.push_back(stages);
    }
  }
  return degrees;
}

/// Returns the product of the degrees, or nothing if it exceeds the limit. Degrees that a file fixes may overflow.
std::optional<std::int64_t> product_within(std::int64_t limit, std::initializer_list<std::int64_t> degrees) {
  std::int64_t product = 1;
  for (const std::int64_t degree : degrees) {
    if (degree > limit / product) {
      return std::nullopt;
    }
    product *= degree;
  }
  return product;
}

/// Returns why the point's strategies have no schedule for a site; empty if they have one for every site.
std::string why_unscheduled(const StepPoint& point, SiteTimes& times) {
  try {
    (void)least_step_time(point, times);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

LayoutSearch::LayoutSearch(const Transformer& model, const Machine& machine, StructureCache& structures,
                           const LayoutTerms& terms)
    : model_(model), machine_(machine), terms_(terms), times_(structures, machine) {}

std::vector<std::int64_t> LayoutSearch::counts(std::int64_t limit) const {
  const PlanWish& wish = terms_.wish;
  const std::vector<std::int64_t> replicas =
      wish.data ? std::vector{*wish.data} : divisors(terms_.base.global_batch, limit);
  std::set<std::int64_t> counts;
  for (const std::int64_t tensor : doublings(machine_.gpus_per_node, wish.tensor)) {
    for (const std::int64_t stages : stages_of(model_, wish.pipeline)) {
      for (const std::int64_t context : doublings(terms_.base.seq, wish.context)) {
        for (const std::int64_t data : replicas) {
          const std::optional<std::int64_t> gpus =
              product_within(limit, {tensor, stages, context, wish.ulysses.value_or(1), data});
          if (gpus && fills_nodes(*gpus)) {
            counts.insert(*gpus);
          }
        }
      }
    }
  }
  return {counts.begin(), counts.end()};
}

bool LayoutSearch::fills_nodes(std::int64_t gpus) const {
  const std::int64_t node = machine_.gpus_per_node;
  return gpus < node ? node % gpus == 0 : gpus % node == 0;
}

StepPoint LayoutSearch::point_of(const TrainingPlan& plan) const {
  StepPoint point{.model = &model_, .machine = &machine_, .plan = plan, .framework = terms_.framework};
  point.strategies = terms_.strategies();
  point.rank_sigma = terms_.rank_sigma;
  point.communication_sigma = terms_.communication_sigma;
  return point;
}

std::vector<TrainingPlan> LayoutSearch::fitting(std::int64_t gpus) {
  const PlanSpace space{.model = &model_,
                        .machine = &machine_,
                        .gpus = gpus,
                        .base = terms_.base,
                        .wish = terms_.wish,
                        .framework = terms_.framework};
  const double limit = terms_.memory_share * static_cast<double>(machine_.accelerator.hbm_capacity.count);
  std::vector<TrainingPlan> plans = plans_of(space);
  if (!plans.empty()) {
    require_possible(point_of(plans.front()));
  }
  tally_.layouts += plans.size();
  const MemoryRules rules = memory_rules_of(terms_.framework, machine_);
  std::erase_if(plans, [&](const TrainingPlan& plan) {
    const Bytes memory = largest_step_memory(model_, plan, rules).total();
    tally_.least_memory = std::min(tally_.least_memory.value_or(memory), memory);
    return static_cast<double>(memory.count) > limit;
  });
  tally_.fitting += plans.size();
  return plans;
}

void LayoutSearch::keep_scheduled(StepPoint point, std::vector<TrainingPlan>& plans) {
  // Among layouts of one search, schedules depend only on the tokens of a pass and on the ranks that share them.
  std::map<std::array<std::int64_t, 4>, bool> known;
  const bool is_unfit = plans.empty();
  TrainingPlan unscheduled = point.plan;
  std::erase_if(plans, [&](const TrainingPlan& plan) {
    const std::array<std::int64_t, 4> sharing{plan.tensor, plan.context, plan.ulysses, plan.micro_batch};
    const auto [entry, is_new] = known.try_emplace(sharing);
    if (is_new) {
      point.plan = plan;
      entry->second = has_schedules(point, times_);
    }
    if (!entry->second) {
      unscheduled = plan;
    }
    return !entry->second;
  });
  if (plans.empty() && !is_unfit) {
    point.plan = unscheduled;
    tally_.refusal = why_unscheduled(point, times_);
  }
}

std::vector<TunedPlan> LayoutSearch::fastest_few(std::int64_t gpus, const std::vector<const Strategy*>& strategies,
                                                 std::size_t limit) {
  require_supported(machine_.accelerator, terms_.base.dtype);
  const Tokens tokens{terms_.base.global_batch, terms_.base.seq};
  const double peak = machine_.accelerator.dense_peak(terms_.base.dtype).value * static_cast<double>(gpus);
  if (training_flops(model_, tokens, AttentionCount::causal).count > longest_step * peak) {
    tally_.too_slow = true;
    return {};
  }
  StepPoint point = point_of(terms_.base);
  point.strategies = strategies;
  std::vector<TrainingPlan> plans = fitting(gpus);
  keep_scheduled(point, plans);
  FastestPlans fastest = fastest_plans(point, plans, times_, limit, terms_.rule.difference);
  tally_.priced += fastest.priced;
  return std::move(fastest.best);
}

std::optional<FoundLayout> LayoutSearch::fastest(std::int64_t gpus, const std::vector<const Strategy*>& strategies) {
  const std::vector<TunedPlan> plans = fastest_few(gpus, strategies, 1);
  return plans.empty() ? std::nullopt : std::optional(at(plans.front().plan, strategies));
}

std::optional<FoundLayout> LayoutSearch::preferred(std::int64_t gpus) {
  const std::vector<const Strategy*> strategies = terms_.strategies();
  const std::vector<TunedPlan> plans = fastest_few(gpus, strategies, compared_plans);
  if (plans.empty()) {
    return std::nullopt;
  }
  std::vector<PlanContender> contenders;
  for (const TunedPlan& plan : plans) {
    contenders.push_back({.objective = {.time = to_seconds(plan.step.time)}, .plan = tied_plan(plan)});
  }
  PlanChoice choice = choose_plan(contenders, terms_.rule);
  FoundLayout layout = at(plans[choice.chosen].plan, strategies);
  layout.excess_over_fastest = contenders[choice.chosen].objective.time / contenders.front().objective.time - 1.0;
  layout.reason = std::move(choice.reason);
  return layout;
}

FoundLayout LayoutSearch::at(const TrainingPlan& plan, const std::vector<const Strategy*>& strategies) {
  StepPoint point = point_of(plan);
  point.strategies = strategies;
  return {plan, predict_step(point, times_), step_percentiles(point, times_)};
}

}  // namespace commfuse
