// SPDX-License-Identifier: Apache-2.0
// The bars of the project: what a benchmark must reach, said beside what it did.
#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace commfuse::bench {

/// The middle one. Requires one at least.
double median(std::vector<double> values);

/// MiB that this process held at most so far.
double peak_mib();

/// "1.3 <= 5 s: met", "1.3 <= 0.9 s: MISSED"
std::string at_most(double measured, double bar, const std::string& unit);
std::string at_least(double measured, double bar, const std::string& unit);

}  // namespace commfuse::bench
