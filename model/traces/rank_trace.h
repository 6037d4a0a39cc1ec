// SPDX-License-Identifier: Apache-2.0
// Reads the work of one rank's GPU in each step from a trace of PyTorch's profiler (Kineto).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace commfuse {

/// Microseconds. A step is the time of the profiler's ProfilerStep#N; a trace without them is one step.
struct TracedStep {
  std::int64_t step = 0;
  double time_us = 0.0;
  double compute_us = 0.0;        ///< Kernels of no collective run.
  double communication_us = 0.0;  ///< Kernels of collectives and exchanges run, waiting included.
  double idle_us = 0.0;           ///< No kernel and no copy runs.
};

/// One kernel of a collective or exchange, in the order of their begin.
struct TracedCall {
  std::string group;  ///< Equal on all ranks of a group: collective, its group's name and ranks.
  std::int64_t step = 0;
  double duration_us = 0.0;
};

struct RankTrace {
  std::optional<std::int64_t> rank;  ///< From distributedInfo.
  std::vector<TracedStep> steps;     ///< In ascending order.
  std::vector<TracedCall> calls;
};

/// Kernels count for the step in which they begin; those outside of all steps for none. Throws ConfigError as
/// visit_kineto does, and where the trace has no kernel.
RankTrace read_rank_trace(const std::filesystem::path& path);

}  // namespace commfuse
