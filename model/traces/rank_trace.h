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
  double compute_us = 0.0;        ///< Time during which kernels other than collectives and exchanges run.
  double communication_us = 0.0;  ///< Time of collectives and exchanges, including their waiting.
  double idle_us = 0.0;           ///< Time during which no kernel and no copy runs.
};

/// One kernel of a collective or exchange.
struct TracedCall {
  /// The collective, the name and ranks of its process group, and its number of elements: equal on all ranks of the
  /// group. For a kernel without a "Collective name", the kernel's name.
  std::string group;
  std::int64_t step = 0;
  double duration_us = 0.0;
};

struct RankTrace {
  std::optional<std::int64_t> rank;  ///< From distributedInfo.
  std::vector<TracedStep> steps;     ///< In ascending order.
  std::vector<TracedCall> calls;     ///< Ordered by step, then by start time.
};

/// Reads the trace of one rank. A kernel belongs to the step in which it begins; kernels outside all steps are ignored.
/// Kernels that began before a step and still run in it affect only its idle_us. Throws ConfigError like visit_kineto,
/// and if the trace has no kernel or too many.
RankTrace read_rank_trace(const std::filesystem::path& path);

}  // namespace commfuse
