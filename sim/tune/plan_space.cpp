// SPDX-License-Identifier: Apache-2.0
#include "sim/tune/plan_space.h"

#include <algorithm>
#include <numeric>

#include "model/config_error.h"

namespace commfuse {

namespace {

using Counts = std::vector<std::int64_t>;

/// Returns 1, 2, 4 and so on, up to `limit`.
Counts doublings(std::int64_t limit) {
  Counts powers;
  for (std::int64_t power = 1; power <= limit; power *= 2) {
    powers.push_back(power);
  }
  return powers;
}

Counts divisors(std::int64_t whole, std::int64_t limit) {
  Counts numbers;
  for (std::int64_t divisor = 1; divisor <= std::min(whole, limit); ++divisor) {
    if (whole % divisor == 0) {
      numbers.push_back(divisor);
    }
  }
  return numbers;
}

Counts wished(const std::optional<std::int64_t>& wish, Counts free) { return wish ? Counts{*wish} : std::move(free); }

bool is_possible(const Transformer& model, const TrainingPlan& plan) {
  try {
    require_possible(model, plan);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

/// Generates all plans as a nested loop over the degrees.
class Walk {
 public:
  explicit Walk(const PlanSpace& space) : space_(space), model_(*space.model), wish_(space.wish) {}

  std::vector<TrainingPlan> plans() {
    for (const std::int64_t tensor : wished(wish_.tensor, doublings(space_.machine->gpus_per_node))) {
      if (space_.gpus % tensor == 0) {
        TrainingPlan plan = space_.base;
        plan.tensor = tensor;
        plan.sequence_parallel = tensor > 1 && wish_.sequence_parallel.value_or(true);
        pipelines(plan);
      }
    }
    return std::move(plans_);
  }

 private:
  void pipelines(TrainingPlan plan) {
    const std::int64_t rest = space_.gpus / plan.tensor;
    for (const std::int64_t pipeline : wished(wish_.pipeline, divisors(rest, model_.layers + 2))) {
      for (const std::int64_t interleave : wished(wish_.interleave, chunks_per_stage(pipeline))) {
        if (rest % pipeline == 0) {
          plan.pipeline = pipeline;
          plan.interleave = interleave;
          contexts(plan);
        }
      }
    }
  }

  /// Returns every number of model chunks per stage into which the layers can be split.
  [[nodiscard]] Counts chunks_per_stage(std::int64_t pipeline) const {
    Counts chunks;
    for (std::int64_t count = 1; count * pipeline <= model_.layers + 2 && (count == 1 || pipeline > 1); ++count) {
      if (splits_over(model_, count * pipeline)) {
        chunks.push_back(count);
      }
    }
    return chunks;
  }

  void contexts(TrainingPlan plan) {
    constexpr std::int64_t min_tokens_per_rank = 1024;
    plan.ulysses = wish_.ulysses.value_or(1);
    const std::int64_t rest = space_.gpus / plan.tensor / plan.pipeline / plan.ulysses;
    if (space_.gpus % (plan.tensor * plan.pipeline * plan.ulysses) != 0) {
      return;
    }
    // Latent and unfused attention cannot split a sequence across ranks; require_possible(const StepPoint&) in
    // sim/step/step.cpp rejects such plans.
    const bool shares = !model_.latent && plan.fused_attention;
    const std::int64_t limit = !shares ? 1 : std::max<std::int64_t>(1, plan.seq / plan.ulysses / min_tokens_per_rank);
    for (const std::int64_t context : wished(wish_.context, doublings(limit))) {
      if (rest % context == 0) {
        plan.context = context;
        plan.data = rest / context;
        if (wish_.data.value_or(plan.data) == plan.data) {
          passes(plan);
        }
      }
    }
  }

  void passes(TrainingPlan plan) {
    for (const std::int64_t micro_batch : wished(wish_.micro_batch, doublings(8))) {
      plan.micro_batch = micro_batch;
      if (plan.global_batch % (plan.data * micro_batch) != 0) {
        continue;
      }
      experts(plan);
    }
  }

  /// Adds the plans of each degree of expert parallelism. Every degree divides the replicas and the experts, and the
  /// other conditions do not depend on it, so the plans of the first degree are copied.
  void experts(TrainingPlan plan) {
    const Counts degrees = wished(wish_.expert, expert_degrees(plan));
    const std::size_t begin = plans_.size();
    plan.expert = degrees.front();
    states(plan);
    const std::size_t end = plans_.size();
    for (std::size_t degree = 1; degree < degrees.size(); ++degree) {
      for (std::size_t i = begin; i < end; ++i) {
        plan = plans_[i];
        plan.expert = degrees[degree];
        plans_.push_back(plan);
      }
    }
  }

  [[nodiscard]] Counts expert_degrees(const TrainingPlan& plan) const {
    if (!model_.experts) {
      return {1};
    }
    const std::int64_t largest = std::gcd(model_.experts->count, plan.replicas());
    Counts degrees = doublings(largest);
    std::erase_if(degrees, [largest](std::int64_t degree) { return largest % degree != 0; });
    if (degrees.back() != largest) {
      degrees.push_back(largest);
    }
    return degrees;
  }

  void states(TrainingPlan plan) {
    std::vector<Zero> kinds{plan.replicas() > 1 ? Zero::optimizer : Zero::none};
    if (plan.replicas() > 1 && plan.pipeline == 1) {
      kinds.push_back(Zero::weights);
    }
    if (wish_.zero) {
      kinds = {*wish_.zero};
    }
    std::vector<Recompute> recomputes{Recompute::none, Recompute::full};
    if (space_.framework.selective.frees_memory(plan.fused_attention)) {
      recomputes.push_back(Recompute::selective);
    }
    if (wish_.recompute) {
      recomputes = {*wish_.recompute};
    }
    for (const Zero zero : kinds) {
      for (const Recompute recompute : recomputes) {
        plan.zero = zero;
        plan.recompute = recompute;
        if (is_possible(model_, plan)) {
          plans_.push_back(plan);
        }
      }
    }
  }

  const PlanSpace& space_;
  const Transformer& model_;
  const PlanWish& wish_;
  std::vector<TrainingPlan> plans_;
};

}  // namespace

std::vector<TrainingPlan> plans_of(const PlanSpace& space) { return Walk(space).plans(); }

void require_possible(const Transformer& model, const PlanWish& wish) {
  const std::int64_t ulysses = wish.ulysses.value_or(1);
  require_possible(model, TrainingPlan{.tensor = wish.tensor.value_or(1), .ulysses = ulysses, .seq = ulysses});
}

}  // namespace commfuse
