// SPDX-License-Identifier: Apache-2.0
#include "model/cost/communication.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "model/cost/op_time.h"

namespace commfuse {

namespace {

/// `passes`: how often the ring goes round; 2 for all-reduce.
Duration ring_time(const CollectiveParameters& parameters, int ranks, Bytes total, int passes) {
  check(ranks >= 1 && total.count >= 0, "a collective has at least one rank and no negative size");
  if (ranks == 1) {
    return Duration{0};
  }
  const int steps = passes * (ranks - 1);
  const double own = static_cast<double>(total.count) / ranks;
  const double wire = own * steps;
  const double ramp = std::sqrt(wire * static_cast<double>(parameters.ramp_size.value.count));
  const double moving = (wire + ramp) / parameters.rate.value.value + own / parameters.own_copy_rate.value.value;
  return parameters.base_latency.value + steps * parameters.step_latency.value + op_time(moving, "a collective");
}

}  // namespace

Duration p2p_time(const PeerParameters& peer, Bytes bytes) { return p2p_time(peer, bytes, {}); }

Duration p2p_time(const PeerParameters& peer, Bytes bytes, const WireShare& share) {
  check(bytes.count >= 0, "an exchange has no negative size");
  double rate = peer.rate.value.value / share.peer;
  if (share.port > 1) {
    rate = std::min(rate, peer.aggregate_rate.value.value / share.port);
  }
  return peer.latency.value + op_time(static_cast<double>(bytes.count) / rate, "an exchange with one peer");
}

Duration all_gather_time(const CollectiveParameters& parameters, int ranks, Bytes total) {
  return ring_time(parameters, ranks, total, 1);
}

Duration reduce_scatter_time(const CollectiveParameters& parameters, int ranks, Bytes total) {
  return ring_time(parameters, ranks, total, 1);
}

Duration all_reduce_time(const CollectiveParameters& parameters, int ranks, Bytes total) {
  return ring_time(parameters, ranks, total, 2);
}

Duration all_to_all_time(const CollectiveParameters& parameters, int ranks, Bytes total) {
  return ring_time(parameters, ranks, total, 1);
}

}  // namespace commfuse
