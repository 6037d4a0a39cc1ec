// SPDX-License-Identifier: Apache-2.0
// Layers of one pass beside what replicas exchange: weights are gathered before their layer, gradients scattered behind
// it, on a stream of its own. The exchange holds SMs, so kernels beside it take longer; it is no slower itself.
#pragma once

#include <span>

#include "model/units.h"

namespace commfuse {

/// Device time of one layer's pass: alone, and if an exchange ran beside it from its start to its end.
struct PassTime {
  Duration alone{};
  Duration beside{};  ///< No less than `alone`.
};

/// A layer whose exchange runs beside it, and beside no other: all of both is over after so long.
Duration with_exchange(const PassTime& layer, Duration exchange);

/// The layers of a backward pass, in the order in which they run; when one ends, the reduction of its gradients, which
/// takes `bucket`, goes to the end of the queue. Until the last layer ends: how much longer than all of them alone.
/// What is left of the queue then is not counted.
Duration longer_by_reductions(std::span<const PassTime> layers, Duration bucket);

/// The layers of a forward pass. The weights of the first are there; those of every other are gathered one after the
/// other from the start on, each in `gather`, and its layer waits for them. Until the last layer ends: how much longer
/// than all of them alone.
Duration longer_by_gathers(std::span<const PassTime> layers, Duration gather);

/// As longer_by_gathers, but the weights arrive before any layer waits for them: earlier layers took long enough.
Duration slowed_by(std::span<const PassTime> layers, Duration gather);

}  // namespace commfuse
