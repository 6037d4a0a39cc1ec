// SPDX-License-Identifier: Apache-2.0
// Tests samples from the spans of a schedule, on programs of one op whose spans can be added up by hand.
#include "validate/measure/op_samples.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/validate/span.h"
#include "validate/bench/micro_program.h"

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;
using test::span;

std::vector<MicroBenchmark> samples(const MicroProgram& micro, const Timeline& spans) {
  std::vector<MicroBenchmark> benchmarks;
  add_op_samples(*micro.program, micro.sizes, spans, benchmarks);
  return benchmarks;
}

/// Returns the result of the op's micro-benchmark inside a schedule.
std::vector<MicroBenchmark> expected(const MicroProgram& micro, Duration sample) {
  MicroBenchmark benchmark = micro.what;
  benchmark.beside = inside_schedule;
  benchmark.samples = {sample};
  return {benchmark};
}

TEST(OpSamples, AGemmOrKernelCountsByItsSlowestRank) {
  const Timeline spans{span(0, 0, 1ms, 3ms), span(1, 0, 2ms, 5ms)};
  const MicroProgram gemm = product_alone(2, {.m = 6, .n = 5, .k = 4, .dtype = DType::fp16});
  EXPECT_EQ(samples(gemm, spans), expected(gemm, 3ms));
  const MicroProgram swiglu = kernel_alone(2, Function::swiglu, DType::bf16, {std::int64_t{3} * 512 * 7});
  EXPECT_EQ(samples(swiglu, spans), expected(swiglu, 3ms));
}

TEST(OpSamples, AnExchangeStartsWhenItsNeighboursAreReady) {
  const MicroProgram exchange = exchange_alone(4, DType::bf16, {2048});
  // Rank 1 is late: it keeps ranks 0 and 2 waiting, but not rank 3.
  const Timeline spans{span(0, 0, 1ms, 8ms), span(1, 0, 7ms, 9ms), span(2, 0, 1ms, 8ms), span(3, 0, 1ms, 4ms)};
  EXPECT_EQ(samples(exchange, spans), expected(exchange, 3ms));
}

TEST(OpSamples, ACollectiveLastsFromTheLastStartToTheLastEnd) {
  const MicroProgram gather = collective_alone(3, CollectiveKind::all_gather, DType::fp32, {3072});
  const Timeline spans{span(0, 0, 1ms, 6ms), span(1, 0, 4ms, 6ms), span(2, 0, 2ms, 7ms)};
  EXPECT_EQ(samples(gather, spans), expected(gather, 3ms));
}

TEST(OpSamples, OpsOfOneSizeAreSamplesOfOneRow) {
  const MicroProgram halves = transfers_alone(2, 0, 1, DType::bf16, {512}, 1);
  EXPECT_TRUE(samples(halves, {span(0, 0, 0ms, 1ms), span(1, 1, 0ms, 1ms)}).empty());
  const MicroProgram concurrent = beside_each_other(1, {.m = 4, .n = 4, .k = 4}, {512}, 1, Watched::product);
  std::vector<MicroBenchmark> benchmarks = samples(concurrent, {span(0, 0, 0ms, 2ms), span(0, 1, 0ms, 1ms)});
  ASSERT_EQ(benchmarks.size(), 2U);
  add_op_samples(*concurrent.program, concurrent.sizes, {span(0, 0, 0ms, 3ms), span(0, 1, 0ms, 1ms)}, benchmarks);
  ASSERT_EQ(benchmarks.size(), 2U);
  EXPECT_EQ(benchmarks[0].op, "product");
  EXPECT_EQ(benchmarks[0].samples, (std::vector<Duration>{2ms, 3ms}));
}

}  // namespace
}  // namespace commfuse::validate
