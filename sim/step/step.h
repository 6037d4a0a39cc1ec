// SPDX-License-Identifier: Apache-2.0
// Predicts a training step of a whole model: layers are priced once per shape, the pipeline is simulated pass by pass,
// gradients are reduced during the last backward pass. docs/decisions/0019 lists what is simulated, composed and
// neglected.
#pragma once

#include <cstdint>
#include <optional>

#include "model/units.h"
#include "model/workload/memory.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

/// Breakdown of the step's time on the stage that computes longest; the parts add up to the step.
struct StepBreakdown {
  Duration compute{};    ///< Device time of its passes: kernels and the collectives between them.
  Duration waiting{};    ///< Waiting for other stages (pipeline bubble), sends, a slow host, and the last stage's end.
  Duration gradients{};  ///< Exposed reduction after the last backward pass, and gathering of weights.
  Duration optimizer{};
};

/// Percentiles of the time of a step, a prefill or a decoding step over machines with randomly drawn GPUs: kernels are
/// as slow as on the slowest GPU, and collectives take their mean time. The jitter of single kernels averages out over
/// the hundreds or thousands of kernels in a pass and is ignored, and so are stalls.
struct StepPercentiles {
  Duration equal_gpus{};  ///< Time if all GPUs had the same speed.
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
  double hfu = 0.0;   ///< Like `mfu`, but the FLOPs include recomputation.
  StepMemory memory;  ///< Memory of the GPU that needs the most.
  bool fits = true;   ///< The GPU has that much memory.
};

/// Returns the machine with the number of nodes that the plan needs: a machine with a network gets more or fewer nodes,
/// a single node stays unchanged. Throws ConfigError where the plan does not fit a single node, and for more than 2^30
/// GPUs.
Machine resized(Machine machine, const TrainingPlan& plan);

/// Throws ConfigError as require_possible of a plan does, and for a plan that does not fit the machine, a dtype that
/// the machine lacks, activations of 32 bits, and attention that is not priced where ranks share sequences (latent
/// attention; unfused attention with context ranks).
void require_possible(const StepPoint& point);

/// Returns how the framework holds the weights of fp8 GEMMs on the machine's GPUs. Before Blackwell, fp8 GEMMs read
/// their operands only along k (TransformerEngine, is_non_tn_fp8_gemm_supported), so a weight of 8 bits has a
/// transposed copy, which the gradient of the input reads: both together take as much as 16 bits. (Blackwell's
/// workstation GPUs read like Hopper, but no framework file is for them.)
Fp8Weights fp8_weights_of(const Framework& framework, const Machine& machine);
/// Returns what the framework keeps in the memory of the machine's GPUs.
MemoryRules memory_rules_of(const Framework& framework, const Machine& machine);

/// Returns whether the point's strategies, or without strategies the framework's kernels, have a schedule for every
/// site: whether predict_step() finds a time instead of throwing. Prices nothing. Requires `point` to be possible and
/// to have no implementation of its own (StepPoint::implemented).
bool has_schedules(const StepPoint& point, SiteTimes& sites);

/// Predicts the step on an average machine (on_average() in passes.h). Throws ConfigError where the point's strategies
/// have no schedule for a site. Requires `point` to be possible (require_possible).
StepPrediction predict_step(const StepPoint& point, SiteTimes& sites);

/// Returns only the time of predict_step(), which takes less work. Requires what predict_step() requires, and throws as
/// it does.
Duration step_time(const StepPoint& point, SiteTimes& sites);

/// Returns a lower bound of predict_step's time without simulating the pipeline: no order of its passes takes less.
/// Requires what predict_step() requires, and throws as it does.
Duration least_step_time(const StepPoint& point, SiteTimes& sites);

/// Returns the percentiles of the time of a step. Requires `point` to be possible.
StepPercentiles step_percentiles(const StepPoint& point, SiteTimes& sites);

/// Breakdown of a prefill or a decoding step: device times over all layers, which add up to the pass with `waiting`.
struct InferenceBreakdown {
  Duration mixing{};   ///< Attention or state spaces, with their collectives.
  Duration mlp{};      ///< MLPs or experts, with their collectives.
  Duration other{};    ///< Embedding, norms with residuals, and logits.
  Duration waiting{};  ///< Waiting for a host that is slower than its GPU.
};

/// A forward pass over the prompts of a micro-batch on one stage, shared by the ranks of one replica, without pipeline
/// and loss.
struct PrefillPrediction {
  Duration time{};
  std::optional<InferenceBreakdown> parts;  ///< Nothing for a woven pass, whose blocks run simultaneously.
  double tokens_per_second = 0.0;
  double mfu = 0.0;
  Bytes weights;      ///< On one GPU.
  Bytes cache;        ///< Keys, values and states that the pass leaves on one GPU.
  Bytes least_cache;  ///< Cache on one GPU with one tensor rank per head (kv heads are copied): the least possible.
  bool fits = true;   ///< Weights and cache fit in the GPU's memory; activations are not counted.
};

/// Predicts a prefill; computes logits only for the last token of each sequence. Requires `point` to be possible, with
/// one stage.
PrefillPrediction predict_prefill(const StepPoint& point, SiteTimes& sites);

/// One more token for every sequence of a micro-batch, whose keys are in the cache.
struct DecodePrediction {
  Duration time{};
  std::optional<InferenceBreakdown> parts;  ///< Nothing for a woven pass.
  double tokens_per_second = 0.0;
  double mfu = 0.0;
  Bytes weights;      ///< On one GPU.
  Bytes cache;        ///< Keys, values and states on one GPU.
  Bytes least_cache;  ///< Cache on one GPU with one tensor rank per head.
  bool fits = true;   ///< Weights and cache fit in the GPU's memory.
};

/// Predicts a decoding step. Requires `point` to be possible, with one stage, cached > 0 and plan.seq == 1.
DecodePrediction predict_decode(const StepPoint& point, SiteTimes& sites);

/// Returns the percentiles of the time of predict_prefill() or, with cached keys, of predict_decode(). Has the
/// requirements of these functions.
StepPercentiles inference_percentiles(const StepPoint& point, SiteTimes& sites);

}  // namespace commfuse
