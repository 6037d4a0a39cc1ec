// SPDX-License-Identifier: Apache-2.0
// Runs programs of one op on threads, and checks the samples that follow from their spans.
#include "validate/bench/bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "tests/validate/cuda/fake_driver.h"
#include "tests/validate/span.h"
#include "validate/cpu/cpu_executor.h"
#include "validate/cuda/virtual_executor.h"

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;
using test::span;
using Durations = std::vector<Duration>;

TEST(MicroProgram, ASampleIsTheTimeOfTheSlowestRank) {
  const MicroProgram micro = product_alone(2, {.m = 4, .n = 4, .k = 4});
  EXPECT_EQ(samples_in(micro, {span(0, 0, 1ms, 3ms), span(1, 0, 2ms, 5ms)}), Durations{3ms});
}

TEST(MicroProgram, AGapIsFromAnEndToTheNextStart) {
  const MicroProgram micro = gaps(2, true);
  const Timeline spans{span(0, 0, 1ms, 3ms), span(0, 1, 4ms, 5ms), span(0, 2, 5ms, 6ms), span(1, 0, 1ms, 2ms),
                       span(1, 1, 7ms, 9ms)};
  EXPECT_EQ(samples_in(micro, spans), (Durations{1ms, 0ms, 5ms}));
}

TEST(MicroProgram, ExchangesCountOnlyWhileAGemmRuns) {
  const GemmSize size{.m = 4, .n = 4, .k = 4};
  const Timeline spans{span(0, 0, 1ms, 9ms), span(0, 1, 0ms, 2ms), span(0, 2, 2ms, 5ms), span(0, 3, 8ms, 10ms)};
  const MicroProgram exchange = beside_each_other(2, size, {1024}, 3, Watched::exchange);
  EXPECT_EQ(samples_in(exchange, spans), Durations{3ms});
  const MicroProgram gemm = beside_each_other(2, size, {1024}, 3, Watched::product);
  EXPECT_EQ(samples_in(gemm, spans), Durations{8ms});
}

TEST(MicroProgram, StatesItsOpBytesAndRanks) {
  const MicroProgram add = kernel_alone(2, Function::add, DType::fp32, {1 << 20});
  EXPECT_EQ(add.what.bytes, (1 << 20) / 3072 * 3072);  // rows of two inputs and an output, 256 elements each
  const MicroProgram swiglu = kernel_alone(2, Function::swiglu, DType::bf16, {std::int64_t{3} * 512 * 7});
  EXPECT_EQ(swiglu.what.bytes, 3 * 512 * 7);
  const MicroProgram gather = collective_alone(2, CollectiveKind::all_gather, DType::bf16, {8192});
  EXPECT_EQ(gather.what.op, "all_gather");
  EXPECT_EQ(gather.what.bytes, 8192);
  EXPECT_EQ(gather.what.ranks, 2);
}

std::vector<MicroProgram> one_of_each() {
  std::vector<MicroProgram> programs{product_alone(2, {.m = 8, .n = 16, .k = 8, .dtype = DType::bf16}), gaps(2, false),
                                     gaps(2, true), exchange_alone(2, DType::fp16, {4096}),
                                     beside_each_other(2, {.m = 64, .n = 64, .k = 64}, {4096}, 4, Watched::product)};
  for (const Function function :
       {Function::copy, Function::add, Function::gelu, Function::swiglu, Function::norm, Function::residual}) {
    programs.push_back(kernel_alone(2, function, DType::bf16, {8192}));
  }
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                    CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
    programs.push_back(collective_alone(2, kind, DType::fp32, {8192}));
  }
  return programs;
}

