// SPDX-License-Identifier: Apache-2.0
// Samples many runs of an op under jitter, and computes the figures that published tables state about times of repeated
// ops. Uses the sampler of `run --jitter`.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "model/cost/jitter.h"
#include "model/units.h"

namespace commfuse::score {

enum class SampledOp : std::uint8_t { kernel, all_gather, send_recv };

struct SampledRuns {
  SampledOp op = SampledOp::kernel;
  int ranks = 1;    ///< Number of ranks of an all-gather; a kernel always has 1, send/recv always 2.
  int repeats = 1;  ///< Number of repetitions of the op in every run, one after another.
  Duration price{};
  std::shared_ptr<const JitterTables> jitter;
  std::size_t runs = 1000;
};

/// Returns the time of every run in microseconds. Requires `runs.price` above 0 and a non-null `runs.jitter`.
std::vector<double> sampled_us(const SampledRuns& runs);

/// Returns the quantile at `share` (0.5: the median), by linear interpolation. `values` may have any order but must not
/// be empty.
double value_at(std::vector<double> values, double share);

/// Returns the standard deviation divided by the mean.
double variation_of(const std::vector<double>& values);

/// Returns |ln(a / b)| of the first and second value, of the third and fourth, and so on.
std::vector<double> log_ratios(const std::vector<double>& values);

/// Both functions return, for each group of `group` consecutive values, the largest value divided by the median or by
/// the smallest value.
std::vector<double> largest_over_median(const std::vector<double>& values, std::size_t group);
std::vector<double> largest_over_smallest(const std::vector<double>& values, std::size_t group);

}  // namespace commfuse::score
