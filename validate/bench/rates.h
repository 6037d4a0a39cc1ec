// SPDX-License-Identifier: Apache-2.0
// Rates as operators compare them: pairs of ranks that send both ways at once, and collectives by size, as nvbandwidth
// and nccl-tests print them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/record/run_record.h"
#include "validate/bench/micro_program.h"

namespace commfuse::validate {

struct RatePlan {
  std::int32_t ranks = 2;            ///< At least two.
  std::vector<Bytes> sizes{};        ///< Of messages: multiples of 512 bytes.
  bool both_ways = false;            ///< Every pair of ranks sends both ways at once, while all others do nothing.
  std::vector<Bytes> collectives{};  ///< As nccl-tests counts bytes; rounded up to what divides among ranks.
  DType dtype = DType::bf16;
};

std::vector<MicroProgram> rate_programs(const RatePlan& plan);

/// What a message's rate on a wire comes to for a collective's bytes over time, as nccl-tests defines its bus
/// bandwidth: 2 (n - 1) / n of an all-reduce, (n - 1) / n of the others. 0: no collective has this name.
double bus_share(std::string_view collective, std::int64_t ranks);

/// A matrix for each size that pairs sent both ways, in GB/s of both together, and a table for each collective: time,
/// algorithm bandwidth and bus bandwidth, medians. Passes over everything else; at most 80 columns.
std::string rates_in_words(std::span<const MicroBenchmark> measured);

}  // namespace commfuse::validate
