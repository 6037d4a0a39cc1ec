// SPDX-License-Identifier: Apache-2.0
// A priced schedule as Chakra execution traces, which ASTRA-sim reads: one file a rank, `prefix.0.et`, `prefix.1.et`.
// A file is a GlobalMetadata and then one Node a task, each behind its length. All dependencies are data_deps: those
// the feeders of ASTRA-sim always heed. Collectives stay collectives.
#pragma once

#include <cstdint>
#include <string>

#include "reports/export/tasks.h"

namespace commfuse::reports {

struct ChakraOptions {
  MessageOrder messages = MessageOrder::lane;
  /// Chakra's durations are whole microseconds, too coarse for small products: they are written this many times as
  /// long. The network must be made slower by as much, and the result divided by it.
  std::int64_t time_scale = 1;
};

/// The bytes of one rank's file. A rank without ops has one calculation of no time: ASTRA-sim refuses an empty trace.
std::string chakra_trace(const ExportInput& input, Rank rank, const ChakraOptions& options);

/// The members of the groups that traces name, as ASTRA-sim's --comm-group-configuration takes them. Empty when every
/// collective is over all ranks, which needs no name.
std::string chakra_groups(const Program& program);

}  // namespace commfuse::reports
