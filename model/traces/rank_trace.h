// SPDX-License-Identifier: Apache-2.0
// Reads the work of one rank's GPU in each step from a trace of PyTorch's profiler (Kineto).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace commfuse {

/// Times of one step, in microseconds. A step is a ProfilerStep#N of the profiler; a trace without these is one step.
struct TracedStep {
  std::int64_t step = 0;
  double time_us = 0.0;
  double compute_us = 0.0;        ///< Kernels outside of collectives run.
  double communication_us = 0.0;  ///< Kernels of collectives and exchanges run, including their waiting.
  double idle_us = 0.0;           ///< No kernel and no copy runs.
};

/// One kernel of a collective or exchange.
struct TracedCall {
  std::string group;  ///< Collective, name and ranks of its group, and its size: equal on all ranks of the group.
  std::int64_t step = 0;
  double duration_us = 0.0;
};

struct RankTrace {
  std::optional<std::int64_t> rank;  ///< From distributedInfo.
  std::vector<TracedStep> steps;     ///< In ascending order.
  std::vector<TracedCall> calls;     ///< By step, then by begin.
};

/// Reads the trace of one rank. A kernel belongs to the step in which it begins; kernels outside of all steps are
/// ignored. Throws ConfigError like visit_kineto, and if the trace has no kernel.
RankTrace read_rank_trace(const std::filesystem::path& path);

}  // namespace commfuse
