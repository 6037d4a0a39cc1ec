// SPDX-License-Identifier: Apache-2.0
// Additions of a trace to its slices: pairs of sends and receives, and the bytes under way.
#pragma once

#include <cstdint>
#include <vector>

#include "reports/traced_run.h"

namespace commfuse::reports {

/// A send and the receive that takes it, as places in the run's timeline.
struct Flow {
  std::size_t send = 0;
  std::size_t receive = 0;
};

/// Returns flows in the order of their sends. An op that runs several times meets its partner's run of the same number.
std::vector<Flow> flows_of(const TracedRun& run);

/// Bytes under way from a rank's own sends and collectives, from an instant on.
struct UnderWay {
  Rank rank = 0;
  Instant from;
  std::int64_t bytes = 0;
};

/// Returns levels by rank, then time; each rank begins with its first send and ends with nothing under way. Empty if
/// the run has no sizes.
std::vector<UnderWay> bytes_under_way(const TracedRun& run);

}  // namespace commfuse::reports