TEST(Bench, EveryKindOfOpRunsOnThreads) {
  const std::vector<MicroProgram> programs = one_of_each();
  std::size_t reported = 0;
  const BenchResult result = bench(
      programs, {.passes = 2, .repetitions = 3},
      [](Lowered lowered, Sizes sizes) {
        return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), CpuOptions{});
      },
      [&](std::size_t done, std::size_t measurements) {
        EXPECT_EQ(measurements, 2 * programs.size());
        reported = done;
      });
  EXPECT_EQ(reported, 2 * programs.size());
  EXPECT_EQ(result.failures, std::vector<std::string>{});
  ASSERT_EQ(result.measured.size(), programs.size());
  for (const MicroBenchmark& benchmark : result.measured) {
    const bool counts_gaps = benchmark.op == "next" || benchmark.op == "wake";
    EXPECT_EQ(benchmark.samples.size(), counts_gaps ? 2U * 3U * 2U * 31U : 2U * 3U) << benchmark.op;
  }
}

TEST(Bench, LongOpsAreNotRepeatedInAPass) {
  const MakeExecutor make = [](Lowered lowered, Sizes sizes) {
    return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), CpuOptions{});
  };
  const std::vector<MicroProgram> programs{kernel_alone(1, Function::copy, DType::bf16, {8192})};
  BenchOptions options{.passes = 2, .repetitions = 3, .enough = Duration{1}};
  EXPECT_EQ(bench(programs, options, make).measured.at(0).samples.size(), 2U);
  options.enough = std::chrono::hours(1);
  EXPECT_EQ(bench(programs, options, make).measured.at(0).samples.size(), 6U);
  options.enough = Duration{1};
  options.alone = false;  // All processes have to repeat equally often.
  EXPECT_EQ(bench(programs, options, make).measured.at(0).samples.size(), 6U);
}

/// Returns a function that makes executors on threads, and throws for GEMMs.
MakeExecutor without_gemms() {
  return [](Lowered lowered, Sizes sizes) -> std::unique_ptr<Executor> {
    if (lowered.program->ops.front().kind == OpKind::gemm) {
      throw std::runtime_error("out of memory");
    }
    return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), CpuOptions{});
  };
}

TEST(Bench, KeepsItsSamplesWhenAnOpFails) {
  const std::vector<MicroProgram> programs{product_alone(1, {.m = 4, .n = 4, .k = 4}),
                                           kernel_alone(1, Function::copy, DType::bf16, {8192})};
  const BenchResult result = bench(programs, {}, without_gemms());
  ASSERT_EQ(result.measured.size(), 1U);
  EXPECT_EQ(result.measured[0].op, "copy");
  EXPECT_EQ(result.failures, std::vector<std::string>{"product 4 x 4 x 4: not measured: out of memory"});
  const MakeExecutor failing = [](const Lowered&, const Sizes&) -> std::unique_ptr<Executor> {
    throw std::runtime_error("out of memory");
  };
  EXPECT_EQ(bench({gaps(1, false)}, {}, failing).failures,
            std::vector<std::string>{"next: not measured: out of memory"});
}

TEST(Bench, EndsAtTheFirstFailureWhereOtherProcessesWait) {
  EXPECT_THROW(bench({product_alone(1, {.m = 4, .n = 4, .k = 4})}, {.alone = false}, without_gemms()),
               std::runtime_error);
}

TEST(Bench, KeepsItsSamplesWhenTheExecutorGetsStuck) {
  const std::vector<MicroProgram> programs{kernel_alone(1, Function::copy, DType::bf16, {8192})};
  int executors = 0;
  const BenchResult result = bench(programs, {.passes = 2}, [&](Lowered lowered, Sizes sizes) {
    if (executors++ == 1) {
      throw Stuck("process 1 gave up");
    }
    return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), CpuOptions{});
  });
  ASSERT_EQ(result.measured.size(), 1U);
  EXPECT_EQ(result.failures, std::vector<std::string>{"stopped after 1 of 2 measurements: process 1 gave up"});
}

