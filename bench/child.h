// SPDX-License-Identifier: Apache-2.0
// Measures the time and memory of a program in a separate process.
#pragma once

#include <string>
#include <vector>

namespace commfuse::bench {

struct Usage {
  double seconds = 0.0;  ///< Processor time, user and system.
  double mib = 0.0;      ///< Peak memory.
};

/// Runs the command, discards its output, and waits. Throws std::runtime_error when the command cannot be run or fails.
/// A fresh copy of this program starts the command: the peak memory of a process includes the memory of the process
/// that it was forked from, and earlier benchmarks may have made this process large.
Usage usage_of(const std::vector<std::string>& words);

/// Returns true for the arguments `--launch PROGRAM ...`, with which usage_of() starts a copy of this program.
bool is_launch(int argc, char** argv);

/// Runs PROGRAM and prints its usage for usage_of(). Returns the exit code of this process. Requires is_launch().
int launch(char** argv);

}  // namespace commfuse::bench
