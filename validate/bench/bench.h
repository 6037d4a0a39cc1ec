// SPDX-License-Identifier: Apache-2.0
// Which micro-benchmarks are taken, and taking them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "validate/bench/micro_program.h"
#include "validate/executor.h"

namespace commfuse::validate {

/// A kind of micro-benchmark.
enum class BenchPart : std::uint8_t { products, kernels, gaps, messages, neighbours };
inline constexpr std::array<std::pair<std::string_view, BenchPart>, 5> bench_parts{
    {{"products", BenchPart::products},
     {"kernels", BenchPart::kernels},
     {"gaps", BenchPart::gaps},
     {"messages", BenchPart::messages},
     {"neighbours", BenchPart::neighbours}}};

struct BenchPlan {
  std::int32_t ranks = 2;
  std::vector<DType> dtypes{DType::bf16};  ///< The first is that of messages and of what is timed once.
  std::vector<BenchPart> parts{};          ///< None: all.
  bool quick = false;                      ///< A few sizes of everything: to look at, too few to fit.
  bool gpu = false;                        ///< The sizes of a GPU's shards, not of a processor's.
};

/// Products by m, n and k in powers of two and the sizes of models that are not, kernels, exchanges and collectives by
/// size, gaps, and products and exchanges beside each other. Messages need two ranks.
std::vector<MicroProgram> micro_programs(const BenchPlan& plan);

struct BenchOptions {
  int passes = 2;          ///< Times that all of it is gone through, each time in another random order.
  int repetitions = 2;     ///< Of each in a pass; before the first the op runs once and does not count.
  std::uint64_t seed = 1;  ///< Of the orders.
  /// No other process waits for this one, so that an op that fails can be left out. Otherwise a failure ends the bench.
  bool alone = true;
};

struct BenchResult {
  std::vector<MicroBenchmark> measured;  ///< In the order of the programs; without those that failed.
  std::vector<std::string> failures;     ///< A sentence for each program that could not be measured.
};

/// Measures all programs; one that fails is left out, and the others go on. Stuck, which says that the executor is of
/// no further use, ends the bench with what was measured so far. `after_each`, if any, hears how many of all visits are
/// done.
BenchResult bench(const std::vector<MicroProgram>& programs, const BenchOptions& options, const MakeExecutor& make,
                  const std::function<void(std::size_t done, std::size_t visits)>& after_each = {});

/// At most 80 columns: what was measured, with median and p10 and p90.
std::string to_table(const std::vector<MicroBenchmark>& measured);

}  // namespace commfuse::validate
