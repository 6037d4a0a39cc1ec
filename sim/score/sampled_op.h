// SPDX-License-Identifier: Apache-2.0
// Samples many runs of one op under a jitter, and computes the figures that public tables give of such times. The
// sampler is that of `run --jitter`.
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
  int ranks = 1;    ///< Ranks of an all-gather; a kernel has one, a send and receive two.
  int repeats = 1;  ///< Repetitions in every run, one after another.
  Duration price{};
  std::shared_ptr<const JitterTables> jitter;
  std::size_t runs = 1000;
};

/// Returns the microseconds of every run. Requires a price above 0 and a jitter.
std::vector<double> sampled_us(const SampledRuns& runs);

/// Returns the value at a share of the list, in any order, by linear interpolation. Requires a value.
double value_at(std::vector<double> values, double share);

/// Returns the standard deviation over the mean.
double variation_of(const std::vector<double>& values);

/// Returns |ln(a / b)| of the first and second value, of the third and fourth, and so on.
std::vector<double> log_ratios(const std::vector<double>& values);

/// Return, for each consecutive group of this many values, the largest over the median, or over the smallest.
std::vector<double> largest_over_median(const std::vector<double>& values, std::size_t group);
std::vector<double> largest_over_smallest(const std::vector<double>& values, std::size_t group);

}  // namespace commfuse::score
