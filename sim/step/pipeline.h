// SPDX-License-Identifier: Apache-2.0
// A pipeline of stages played pass by pass: 1F1B (Narayanan et al., "Memory-efficient pipeline-parallel DNN training",
// 2021) and interleaved 1F1B (Narayanan et al., "Efficient large-scale language model training on GPU clusters using
// Megatron-LM", 2021, section 2.2).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/step/stream.h"

namespace commfuse {

/// One piece of the model: its passes of one micro-batch.
struct Piece {
  Stream forward;
  Stream backward;
};

struct Pipeline {
  std::int64_t stages = 1;
  std::int64_t interleave = 1;
  std::int64_t micro_batches = 1;
  std::vector<Piece> pieces;  ///< stages x interleave, in order; piece i is on stage i mod stages.
  Duration send{};            ///< From one stage to the next: activations or their gradients of one micro-batch.
};

/// The last backward pass of a piece, in which its gradients become final.
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
/// multiple of the stages where interleave > 1.
std::vector<StageTimes> play(const Pipeline& pipeline);

}  // namespace commfuse
