// SPDX-License-Identifier: Apache-2.0
#include "sim/tune/wishes.h"

#include <algorithm>

#include "model/config/choices.h"

namespace commfuse {

namespace {

constexpr std::int64_t usual_tokens = std::int64_t{4} << 20;

/// Returns the value if the user chose it.
template <class T>
std::optional<T> wish(const Settings& settings, std::string_view key, T value) {
  return is_chosen(settings, key) ? std::optional(value) : std::nullopt;
}

/// Resets everything that the search chooses (PlanWish) to its default.
TrainingPlan without_degrees(TrainingPlan plan) {
  const TrainingPlan defaults;
  plan.tensor = defaults.tensor;
  plan.sequence_parallel = defaults.sequence_parallel;
  plan.pipeline = defaults.pipeline;
  plan.interleave = defaults.interleave;
  plan.data = defaults.data;
  plan.context = defaults.context;
  plan.ulysses = defaults.ulysses;
  plan.expert = defaults.expert;
  plan.zero = defaults.zero;
  plan.micro_batch = defaults.micro_batch;
  plan.recompute = defaults.recompute;
  return plan;
}

}  // namespace

bool is_chosen(const Settings& settings, std::string_view key) {
  return settings.at(*find_field(key)).origin.source != Source::preset;
}

PlanWish wish_of(const Settings& settings) {
  const RunChoices run = choices_of(settings);
  const TrainingPlan& plan = run.plan;
  PlanWish wanted{.tensor = wish(settings, "ranks", std::int64_t{run.ranks}),
                  .pipeline = wish(settings, "parallel.pipeline", plan.pipeline),
                  .interleave = wish(settings, "parallel.interleave", plan.interleave),
                  .context = wish(settings, "parallel.context", plan.context),
                  .ulysses = wish(settings, "parallel.ulysses", plan.ulysses),
                  .data = wish(settings, "parallel.data", plan.data),
                  .expert = wish(settings, "parallel.experts", plan.expert),
                  .micro_batch = wish(settings, "step.micro_batch", plan.micro_batch)};
  wanted.sequence_parallel = wish(settings, "parallel.sequence_parallel", plan.sequence_parallel);
  wanted.zero = wish(settings, "parallel.zero", plan.zero);
  wanted.recompute = wish(settings, "step.recompute", plan.recompute);
  return wanted;
}

TrainingPlan base_of(const Settings& settings) {
  const RunChoices run = choices_of(settings);
  TrainingPlan base = without_degrees(run.plan);
  base.seq = run.seq;
  base.global_batch = is_chosen(settings, "batch") ? run.batch : std::max<std::int64_t>(1, usual_tokens / base.seq);
  base.dtype = run.dtype;
  return base;
}

}  // namespace commfuse
