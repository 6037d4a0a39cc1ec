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
  std::int32_t ranks = 2;      ///< At least two.
  std::vector<Bytes> sizes{};  ///< Message sizes: multiples of 512 bytes.
  bool both_ways = false;      ///< Every pair of ranks sends both ways at once, while all others do nothing.
  /// Sizes as nccl-tests counts them; rounded up to divide among ranks. Out of place, and in place where that exists.
  std::vector<Bytes> collectives{};
  DType dtype = DType::bf16;
};

std::vector<MicroProgram> rate_programs(const RatePlan& plan);

/// Returns bus bandwidth over algorithm bandwidth as nccl-tests defines them: 2 (n - 1) / n of an all-reduce,
/// (n - 1) / n of the others, and 0 if no collective has this name.
double bus_share(std::string_view collective, std::int64_t ranks);

/// Returns a matrix for each size that pairs sent or copied both ways, in GB/s of both together, and tables for each
/// collective, out of place and in place: time, algorithm bandwidth and bus bandwidth, medians. Passes over everything
/// else; at most 80 columns, except for the titles of copies.
std::string rates_in_words(std::span<const MicroBenchmark> measured);

}  // namespace commfuse::validate
