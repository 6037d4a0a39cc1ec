// SPDX-License-Identifier: Apache-2.0
// Matrices of copies by the names of nvbandwidth: between GPUs, and between the host and GPUs, by copy engines and by
// kernels, one way and both ways.
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
  bool both_ways = false;  ///< Also while another copy goes the other way.
};

/// Copies that run at once, each with what its time is recorded as. A copy that only disturbs the others has no op.
struct CopyProgram {
  std::vector<TimedCopy> copies;
  std::vector<MicroBenchmark> what;  ///< Without samples, as many as there are copies.
};

/// The op is nvbandwidth's test, "device_to_device_memcpy_read_ce". `rank` is the GPU that issues the copy, which is
/// the row of nvbandwidth's matrix, and `peer` the other GPU; with the host there is no peer. Pairs of GPUs that do not
/// reach each other are left out.
std::vector<CopyProgram> copy_programs(const CopyPlan& plan, const Copier& copier);

/// Checks that every program's bytes arrive, and times it as often as the options say, in random order. Programs that
/// fail are left out, with a sentence. Makes room in the copier.
BenchResult time_copies(const std::vector<CopyProgram>& programs, const BenchOptions& options, Copier& copier,
                        const std::function<void(std::size_t done, std::size_t visits)>& after_each = {});

/// A copy of nvbandwidth's kind; nothing for other ops.
struct CopyTest {
  bool with_host = false;
  bool by_kernels = false;
  bool both_ways = false;
  bool reads = false;  ///< Between GPUs: the row's GPU reads from the column's; else it writes to it.
};
std::optional<CopyTest> copy_test_named(std::string_view op);

}  // namespace commfuse::validate
