// SPDX-License-Identifier: Apache-2.0
// A pipeline of stages played pass by pass: 1F1B (Narayanan et al., "Memory-efficient pipeline-parallel DNN training",
// 2021) and interleaved 1F1B (Narayanan et al., "Efficient large-scale language model training on GPU clusters using
// Megatron-LM", 2021, section 2.2) and ZB-H1 (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 2).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/step/stream.h"

namespace commfuse {

/// One piece of the model: its passes of one micro-batch.
struct PipelinePiece {
  Stream forward;
  Stream backward;      ///< Where it is split, up to the gradients of its inputs.
  Stream weights = {};  ///< The gradients of its weights, where the backward pass is split.
  /// What an exchange of weights adds to the forward pass of the first micro-batch, and one of gradients to the pass of
  /// the last one in which they become final.
  Duration first_longer{};
  Duration last_longer{};
};

struct Pipeline {
  std::int64_t stages = 1;
  std::int64_t interleave = 1;
  std::int64_t micro_batches = 1;
  std::vector<PipelinePiece> pieces;  ///< stages x interleave, in order; piece i is on stage i mod stages.
  /// Between stage i and the next, the first behind the last: activations or their gradients of one micro-batch. Empty
  /// with one stage.
  std::vector<Duration> sends = {};
  bool splits_backward = false;  ///< ZB-H1.
};

/// The last backward pass of a piece, or of its weights where that is apart, in which its gradients become final.
struct LastBackward {
  std::int64_t piece = 0;
  Duration start{};
  Duration end{};
};

struct StageTimes {
  Duration end{};                           ///< Of the last pass.
  Duration busy{};                          ///< Device time of all passes.
  std::vector<LastBackward> last_backward;  ///< In the order in which they end.
};

/// By stage. A pass starts when its stage has done with the one before and its input has arrived; a stage waits in the
/// schedule's order, not in that of arrival. A send holds no stage. Requires the number of micro-batches to be a
/// multiple of the stages where interleave > 1, and one piece a stage where the backward pass is split.
///
/// ZB-H1 takes the gradients of weights off the way from stage to stage: stage i warms up as in 1F1B and takes them i
/// micro-batches behind those of the inputs, so that every stage keeps the activations of as many micro-batches as
/// there are stages, which is what the first one keeps in 1F1B, and fills the bubble at the end with them. With forward
/// f, backward b to the inputs and w to the weights, w no longer than f and b, and at least as many micro-batches as
/// stages, the bubble is (stages - 1) (f + b - w), where 1F1B has (stages - 1) (f + b + w).
std::vector<StageTimes> play(const Pipeline& pipeline);

}  // namespace commfuse
