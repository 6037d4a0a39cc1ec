// SPDX-License-Identifier: Apache-2.0
#include "sim/step/group_link.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "model/cost/communication.h"
#include "model/random/quantile_table.h"

namespace commfuse {

double slowest_of(std::int64_t gpus, double sigma) {
  const auto n = static_cast<double>(gpus);
  return gpus <= 1 || sigma <= 0.0 ? 1.0 : lognormal(sigma)(0.625 / (n + 0.25), true);
}

double slowest_of(std::int64_t gpus, double sigma, double probability) {
  check(gpus >= 1 && probability > 0.0 && probability < 1.0, "a percentile lies between none and all");
  const double above = -std::expm1(std::log(probability) / static_cast<double>(gpus));
  if (sigma <= 0.0) {
    return 1.0;
  }
  return above <= 0.5 ? lognormal(sigma)(above, true) : lognormal(sigma)(1.0 - above, false);
}

Duration send_time(const Machine& machine, const StageSend& send, std::int64_t stage) {
  const std::int64_t one = stage * send.gpus_of_a_stage;
  const std::int64_t other = (stage + 1) % send.stages * send.gpus_of_a_stage;
  const std::int64_t first = std::min(one, other);
  const std::int64_t last = std::max(one, other) + send.gpus_of_a_stage - 1;
  const bool crosses = first / machine.gpus_per_node != last / machine.gpus_per_node;
  return p2p_time(crosses ? machine.network->peer : machine.link.peer, send.bytes);
}

}  // namespace commfuse
