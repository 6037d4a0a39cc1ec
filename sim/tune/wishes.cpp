// SPDX-License-Identifier: Apache-2.0
#include "sim/tune/wishes.h"

#include <algorithm>

#include "model/config/choices.h"

namespace commfuse {

namespace {

constexpr std::int64_t usual_tokens = std::int64_t{4} << 20;

std::optional<std::int64_t> wish(const Settings& settings, std::string_view key) {
  return is_chosen(settings, key) ? std::optional(settings.count(key)) : std::nullopt;
}

}  // namespace

bool is_chosen(const Settings& settings, std::string_view key) {
  return settings.at(*find_field(key)).origin.source != Source::preset;
}

PlanWish wish_of(const Settings& settings) {
  PlanWish wanted{.tensor = wish(settings, "ranks"),
                  .pipeline = wish(settings, "parallel.pipeline"),
                  .interleave = wish(settings, "parallel.interleave"),
                  .context = wish(settings, "parallel.context"),
                  .ulysses = wish(settings, "parallel.ulysses"),
                  .data = wish(settings, "parallel.data"),
                  .expert = wish(settings, "parallel.experts"),
                  .micro_batch = wish(settings, "step.micro_batch")};
  if (is_chosen(settings, "parallel.sequence_parallel")) {
    wanted.sequence_parallel = chosen(switch_choices, settings.text("parallel.sequence_parallel"));
  }
  if (const std::optional<std::int64_t> zero = wish(settings, "parallel.zero")) {
    wanted.zero = static_cast<Zero>(*zero);
  }
  if (is_chosen(settings, "step.recompute")) {
    wanted.recompute = recompute_named(settings.text("step.recompute"));
  }
  return wanted;
}

TrainingPlan base_of(const Settings& settings) {
  TrainingPlan base;
  base.seq = settings.count("seq");
  base.global_batch =
      is_chosen(settings, "batch") ? settings.count("batch") : std::max<std::int64_t>(1, usual_tokens / base.seq);
  base.schedule = *pipeline_schedule_named(settings.text("parallel.schedule"));
  base.dtype = *dtype_named(settings.text("dtype"));
  base.gradient_dtype = DType::fp32;
  base.optimizer = *optimizer_named(settings.text("step.optimizer"));
  return base;
}

}  // namespace commfuse
