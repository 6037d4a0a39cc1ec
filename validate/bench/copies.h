// SPDX-License-Identifier: Apache-2.0
// Matrices of copies, named as in nvbandwidth: between GPUs, and between the host and GPUs; by copy engines and by
// kernels; in one direction and in both.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "validate/bench/bench.h"
#include "validate/cuda/copier.h"

namespace commfuse::validate {

struct CopyPlan {
  int gpus = 1;
  std::vector<Bytes> sizes{};  ///< Multiples of 512 bytes.
  bool by_engines = true;
  bool by_kernels = true;
  bool both_ways = false;  ///< Also measures each copy while another copy runs in the opposite direction.
};

/// Copies that run simultaneously, and the record of each copy's time. A copy that only disturbs the others has no op.
struct CopyProgram {
  std::vector<TimedCopy> copies;
  std::vector<MicroBenchmark> what;  ///< One for each copy, without samples.
};

/// Returns the programs of a plan. The op is nvbandwidth's test, such as "device_to_device_memcpy_read_ce". `rank` is
/// the GPU that issues the copy (the row of nvbandwidth's matrix), and `peer` is the other GPU; copies with the host
/// have no peer. Skips pairs of GPUs that cannot access each other.
std::vector<CopyProgram> copy_programs(const CopyPlan& plan, const Copier& copier);

/// Checks that the bytes of every program arrive, and times every program as often as the options require, in random
/// order. Skips a program that fails, and stops at a copy that does not end, each with a sentence in the result.
/// Allocates the copier's memory.
BenchResult time_copies(const std::vector<CopyProgram>& programs, const BenchOptions& options, Copier& copier,
                        const std::function<void(std::size_t done, std::size_t measurements)>& after_each = {});

/// The kind of a copy that nvbandwidth measures. copy_test_named() returns nothing for other ops.
struct CopyTest {
  bool with_host = false;
  bool by_kernels = false;
  bool both_ways = false;
  bool reads = false;  ///< Between GPUs: true if the row's GPU reads from the column's GPU, false if it writes to it.
};
std::optional<CopyTest> copy_test_named(std::string_view op);

}  // namespace commfuse::validate
