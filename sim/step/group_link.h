// SPDX-License-Identifier: Apache-2.0
// Who waits for whom among the GPUs of a step: for the slowest of them, and for what a stage sends to the next.
#pragma once

#include <cstdint>

#include "model/cost/group.h"
#include "model/hardware/machine.h"
#include "model/units.h"

namespace commfuse {

/// How much slower than the median the slowest of so many GPUs is, in the mean, where the speeds of GPUs are lognormal:
/// exp(sigma x q), with q the standard normal quantile at (n - 0.375) / (n + 0.25) (Blom 1958). All wait for it in
/// every step. 1 for one GPU or sigma 0. Likewise of the members of a collective.
double slowest_of(std::int64_t gpus, double sigma);

/// That factor in the machines of which `probability` are no slower: all n are no slower than f with probability
/// F(f)^n, so it is the quantile of one GPU's factor at probability^(1/n). Requires gpus >= 1 and 0 < probability < 1.
double slowest_of(std::int64_t gpus, double sigma, double probability);

/// What stage `stage` of so many sends to the next, or that to it; of the last, the first. Stages are `gpus_of_a_stage`
/// GPUs in a row, each of which sends `bytes` to its like, all at once: the slowest pair counts. Those in different
/// nodes share the NICs of theirs, those in one its wires.
struct StageSend {
  std::int64_t stages = 1;
  std::int64_t gpus_of_a_stage = 1;
  Bytes bytes;
};
Duration send_time(const Machine& machine, const StageSend& send, std::int64_t stage);

}  // namespace commfuse
