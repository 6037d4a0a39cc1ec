// SPDX-License-Identifier: Apache-2.0
// Contents of a trace besides slices: pairs of sends and receives, and the bytes in flight.
#pragma once

#include <cstdint>
#include <vector>

#include "reports/traced_run.h"

namespace commfuse::reports {

/// A send and its receive, as indices in the run's timeline.
struct Flow {
  std::size_t send = 0;
  std::size_t receive = 0;
};

/// Returns flows in the order of their sends. The n-th run of an op matches the n-th run of its partner.
std::vector<Flow> flows_of(const TracedRun& run);

/// Bytes in flight from the sends and collectives of a rank, after an instant.
struct UnderWay {
  Rank rank = 0;
  Instant from;
  std::int64_t bytes = 0;
};

/// Returns levels by rank, then time; each rank begins with its first send or collective and ends with 0 bytes in
/// flight. Empty if the run has no sizes.
std::vector<UnderWay> bytes_under_way(const TracedRun& run);

}  // namespace commfuse::reports
