// SPDX-License-Identifier: Apache-2.0
// The project's bars: target values for benchmarks, printed next to the measured values.
#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace commfuse::bench {

/// Returns the median, the upper one for an even number of values. Requires at least one value.
double median(std::vector<double> values);

/// Returns the peak memory of this process so far, in MiB.
double peak_mib();

/// Returns "1.3 <= 5 s: met" or "1.3 <= 0.9 s: MISSED".
std::string at_most(double measured, double bar, const std::string& unit);
std::string at_least(double measured, double bar, const std::string& unit);

}  // namespace commfuse::bench
