// SPDX-License-Identifier: Apache-2.0
// Simulates a pipeline of stages pass by pass: 1F1B (Narayanan et al., "Memory-efficient pipeline-parallel DNN
// training", 2021), interleaved 1F1B (Narayanan et al., "Efficient large-scale language model training on GPU clusters
// using Megatron-LM", 2021, section 2.2) and ZB-H1 (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section
// 2).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/step/stream.h"

namespace commfuse {

/// A chunk of the model: its passes over one micro-batch.
struct PipelineChunk {
  Stream forward;
  Stream backward;      ///< If split, only up to the gradients of its inputs.
  Stream weights = {};  ///< Gradients of its weights, where the backward pass is split.
  /// Time that an exchange of weights adds to the forward pass of the first micro-batch, and that an exchange of
  /// gradients adds to the pass of the last micro-batch, in which they become final.
  Duration first_longer{};
  Duration last_longer{};
};

struct Pipeline {
  std::int64_t stages = 1;
  std::int64_t interleave = 1;
  std::int64_t micro_batches = 1;
  std::vector<PipelineChunk> chunks;  ///< stages x interleave, in order; chunk i is on stage i mod stages.
  /// Times of the sends from stage i to the next, and from the last to the first: activations of one micro-batch, or
  /// their gradients. Empty with one stage.
  std::vector<Duration> sends = {};
  bool splits_backward = false;  ///< ZB-H1.
};

/// The pass in which the gradients of a chunk become final: its last backward pass, or its last weight-gradient pass
/// where these are separate.
struct LastBackward {
  std::int64_t chunk = 0;
  Duration start{};
  Duration end{};
};

struct StageTimes {
  Duration end{};                           ///< End of the last pass.
  Duration busy{};                          ///< Device time of all passes.
  std::vector<LastBackward> last_backward;  ///< In the order in which they end.
};

/// Returns the times by stage. A pass starts when its stage has finished the previous pass and its input has arrived; a
/// stage runs passes in the schedule's order, not in order of arrival. A send does not occupy a stage. Requires the
/// number of micro-batches to be a multiple of the stages where interleave > 1, and one chunk per stage where the
/// backward pass is split.
///
/// ZB-H1 takes the gradients of weights off the path from stage to stage: stage i warms up as in 1F1B and computes the
/// gradients of weights i micro-batches after the gradients of the inputs. Every stage therefore keeps the activations
/// of as many micro-batches as there are stages, as the first stage does in 1F1B, and the weight gradients fill the
/// bubble at the end. If f, b and w are the times of the forward pass, the backward pass to the inputs and the backward
/// pass to the weights, w is at most f and b, and there are at least as many micro-batches as stages, then the bubble
/// is (stages - 1) (f + b - w), where 1F1B has (stages - 1) (f + b + w).
std::vector<StageTimes> simulate(const Pipeline& pipeline);

}  // namespace commfuse
