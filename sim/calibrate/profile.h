// SPDX-License-Identifier: Apache-2.0
// The measurements in a profile of a run, independent of the profiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/fit/attention_fit.h"
#include "model/fit/framework_kernel_fit.h"
#include "model/fit/gemm_fit.h"

namespace commfuse::calibrate {

/// A collective at one size, with its shortest time: in longer calls, ranks wait inside the kernel for the last rank to
/// arrive.
struct TracedCollective {
  std::string op;  ///< Named as in nccl-tests: all_gather, reduce_scatter, all_reduce, alltoall.
  int ranks = 0;
  std::int64_t bytes = 0;  ///< Counted as in nccl-tests.
  double time_us = 0.0;
  std::vector<std::int64_t> members{};  ///< Every rank of the group; empty if the profile does not name them.
  std::int64_t world = 0;               ///< Number of ranks of the job; 0 if the profile does not state it.
};

struct Profile {
  std::vector<MeasuredGemm> gemms;               ///< one per call
  std::vector<MeasuredAttention> attention;      ///< one per forward call
  std::vector<MeasuredFrameworkKernel> kernels;  ///< one per call: sums, norms, activations, rotations
  std::vector<TracedCollective> collectives;     ///< by op, members and bytes
  std::map<std::string, std::size_t> skipped{};  ///< Sentences about rows that no fit can use, with the number of rows.
};

}  // namespace commfuse::calibrate
