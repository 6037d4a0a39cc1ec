// SPDX-License-Identifier: Apache-2.0
// Draws the distribution of the times of runs under jitter.
#pragma once

#include <span>
#include <string>

#include "reports/figure/figure.h"
#include "reports/study.h"

namespace commfuse::reports {

/// Draws complementary distributions: the share of runs that take longer than a time, on a logarithmic axis that makes
/// slow runs visible. A band around each curve shows the 95% interval of every percentile that the samples support, by
/// order statistics.
/// Requires at least one schedule, each with samples.
Figure distribution_figure(std::span<const SampledRun> runs, std::string id = "distribution");

}  // namespace commfuse::reports
