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
  std::vector<DType> dtypes{DType::bf16};  ///< Messages, and GEMMs next to exchanges, use the first one.
  std::vector<BenchPart> parts{};          ///< Empty: all.
  bool quick = false;                      ///< A few sizes of everything: enough for a look, too few for a fit.
  bool gpu = false;                        ///< Shard sizes that suit a GPU instead of a processor.
};

/// Returns the programs of a plan: GEMMs (m, n and k are powers of two, and other sizes that models have), kernels,
/// exchanges and collectives of many sizes, gaps, and GEMMs that run next to exchanges. A plan for one rank has no
/// programs with messages; a collective has at least one row per rank.
std::vector<MicroProgram> micro_programs(const BenchPlan& plan);

struct BenchOptions {
  int passes = 2;       ///< Passes through all programs, each in a different random order.
  int repetitions = 2;  ///< Repetitions of each program in a pass, after one run that is not counted.
  /// If `alone`, a pass does not repeat a program whose samples add up to this time: long ops vary little.
  Duration enough = Duration::max();
  std::uint64_t seed = 1;  ///< Seed of the orders.
  /// True if no other process waits for this one. A program that fails is then skipped; otherwise it ends the bench.
  bool alone = true;
};

struct BenchResult {
  std::vector<MicroBenchmark> measured;  ///< In the order of the programs, without those that have no samples.
  std::vector<std::string> failures;     ///< A sentence for each program that could not be measured.
};

/// Measures all programs. If `options.alone`, skips a program that fails and continues with the others. Stuck means
/// that the executor can no longer be used: it ends the bench with the results so far. `after_each`, if set, is called
/// with the number of completed measurements.
BenchResult bench(const std::vector<MicroProgram>& programs, const BenchOptions& options, const MakeExecutor& make,
                  const std::function<void(std::size_t done, std::size_t measurements)>& after_each = {});

/// Returns the measurements with median, p10 and p90, in at most 80 columns.
std::string to_table(const std::vector<MicroBenchmark>& measured);

}  // namespace commfuse::validate
