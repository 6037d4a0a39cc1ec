// SPDX-License-Identifier: Apache-2.0
// The possible layouts of a training step over a number of GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/config/framework.h"
#include "model/hardware/machine.h"
#include "model/workload/training_plan.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// The degrees that the user fixed; the rest are free.
struct PlanWish {
  std::optional<std::int64_t> tensor;
  std::optional<bool> sequence_parallel;
  std::optional<std::int64_t> pipeline;
  std::optional<std::int64_t> interleave;
  std::optional<std::int64_t> context;
  std::optional<std::int64_t> ulysses;
  std::optional<std::int64_t> data;
  std::optional<std::int64_t> expert;
  std::optional<std::int64_t> micro_batch;
  std::optional<Zero> zero;
  std::optional<Recompute> recompute;

  friend bool operator==(const PlanWish&, const PlanWish&) = default;
};

/// The plans to search. `base` has everything that is not a degree of freedom: batch, sequence, dtypes, optimizer.
struct PlanSpace {
  const Transformer* model = nullptr;
  const Machine* machine = nullptr;
  std::int64_t gpus = 1;
  TrainingPlan base;
  PlanWish wish;
  Framework framework{};  ///< Framework under which all plans run.
};

/// Returns all possible plans that use every GPU, in a fixed order. The free degrees are: tensor ranks in powers of two
/// within a node; stages, down to one layer each; every number of chunks per stage into which the layers split
/// (splits_over), down to one layer each; context ranks in powers of two that leave at least 1024 tokens each;
/// micro-batches of 1, 2, 4 or 8 sequences; ZeRO 1 (0 without replicas, 3 also without a pipeline); recomputation of
/// nothing or everything, or of the framework's selection where that frees memory; one rank of Ulysses; expert ranks:
/// the greatest common divisor of experts and replicas, and every power of two that divides it. Tensor ranks share the
/// tokens of norms (sequence parallelism).
std::vector<TrainingPlan> plans_of(const PlanSpace& space);

/// Throws ConfigError, as require_possible() of a plan with these degrees does, if the fixed tensor and Ulysses ranks
/// cannot share the heads and columns of the model, whatever the other degrees are.
void require_possible(const Transformer& model, const PlanWish& wish);

}  // namespace commfuse
