// SPDX-License-Identifier: Apache-2.0
// The GEMM of a site with experts: one kernel multiplies the rows of each expert by its weight, and a memory-bound
// kernel copies rows to their experts before it, or sums the rows of each token after it.
//
// Every token passes through `active` of `count` experts, and tokens are spread evenly over the experts. Expert
// parallelism splits the experts over `ranks` of the site's ranks, so a rank has fewer but wider experts:
//
//   rows   = tokens x active / ranks                       routed rows of a rank
//   groups = count / ranks, or rows if there are fewer     its experts with tokens
//   kernel = groups GEMMs of (rows / groups) x n x k       GemmSize::groups
//
// The extent that the ranks share, n or k, is `ranks` times that of the same GEMM without expert parallelism. Source:
// the kernels of bytedance/flux, test/python/moe_ag_scatter and test/python/moe_gather_rs.
#pragma once

#include "model/cost/expert_split.h"
#include "model/cost/gemm.h"
#include "model/program/program.h"
#include "model/program/sizes.h"
#include "model/units.h"

namespace commfuse {

/// Returns the routed rows of a rank for a number of tokens, rounded up.
std::int64_t routed_rows(const ExpertSplit& experts, std::int64_t tokens);

/// Returns the size of the one kernel that multiplies for all experts of a rank. `size` has the tokens as m, and n and
/// k of a rank without expert parallelism. Without experts, returns `size`.
GemmSize grouped(const ExpertSplit& experts, const GemmSize& size);

/// Returns the traffic of the memory-bound kernel beside the GEMM of `size`. If columns are cut, it reads and writes
/// every routed row of k elements before the GEMM. If the contraction is cut, it reads every routed row of n elements
/// after the GEMM and writes one sum per token. Without experts, returns 0.
Bytes routing_traffic(const ExpertSplit& experts, const GemmSize& size);

/// Returns bytes_per_rank() with the weights of all experts of a rank, with the rows of its experts instead of the
/// tokens in buffers that have the cut extent, and with one copy of its routed rows beside the GEMM.
Bytes bytes_per_rank(const Program& program, const Sizes& sizes, const ExpertSplit& experts);

}  // namespace commfuse
