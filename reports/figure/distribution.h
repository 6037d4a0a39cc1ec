// SPDX-License-Identifier: Apache-2.0
// How often a step takes how long under jitter.
#pragma once

#include <span>
#include <string>

#include "reports/figure/figure.h"
#include "reports/study.h"

namespace commfuse::reports {

/// Complementary distributions: the share of steps that takes longer, on a logarithmic axis, so that the slow ones are
/// seen; around each the 95 % interval of every percentile that the samples tell, by order statistics. Requires a run
/// with samples.
Figure distribution_figure(std::span<const SampledRun> runs, std::string id = "distribution");

}  // namespace commfuse::reports
