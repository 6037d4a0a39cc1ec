// SPDX-License-Identifier: Apache-2.0
#include "sim/step/group_link.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "model/check.h"
#include "model/cost/communication.h"
#include "model/math/functions.h"
#include "model/random/quantile_table.h"

namespace commfuse {

namespace {

/// Returns the peer's parameters with its rate limited to `rate`.
PeerParameters limited(PeerParameters peer, BytesPerSecond rate) {
  const double part = std::min(1.0, rate.value / peer.rate.value.value);
  peer.rate.value = part * peer.rate.value;
  if (peer.small) {
    peer.small->rate.value = part * peer.small->rate.value;
  }
  return peer;
}

/// Returns the share of the nearest pair's rate that each pair of GPUs at this distance in a node gets when all
/// pairs are active.
double shared_inside(const Machine& machine, std::int64_t distance) {
  if (machine.strided_rates == nullptr) {
    return 1.0;
  }
  const auto stride = static_cast<int>(std::min<std::int64_t>(distance, machine.gpus_per_node / 2));
  return std::min(1.0, machine.strided_rates->of_whole({.stride = stride, .ranks = 2}) /
                           machine.strided_rates->of_whole({.stride = 1, .ranks = 2}));
}

/// Returns the time of sends from this many GPUs of one node to their counterparts in another node.
Duration across_nodes(const Machine& machine, int gpus, Bytes bytes) {
  return p2p_time(limited(machine.network->peer, rate_across(machine, {.of_group = gpus, .of_node = gpus})), bytes);
}

}  // namespace

double slowest_of(std::int64_t gpus, double sigma) {
  const auto n = static_cast<double>(gpus);
  return gpus <= 1 || sigma <= 0.0 ? 1.0 : lognormal(sigma)(0.625 / (n + 0.25), true);
}

double slowest_of(std::int64_t gpus, double sigma, Probability probability) {
  check(gpus >= 1 && probability.value > 0.0 && probability.value < 1.0, "a probability lies between 0 and 1");
  const double above = -math::expm1(math::log(probability.value) / static_cast<double>(gpus));
  if (sigma <= 0.0) {
    return 1.0;
  }
  return above <= 0.5 ? lognormal(sigma)(above, true) : lognormal(sigma)(1.0 - above, false);
}

Duration send_time(const Machine& machine, const StageSend& send, std::int64_t stage) {
  const std::int64_t gpus_per_node = machine.gpus_per_node;
  const std::int64_t from = send.first_gpu + stage * send.gpus_per_stage;
  const std::int64_t to = send.first_gpu + (stage + 1) % send.stages * send.gpus_per_stage;
  const double inside = shared_inside(machine, std::abs(to - from));
  Duration slowest{};
  int crossing = 0;  // number of pairs so far that leave the node of `gpu`
  // Pairs that are shifted by one node take the same time.
  for (std::int64_t i = 0; i < std::min(send.gpus_per_stage, gpus_per_node); ++i) {
    const std::int64_t gpu = from + i;
    const std::int64_t other = to + i;
    crossing = gpu % gpus_per_node == 0 ? 0 : crossing;
    if (gpu / gpus_per_node != other / gpus_per_node) {
      slowest = std::max(slowest, across_nodes(machine, ++crossing, send.bytes));
    } else {
      const PeerParameters& peer = peer_between(machine, static_cast<int>(gpu), static_cast<int>(other));
      slowest = std::max(slowest, p2p_time(limited(peer, inside * machine.link.peer.rate.value), send.bytes));
    }
  }
  return slowest;
}

}  // namespace commfuse
