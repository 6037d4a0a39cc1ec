// SPDX-License-Identifier: Apache-2.0
// Chooses the micro-benchmarks and measures them.
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
  std::vector<DType> dtypes{DType::bf16};  ///< The first is that of messages and of ops timed in a single dtype.
  std::vector<BenchPart> parts{};          ///< Empty: all.
  bool quick = false;                      ///< A few sizes of everything: enough for a look, too few for a fit.
  bool gpu = false;                        ///< Sizes of a GPU's shards, not of a processor's.
};

/// Returns GEMMs with m, n and k in powers of two and in the sizes of models that are not, kernels, exchanges and
/// collectives by size, gaps, and GEMMs and exchanges beside each other. Messages need two ranks.
std::vector<MicroProgram> micro_programs(const BenchPlan& plan);

struct BenchOptions {
  int passes = 2;          ///< Passes through all of them, each in another random order.
  int repetitions = 2;     ///< Repetitions of each in a pass; before the first the op runs once without counting.
  std::uint64_t seed = 1;  ///< Seed of the orders.
  /// No other process waits for this one, so an op that fails can be left out. Otherwise a failure ends the bench.
  bool alone = true;
};

struct BenchResult {
  std::vector<MicroBenchmark> measured;  ///< In the order of the programs, without those that failed.
  std::vector<std::string> failures;     ///< A sentence for each program that could not be measured.
};

/// Measures all programs; a program that fails is left out, and the others go on. Stuck, which says that the executor
/// cannot be used any more, ends the bench with the results so far. `after_each`, if any, is called with the number of
/// visits that are done.
BenchResult bench(const std::vector<MicroProgram>& programs, const BenchOptions& options, const MakeExecutor& make,
                  const std::function<void(std::size_t done, std::size_t visits)>& after_each = {});

/// Returns the measurements with median, p10 and p90, in at most 80 columns.
std::string to_table(const std::vector<MicroBenchmark>& measured);

}  // namespace commfuse::validate
