// SPDX-License-Identifier: Apache-2.0
// A training step of a whole model: layers are priced once a shape, the pipeline is played pass by pass, gradients are
// reduced beside the last backward pass. docs/decisions/0019 says what is simulated, composed and neglected.
#pragma once

#include <cstdint>

#include "model/units.h"
#include "model/workload/memory.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

/// Where the time of the slowest stage goes; the parts add up to the step.
struct StepBreakdown {
  Duration compute{};    ///< Device time of its passes: kernels and the collectives between them.
  Duration waiting{};    ///< Pipeline bubble, sends, and a host that is slower than the device.
  Duration gradients{};  ///< Their reduction, as far as it shows behind the last backward pass; weights gathered.
  Duration optimizer{};
};

/// Of the step's time, over machines whose GPUs were drawn anew: with kernels as slow as those of the slowest GPU,
/// and collectives as long as they are in the mean. What a single kernel strays averages out over the thousands of a
/// step and is left out.
struct StepPercentiles {
  Duration alike{};  ///< If no GPU were slower than another.
  Duration p50{};
  Duration p95{};
  Duration p99{};
  Duration p99_9{};
};

struct StepPrediction {
  Duration time{};
  StepBreakdown parts;
  double tokens_per_second = 0.0;
  double mfu = 0.0;   ///< Model FLOPs, attention counted causally, over the dense peak of all GPUs.
  double hfu = 0.0;   ///< With what is computed again.
  StepMemory memory;  ///< Of the GPU that needs the most.
  bool fits = true;   ///< Its memory.
};

/// With as many nodes as the plan needs: a machine of several nodes is made larger or smaller, a single node stays.
/// Throws ConfigError where the plan does not fit a single node.
Machine resized(Machine machine, const TrainingPlan& plan);

/// Throws ConfigError: what require_possible of a plan throws, a plan that does not fit the machine, a dtype that it
/// lacks, and layers that are not priced (latent attention that shares sequences).
void require_possible(const StepPoint& point);

/// Throws ConfigError where the strategy has no schedule for a site. Requires a possible point.
StepPrediction predict_step(const StepPoint& point, SiteTimes& sites);

/// No longer than predict_step's time, and known without playing the pipeline: no order of its passes is shorter.
/// Throws and requires as predict_step.
Duration least_step_time(const StepPoint& point, SiteTimes& sites);

/// Requires a possible point.
StepPercentiles step_percentiles(const StepPoint& point, SiteTimes& sites);

/// A forward pass over the prompts of a micro-batch on one stage, without pipeline and loss: tensor ranks share it.
struct PrefillPrediction {
  Duration time{};
  double tokens_per_second = 0.0;
  double mfu = 0.0;
  Bytes memory;  ///< Weights of one GPU, and the keys, values and states that the pass leaves: the least it needs.
};

/// Logits are those of the last token of each sequence. Requires a possible point with one stage.
PrefillPrediction predict_prefill(const StepPoint& point, SiteTimes& sites);

/// One token more for every sequence of a micro-batch, whose keys are in the cache.
struct DecodePrediction {
  Duration time{};
  double tokens_per_second = 0.0;
  double mfu = 0.0;
  Bytes weights;     ///< Of one GPU.
  Bytes cache;       ///< Keys and values of one GPU, and states.
  bool fits = true;  ///< Both in its memory.
};

/// Requires a possible point with one stage, cached > 0 and plan.seq 1.
DecodePrediction predict_decode(const StepPoint& point, SiteTimes& sites);

}  // namespace commfuse