TEST(Bench, EveryOpOfAPlanForAGpuFitsBehindAGate) {
  test::FakeCluster cluster;
  Device device(cluster.device(0));
  // This op needs the longest queue; two iterations are issued together.
  for (const MicroProgram& micro : micro_programs({.parts = {BenchPart::neighbours}, .gpu = true})) {
    if (micro.what.bytes == 256 << 10) {
      Sizes sizes = micro.sizes;
      std::ranges::fill(sizes.block, 1);  // the values do not matter
      VirtualExecutor executor(lower(micro.program), sizes, device,
                               {.middle = 1, .mode = LaunchMode::gated, .random_data = true});
      EXPECT_NO_THROW(executor.run({.sum_order = SumOrder::blocked, .iterations = 2, .traced = true}));
    }
  }
}

TEST(Bench, ThePlanHasEnoughGemmsAndMessagesToFit) {
  const auto count = [](const std::vector<MicroProgram>& programs, const std::string& op) {
    return std::ranges::count_if(
        programs, [&](const MicroProgram& program) { return program.what.op == op && program.what.beside.empty(); });
  };
  const std::vector<MicroProgram> programs = micro_programs({.dtypes = {DType::bf16, DType::fp32}});
  EXPECT_EQ(count(programs, "product"), 2 * 105);
  EXPECT_EQ(count(programs, "exchange"), 23);
  EXPECT_EQ(count(programs, "all_reduce"), 23);
  const std::vector<MicroProgram> single_rank = micro_programs({.ranks = 1, .quick = true});
  EXPECT_EQ(count(single_rank, "product"), 4);
  EXPECT_EQ(count(single_rank, "exchange"), 0);
}

TEST(Bench, TheTableHasRates) {
  const std::string table =
      to_table({{.op = "product", .dtype = "bf16", .m = 100, .n = 100, .k = 100, .samples = {1ms}},
                {.op = "product",
                 .beside = "exchange",
                 .dtype = "bf16",
                 .m = 100,
                 .n = 100,
                 .k = 100,
                 .bytes = 4096,
                 .samples = {2ms}},
                {.op = "copy", .dtype = "fp32", .bytes = 1 << 20, .samples = {1ms, 2ms, 3ms}},
                {.op = "wake", .samples = {4us}}});
  EXPECT_EQ(table,
            "milliseconds                              median          p10..p90\n"
            "product        bf16 100 x 100 x 100        1.000      1.000..1.000 2.0 GFLOP/s\n"
            "product        bf16 100 x 100 x 100        2.000      2.000..2.000 1.0 GFLOP/s\n"
            "  beside exchange\n"
            "copy           fp32 1024 KiB               2.000      1.000..3.000 0.52 GB/s\n"
            "wake                                       0.004      0.004..0.004\n");
}

TEST(Bench, TheTableFitsInATerminalAndShowsPartsOfAKiB) {
  EXPECT_EQ(to_table({{.op = "product", .dtype = "bf16", .m = 8192, .n = 12288, .k = 6144, .samples = {2ms}},
                      {.op = "reduce_scatter", .dtype = "bf16", .bytes = 7680, .samples = {1500ms}}}),
            "milliseconds                              median          p10..p90\n"
            "product        bf16 8192 x 12288 x 6144    2.000      2.000..2.000 618.5 TFLOP/s\n"
            "reduce_scatter bf16 7.5 KiB             1500.000 1500.000..1500.000 0.00 GB/s\n");
}

TEST(Bench, CollectivesOfManyRanksHaveARowForEachRank) {
  const std::vector<MicroProgram> programs =
      micro_programs({.ranks = 9, .dtypes = {DType::fp32}, .parts = {BenchPart::messages}});
  std::vector<std::int64_t> gathered;
  for (const MicroProgram& program : programs) {
    if (program.what.op == "all_gather") {
      gathered.push_back(program.what.bytes);
    }
  }
  ASSERT_EQ(gathered.size(), 22U);  // one fewer than exchanges, because 8 KiB is less than 9 rows of 1 KiB
  EXPECT_EQ(gathered.front(), 9216);
}

}  // namespace
}  // namespace commfuse::validate
