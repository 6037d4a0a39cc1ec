// SPDX-License-Identifier: Apache-2.0
// What a program takes as a process of its own.
#pragma once

#include <string>
#include <vector>

namespace commfuse::bench {

struct Usage {
  double seconds = 0.0;  ///< Of the processor, user and system.
  double mib = 0.0;      ///< That it held at most.
};

/// Runs it, its output thrown away, and waits. Throws std::runtime_error when it cannot be run or fails. It is started
/// by this program run anew: a process counts as its own what the one it was forked from held, and benchmarks before
/// may have left this one large.
Usage usage_of(const std::vector<std::string>& words);

/// `commfuse-bench --launch PROGRAM ...`: runs it and prints its usage for usage_of(). Nothing of other arguments.
bool is_launch(int argc, char** argv);
int launch(char** argv);

}  // namespace commfuse::bench
