// SPDX-License-Identifier: Apache-2.0
// The layers of one pass, overlapped with the exchanges of replicas: on a separate stream, weights are gathered before
// their layer and gradients are scattered after it. An exchange holds SMs, so kernels that overlap it take longer; the
// exchange itself is not slowed down.
#pragma once

#include <span>

#include "model/units.h"

namespace commfuse {

/// Device time of one layer's pass: without an exchange, and with an exchange that overlaps all of it.
struct PassTime {
  Duration alone{};
  Duration overlapped{};  ///< At least `alone`.
};

/// Returns the time until both a layer and the exchange that overlaps it are over. The exchange overlaps only this
/// layer.
Duration with_exchange(const PassTime& layer, Duration exchange);

/// Returns how much later the last layer of a backward pass ends than it would without exchanges. The layers are in the
/// order in which they run; when one ends, the reduction of its gradients, which takes `bucket`, joins the queue.
/// Reductions left in the queue at the end are ignored.
Duration longer_by_reductions(std::span<const PassTime> layers, Duration bucket);

/// Returns how much later the last layer of a forward pass ends than it would without exchanges. The first layer has
/// its weights from the start. The weights of the later layers are gathered one layer after another, each in `gather`,
/// beginning at the start of the pass. Each layer waits for its own weights.
Duration longer_by_gathers(std::span<const PassTime> layers, Duration gather);

/// Returns how much later the last layer ends if the gathers only slow the layers down: earlier layers take so long
/// that no layer waits for its weights.
Duration slowed_by(std::span<const PassTime> layers, Duration gather);

}  // namespace commfuse
