// SPDX-License-Identifier: Apache-2.0
// What a trace tells beside its slices: which send meets which receive, and how much is under way.
#pragma once

#include <cstdint>
#include <vector>

#include "reports/traced_run.h"

namespace commfuse::reports {

/// From a send to the receive that takes it, as places in the run's timeline.
struct Flow {
  std::size_t send = 0;
  std::size_t receive = 0;
};

/// In the order of their sends. An op that stands in the timeline several times meets its partner of the same time.
std::vector<Flow> flows_of(const TracedRun& run);

/// What a rank's own sends and collectives have under way from an instant on.
struct UnderWay {
  Rank rank = 0;
  Instant from;
  std::int64_t bytes = 0;
};

/// By rank, then time; begins with the first send and ends with nothing under way. Empty where the run has no sizes.
std::vector<UnderWay> bytes_under_way(const TracedRun& run);

}  // namespace commfuse::reports
