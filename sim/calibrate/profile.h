// SPDX-License-Identifier: Apache-2.0
// What a profile of a run says was measured, whichever profiler wrote it.
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

/// One size, by its shortest time: in the other calls, ranks wait inside the kernel for whoever comes last.
struct TracedCollective {
  std::string op;  ///< As nccl-tests calls it: all_gather, reduce_scatter, all_reduce, alltoall.
  int ranks = 0;
  std::int64_t bytes = 0;  ///< As nccl-tests counts them.
  double time_us = 0.0;
  std::vector<std::int64_t> members{};  ///< Every rank of the group; empty where the profile does not name them.
  std::int64_t world = 0;               ///< Ranks of the job; 0 where the profile does not say.
};

struct Profile {
  std::vector<MeasuredGemm> products;            ///< each call
  std::vector<MeasuredAttention> attention;      ///< each forward call
  std::vector<MeasuredFrameworkKernel> kernels;  ///< sums, norms, activations, rotations: each call
  std::vector<TracedCollective> collectives;     ///< by op, members and bytes
  std::map<std::string, std::size_t> skipped{};  ///< Sentences about what is of no use, and how often.
};

}  // namespace commfuse::calibrate
