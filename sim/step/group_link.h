// SPDX-License-Identifier: Apache-2.0
// Waiting times between the GPUs of a step: for the slowest GPU, and for the data that a stage sends to the next.
#pragma once

#include <cstdint>

#include "model/cost/group.h"
#include "model/hardware/machine.h"
#include "model/units.h"

namespace commfuse {

/// Returns the mean slowdown of the slowest of this many GPUs against the median, where the speeds of GPUs are
/// lognormal: exp(sigma x q), with q the standard normal quantile at (n - 0.375) / (n + 0.25) (Blom 1958). Returns 1
/// for one GPU or sigma 0. All GPUs wait for the slowest GPU in every step, and a collective waits for its slowest
/// member.
double slowest_of(std::int64_t gpus, double sigma);

/// A probability between 0 and 1.
struct Probability {
  double value = 0.5;
};

/// Returns the slowdown that a share `probability` of machines does not exceed. All n GPUs are no slower than f with
/// probability F(f)^n, so this slowdown is the quantile of one GPU's factor at probability^(1/n). Requires gpus >= 1
/// and 0 < probability < 1.
double slowest_of(std::int64_t gpus, double sigma, Probability probability);

/// A send between neighbouring stages, in either direction; the first stage follows the last. Stages are
/// `gpus_per_stage` consecutive GPUs starting at `first_gpu`, each of which sends `bytes` to its counterpart
/// simultaneously; the slowest pair determines the time. Pairs across nodes share the NICs of their nodes; pairs within
/// a node share its wires.
struct StageSend {
  std::int64_t stages = 1;
  std::int64_t gpus_per_stage = 1;
  Bytes bytes;
  std::int64_t first_gpu = 0;
};
/// Returns the time of the send from `stage` to the next stage.
Duration send_time(const Machine& machine, const StageSend& send, std::int64_t stage);

}  // namespace commfuse
