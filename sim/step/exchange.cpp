// SPDX-License-Identifier: Apache-2.0
#include "sim/step/exchange.h"

#include <algorithm>
#include <cstddef>

#include "sim/step/stream.h"

namespace commfuse {

namespace {

/// Returns the end of a layer that starts at `start` while an exchange runs until `busy`. Until `busy`, the layer runs
/// at alone / overlapped of its speed.
Duration end_of(const PassTime& layer, Duration start, Duration busy) {
  const Duration shared = std::max(Duration::zero(), busy - start);
  if (layer.overlapped <= shared) {
    return counted(start + layer.overlapped);
  }
  const double share = layer.overlapped > Duration::zero() ? to_seconds(shared) / to_seconds(layer.overlapped) : 0.0;
  return counted(start + shared + layer.alone - stream_time(share * to_seconds(layer.alone)));
}

Duration total_alone(std::span<const PassTime> layers) {
  Duration total{};
  for (const PassTime& layer : layers) {
    total = counted(total + layer.alone);
  }
  return total;
}

}  // namespace

Duration with_exchange(const PassTime& layer, Duration exchange) {
  return std::max(exchange, end_of(layer, Duration::zero(), exchange));
}

Duration longer_by_reductions(std::span<const PassTime> layers, Duration bucket) {
  Duration now{};
  Duration busy{};
  for (const PassTime& layer : layers) {
    now = end_of(layer, now, busy);
    busy = counted(std::max(busy, now) + bucket);
  }
  return now - total_alone(layers);
}

Duration longer_by_gathers(std::span<const PassTime> layers, Duration gather) {
  Duration now{};
  Duration arrived{};  // when the weights of the layer arrive
  const Duration last_arrival =
      stream_time(std::max<double>(0.0, static_cast<double>(layers.size()) - 1.0) * to_seconds(gather));
  for (const PassTime& layer : layers) {
    now = end_of(layer, std::max(now, arrived), last_arrival);
    arrived = counted(arrived + gather);
  }
  return now - total_alone(layers);
}

Duration slowed_by(std::span<const PassTime> layers, Duration gather) {
  const Duration last_arrival = stream_time(static_cast<double>(layers.size()) * to_seconds(gather));
  Duration now{};
  for (const PassTime& layer : layers) {
    now = end_of(layer, now, last_arrival);
  }
  return now - total_alone(layers);
}

}  // namespace commfuse
