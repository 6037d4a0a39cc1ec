// SPDX-License-Identifier: Apache-2.0
// Rates in the terms of nvbandwidth and nccl-tests: pairs of ranks that send in both directions simultaneously, and
// collectives by size.
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
  /// Every pair of ranks sends in both directions simultaneously, while all other ranks are idle.
  bool both_ways = false;
  /// Sizes as nccl-tests counts them, rounded up to divide evenly among ranks. Measured out of place, and in place
  /// where the kind allows that.
  std::vector<Bytes> collectives{};
  DType dtype = DType::bf16;
};

std::vector<MicroProgram> rate_programs(const RatePlan& plan);

/// Returns the ratio of bus bandwidth to algorithm bandwidth as nccl-tests defines them: 2 (n - 1) / n for an
/// all-reduce, (n - 1) / n for other collectives, and 0 if no collective has this name.
double bus_share(std::string_view collective, std::int64_t ranks);

/// Returns a matrix (with more than nine ranks, a list of pairs) for each size that pairs sent or copied both ways, in
/// GB/s of both directions together, and tables for each collective, out of place and in place: the medians of time,
/// algorithm bandwidth and bus bandwidth. Ignores all other measurements. Lines have at most 80 columns, except for the
/// titles of copies.
std::string rates_in_words(std::span<const MicroBenchmark> measured);

}  // namespace commfuse::validate
