// SPDX-License-Identifier: Apache-2.0
// Priced schedules as Chakra execution traces, which ASTRA-sim reads: one file for each rank, `prefix.0.et`,
// `prefix.1.et`. A file is a GlobalMetadata and then one Node for each task, each preceded by its length. All
// dependencies are data_deps, because the feeders of ASTRA-sim always respect these. Collectives are not split into
// messages.
#pragma once

#include <cstdint>
#include <string>

#include "reports/export/tasks.h"

namespace commfuse::reports {

struct ChakraOptions {
  MessageOrder messages = MessageOrder::lane;
  /// Chakra's durations are whole microseconds, which is too coarse for small GEMMs. The file therefore contains
  /// durations multiplied by this number. The network must be slowed by the same factor, and the result divided by it.
  std::int64_t time_scale = 1;
};

/// Returns the bytes of one rank's file. A rank without ops gets one calculation that takes no time, because ASTRA-sim
/// refuses an empty trace.
std::string chakra_trace(const ExportInput& input, Rank rank, const ChakraOptions& options);

/// Returns the members of the groups that traces name, in the form of ASTRA-sim's --comm-group-configuration. Empty if
/// every collective is over all ranks, a group that needs no name.
std::string chakra_groups(const Program& program);

}  // namespace commfuse::reports
