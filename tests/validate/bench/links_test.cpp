// SPDX-License-Identifier: Apache-2.0
// Tests that every link and every rank is compared with the other links and ranks, and that slow ones are named.
#include "validate/bench/links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "model/config/catalogue.h"
#include "model/expect/message.h"
#include "model/program/lower.h"
#include "model/program/names.h"
#include "validate/bench/bench.h"
#include "validate/bench/rates.h"
#include "validate/cpu/cpu_executor.h"
#include "validate/reference/data.h"

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;
using Sentences = std::vector<std::string>;
/// Returns the duration of the transfer from one rank to another.
using LinkTime = std::function<Duration(std::int64_t from, std::int64_t to)>;

constexpr std::int64_t mib = 1 << 20;

/// Returns nine samples, one of them an outlier.
std::vector<Duration> around(Duration time) {
  return {time, time + 1us, time - 1us, time, time, time + 2us, time - 2us, 10 * time, time};
}

std::vector<MicroBenchmark> transfers(std::int64_t ranks, const LinkTime& time) {
  std::vector<MicroBenchmark> benchmarks;
  for (std::int64_t from = 0; from < ranks; ++from) {
    for (std::int64_t to = 0; to < ranks; ++to) {
      if (from != to) {
        benchmarks.push_back({.op = "transfer",
                              .dtype = "bf16",
                              .bytes = mib,
                              .ranks = ranks,
                              .rank = from,
                              .peer = to,
                              .samples = around(time(from, to))});
      }
    }
  }
  return benchmarks;
}

MicroBenchmark gemm_of(std::int64_t rank, std::vector<Duration> samples) {
  return {.op = "product", .m = 8, .n = 4, .k = 2, .ranks = 4, .rank = rank, .samples = std::move(samples)};
}

TEST(Links, OneSlowLinkIsNamed) {
  const auto slow = transfers(4, [](auto from, auto to) { return from == 2 && to == 0 ? 150us : 100us; });
  const LinkFindings findings = findings_in(slow, {}, 0.2);
  EXPECT_EQ(findings.culprits,
            Sentences{"rank 2 to rank 0: transfers of 1 MiB take 1.50 times as long as usual (1.49 to 1.52)"});
  EXPECT_EQ(findings_in(slow, {}, 0.5).culprits, Sentences{});
}

TEST(Links, NamesARankInsteadOfItsLinksIfMostAreSlow) {
  const auto both_ways = transfers(4, [](auto from, auto to) { return from == 2 || to == 2 ? 200us : 100us; });
  EXPECT_EQ(findings_in(both_ways, {}, 0.2).culprits,
            Sentences{"rank 2: 6 of 6 links take 2.00 times as long as usual (transfers of 1 MiB)"});
  const auto one_sender = transfers(4, [](auto from, auto) { return from == 2 ? 200us : 100us; });
  EXPECT_EQ(findings_in(one_sender, {}, 0.2).culprits,
            Sentences{"rank 2: 3 of 3 outgoing links take 2.00 times as long as usual (transfers of 1 MiB)"});
  const auto one_receiver = transfers(4, [](auto, auto to) { return to == 1 ? 130us : 100us; });
  EXPECT_EQ(findings_in(one_receiver, {}, 0.2).culprits,
            Sentences{"rank 1: 3 of 3 incoming links take 1.30 times as long as usual (transfers of 1 MiB)"});
}

TEST(Links, ASlowRankDoesNotHideASlowLinkOfOtherRanks) {
  const auto slow_rank_and_link = transfers(5, [](auto from, auto to) {
    return from == 4 || to == 4 ? 200us : from == 0 && to == 3 ? 300us : 100us;
  });
  const LinkFindings findings = findings_in(slow_rank_and_link, {}, 0.2);
  ASSERT_EQ(findings.culprits.size(), 2U);
  EXPECT_TRUE(findings.culprits[0].starts_with("rank 4: 8 of 8 links ")) << findings.culprits[0];
  EXPECT_TRUE(findings.culprits[1].starts_with("rank 0 to rank 3: ")) << findings.culprits[1];
}

TEST(Links, LinksBetweenHostsAreComparedWithEachOther) {
  const auto two_hosts = transfers(4, [](auto from, auto to) { return from / 2 == to / 2 ? 100us : 900us; });
  const LinkFindings findings = findings_in(two_hosts, {"a", "a", "b", "b"}, 0.2);
  EXPECT_EQ(findings.culprits, Sentences{});
  ASSERT_EQ(findings.groups.size(), 2U);
  EXPECT_EQ(findings.groups[0].usual, 100us);
  EXPECT_EQ(findings.groups[1].name, "transfers of 1 MiB between hosts");
  EXPECT_EQ(findings.groups[1].usual, 900us);
  EXPECT_EQ(findings.groups[1].parts.size(), 8U);
}

TEST(Links, ASlowRankIsNamedByItsGemms) {
  std::vector<MicroBenchmark> gemms;
  for (const std::int64_t rank : {0, 1, 2, 3}) {
    gemms.push_back(gemm_of(rank, around(rank == 3 ? 13ms : 10ms)));
  }
  EXPECT_EQ(findings_in(gemms, {}, 0.2).culprits,
            Sentences{"rank 3: GEMMs of 8 x 4 x 2 take 1.30 times as long as usual (1.30 to 1.30)"});
}

TEST(Links, NoiseIsNotAnOutlier) {
  const std::vector<MicroBenchmark> gemms{gemm_of(0, around(10ms)), gemm_of(1, around(10ms)),
                                          gemm_of(2, {10ms, 10ms, 10ms, 10ms, 20ms, 20ms, 20ms, 20ms, 20ms}),
                                          gemm_of(3, {20ms, 20ms})};
  const LinkFindings findings = findings_in(gemms, {}, 0.2);
  EXPECT_EQ(findings.groups.at(0).parts.at(2).ratio, 2.0);
  EXPECT_EQ(findings.groups.at(0).parts.at(3).ratio, 2.0);  // two samples do not give an interval
  EXPECT_EQ(findings.culprits, Sentences{});
}

TEST(Links, TooFewSamplesAreNotCalledUsual) {
  std::vector<MicroBenchmark> measured;
  for (const std::int64_t rank : {0, 1, 2, 3}) {
    measured.push_back(gemm_of(rank, std::vector<Duration>(3, rank == 3 ? 90ms : 10ms)));
  }
  const std::string gemms = "GEMMs of 8 x 4 x 2 by rank, ms\n   0  10.000   10.000   10.000   90.000\n";
  const std::string not_judged =
      "Not judged, because they have too few samples for an interval (raise\n"
      "  --iterations): GEMMs of 8 x 4 x 2.\n";
  EXPECT_EQ(to_table(findings_in(measured, {}, 0.2), 4, 0.2), gemms + not_judged);
  for (const MicroBenchmark& transfer : transfers(4, [](auto, auto) { return 100us; })) {
    measured.push_back(transfer);
  }
  const std::string table = to_table(findings_in(measured, {}, 0.2), 4, 0.2);
  EXPECT_TRUE(table.ends_with("Nothing else takes more than 20% longer than usual.\n" + not_judged)) << table;
}

TEST(Links, IgnoresGemmsOfAllRanksAndOtherOps) {
  EXPECT_TRUE(findings_in(std::vector<MicroBenchmark>{{.op = "product", .samples = {1ms}}, {.op = "wake"}}, {}, 0.2)
                  .groups.empty());
}

TEST(Links, TheTableIsAMatrixWithMarks) {
  const auto slow = transfers(3, [](auto from, auto to) { return from == 2 && to == 0 ? 150us : 100us; });
  EXPECT_EQ(to_table(findings_in(slow, {}, 0.2), 3, 0.2),
            "transfers of 1 MiB, GB/s, from (down) to (right)\n"
            "         0      1      2\n"
            "   0     -  10.49  10.49\n"
            "   1 10.49      -  10.49\n"
            "   2  6.99! 10.49      -\n"
            "More than 20% longer than usual (!):\n"
            "  rank 2 to rank 0: transfers of 1 MiB take 1.50 times as long as usual (1.49 to\n    1.52)\n");
}

TEST(Links, SeparatesLongNumbers) {
  auto slow = transfers(2, [](auto /*from*/, auto /*to*/) { return 12'345us; });
  for (MicroBenchmark& benchmark : slow) {
    benchmark.bytes = 8192;
  }
  const std::string table = to_table(findings_in(slow, {}, 0.2), 2, 0.2);
  EXPECT_NE(table.find("\n           0        1\n   0       -  12345.0\n   1 12345.0        -\n"), std::string::npos)
      << table;
}

TEST(Links, EachOfManyRanksHasALine) {
  const auto slow = transfers(12, [](auto from, auto to) { return from == 11 && to == 4 ? 150us : 100us; });
  const std::string table = to_table(findings_in(slow, {}, 0.2), 12, 0.2);
  EXPECT_NE(table.find("\n    11      10.49      10.49   11 to 4: 6.99!\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\n     4      10.49      10.49   11 to 4: 6.99!\n"), std::string::npos) << table;
}

// A table of ten columns with rates of at least 100 GB/s would be 84 characters wide.
TEST(Links, ATooWideMatrixIsPrintedByRank) {
  auto fast = transfers(10, [](auto /*from*/, auto /*to*/) { return 100us; });
  EXPECT_NE(to_table(findings_in(fast, {}, 0.2), 10, 0.2).find("from (down) to (right)"), std::string::npos);
  for (MicroBenchmark& benchmark : fast) {
    benchmark.bytes = 20 * mib;
  }
  const std::string table = to_table(findings_in(fast, {}, 0.2), 10, 0.2);
  EXPECT_TRUE(table.starts_with("transfers of 20 MiB, GB/s, medians\n")) << table;
  EXPECT_NE(table.find("\n     9     209.72     209.72   0 to 9: 209.72\n"), std::string::npos) << table;
}

TEST(Links, EveryOrderedPairAndEveryRankIsMeasuredOnThreads) {
  const std::vector<MicroProgram> programs =
      link_programs({.ranks = 3, .sizes = {{4096}, {8192}}, .product = {.m = 4, .n = 4, .k = 4}});
  const std::vector<MicroBenchmark> measured =
      bench(programs, {.passes = 2, .repetitions = 2}, [](Lowered lowered, Sizes sizes) {
        return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), CpuOptions{});
      }).measured;
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;
  for (const MicroBenchmark& benchmark : measured) {
    seen.emplace(benchmark.bytes, benchmark.rank, benchmark.peer);
    EXPECT_EQ(benchmark.samples.size(), benchmark.op == "transfer" ? 2U * 2U * 4U : 2U * 2U);
    EXPECT_EQ(benchmark.ranks, 3);
  }
  EXPECT_EQ(seen.size(), 2U * 6U + 3U);
}

TEST(Links, ATransferMovesTheDataOfOneRankToTheOther) {
  const MicroProgram micro = transfers_alone(3, 2, 0, DType::fp32, {2048}, 1);
  CpuExecutor executor(lower(micro.program), micro.sizes, CpuOptions{});
  Matrix<float> tensor(2, 256);
  for (std::int64_t column = 0; column < 256; ++column) {
    tensor.at(0, column) = static_cast<float>(column);
    tensor.at(1, column) = -static_cast<float>(column);
  }
  executor.prepare(std::vector<Matrix<float>>{tensor});
  executor.run({});
  const Rectangle target{.buffer = BufferId{1}, .rows = 1, .columns = 1};  // in blocks
  EXPECT_EQ(executor.fetch(0, target).at(1, 255), -255.0F);
  EXPECT_TRUE(std::isnan(executor.fetch(1, target).at(0, 0)));  // poison
  EXPECT_TRUE(std::isnan(executor.fetch(2, target).at(0, 0)));
}

TEST(MicroProgram, ATransferStartsWhenBothRanksAreReady) {
  const MicroProgram micro = transfers_alone(2, 1, 0, DType::bf16, {512}, 2);
  const auto span = [](Rank rank, int op, Duration start, Duration end) {
    return OpSpan{rank, OpId{op}, Instant(start), Instant(end)};
  };
  const Timeline spans{span(0, 1, 1ms, 5ms), span(0, 3, 5ms, 8ms), span(1, 0, 3ms, 5ms), span(1, 2, 4ms, 8ms)};
  EXPECT_EQ(samples_in(micro, spans), (std::vector<Duration>{2ms, 3ms}));
}

/// Returns transfers of 32 MiB, whose time is limited by bandwidth on H100.
std::vector<MicroBenchmark> large_transfers(std::int64_t ranks, const LinkTime& time) {
  std::vector<MicroBenchmark> benchmarks = transfers(ranks, time);
  for (MicroBenchmark& benchmark : benchmarks) {
    benchmark.bytes = 32 * mib;
  }
  return benchmarks;
}

/// Returns the machine's time for a transfer of 32 MiB, multiplied by `factor`.
LinkTime times_on(const Machine& machine, double factor) {
  const Message message{.op = LinkOp::send_recv, .gpus = 2, .nodes = 1, .bytes = {32 * mib}};
  return
      [time = message_time(machine, message), factor](auto, auto) { return from_seconds(factor * to_seconds(time)); };
}

TEST(Links, EquallySlowLinksAreDetectedAgainstTheMachine) {
  const Machine machine = load_machine("h100-sxm");
  const LinkFindings slow = findings_in(large_transfers(4, times_on(machine, 2.0)), {}, 0.2);
  EXPECT_TRUE(slow.culprits.empty());
  const LinksBelow below = below_expectation(slow, machine, 0.01);
  EXPECT_EQ(below.compared, 12U);
  ASSERT_EQ(below.sentences.size(), 12U);
  EXPECT_TRUE(below.sentences[0].starts_with(
      "rank 0 to rank 1: transfers of 32 MiB take 2.00 times as long as h100-sxm should: "))
      << below.sentences[0];
  EXPECT_TRUE(below_expectation(findings_in(large_transfers(4, times_on(machine, 1.0)), {}, 0.2), machine, 0.01)
                  .sentences.empty());
}

TEST(Links, OnlyTheSlowLinkIsSlowerThanTheMachine) {
  const Machine machine = load_machine("h100-sxm");
  const LinkTime usual = times_on(machine, 1.0);
  const LinkTime half = times_on(machine, 2.0);
  const auto measured =
      large_transfers(4, [&](auto from, auto to) { return from == 3 && to == 1 ? half(from, to) : usual(from, to); });
  const LinksBelow below = below_expectation(findings_in(measured, {}, 0.2), machine, 0.01);
  ASSERT_EQ(below.sentences.size(), 1U);
  EXPECT_TRUE(below.sentences[0].starts_with("rank 3 to rank 1: ")) << below.sentences[0];
}

TEST(Links, LeavesOutSmallTransfersAndThoseBetweenHostsWithoutANetwork) {
  const Machine machine = load_machine("h100-sxm");
  const auto measured = transfers(2, [](auto, auto) { return 1h; });
  const LinksBelow between = below_expectation(findings_in(measured, {"a", "b"}, 0.2), machine, 0.01);
  EXPECT_EQ(between.compared, 0U);
  EXPECT_EQ(between.left_out, 2U);
  auto small = transfers(2, [](auto, auto) { return 1h; });
  for (MicroBenchmark& benchmark : small) {
    benchmark.bytes = 512;
  }
  EXPECT_EQ(below_expectation(findings_in(small, {}, 0.2), machine, 0.01).left_out, 2U);
}

TEST(MicroProgram, TransfersBothWaysLastUntilBothHaveArrived) {
  const MicroProgram micro = transfers_both_ways(3, 2, 0, DType::bf16, {512}, 1);
  ASSERT_EQ(micro.program->ops.size(), 4U);
  const auto span = [](Rank rank, int op, Duration start, Duration end) {
    return OpSpan{rank, OpId{op}, Instant(start), Instant(end)};
  };
  // Both ranks are ready for the transfer from 2 to 0 at 3 ms, and for the opposite one at 2 ms.
  const Timeline spans{span(2, 0, 1ms, 6ms), span(0, 1, 3ms, 6ms), span(0, 2, 2ms, 9ms), span(2, 3, 1ms, 9ms)};
  EXPECT_EQ(samples_in(micro, spans), std::vector<Duration>{7ms});
}

TEST(Rates, PairsBothWaysAndCollectivesAreMeasuredOnThreads) {
  const std::vector<MicroProgram> programs =
      rate_programs({.ranks = 3, .sizes = {{4096}}, .both_ways = true, .collectives = {{1}, {6000}}});
  ASSERT_EQ(programs.size(), 3U + (4U + 3U) * 2U);
  EXPECT_EQ(programs[3].what.bytes, 3 * 512);
  EXPECT_FALSE(programs[3].what.in_place);
  EXPECT_EQ(programs[4].what.bytes, 3 * 512);
  EXPECT_TRUE(programs[4].what.in_place);
  EXPECT_EQ(programs[5].what.bytes, 4 * 3 * 512);
  const std::vector<MicroBenchmark> measured =
      bench(programs, {.passes = 1, .repetitions = 2}, [](Lowered lowered, Sizes sizes) {
        return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), CpuOptions{});
      }).measured;
  ASSERT_EQ(measured.size(), programs.size());
  EXPECT_EQ(measured.front().samples.size(), 2U * 4U);
}

TEST(Rates, InPlaceSumsEqualOutOfPlaceSums) {
  constexpr std::int32_t ranks = 3;
  for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
    std::vector<Matrix<float>> sums;
    for (const Placing placing : {Placing::out_of_place, Placing::in_place}) {
      const MicroProgram micro = collective_alone(ranks, kind, DType::fp32, {ranks * 1024}, placing);
      const Lowered lowered = lower(micro.program);
      const Rectangle out = commands_of(lowered, 1).front().outputs.front().front();
      CpuExecutor executor(lower(micro.program), micro.sizes, {});
      executor.prepare(input_data(*micro.program, micro.sizes, DataKind::random, 1));
      executor.run({});
      sums.push_back(executor.fetch(1, out));
    }
    EXPECT_EQ(sums[0], sums[1]) << name_of(kind);
  }
}

TEST(Rates, AnInPlaceInputIsTheRanksPartOfTheOutput) {
  const auto command = [](CollectiveKind kind) {
    return commands_of(lower(collective_alone(4, kind, DType::bf16, {4 * 512}, Placing::in_place).program), 2).front();
  };
  const Command gather = command(CollectiveKind::all_gather);
  const Rectangle whole = gather.outputs.front().front();
  const Rectangle own_part = gather.inputs.front().front();
  EXPECT_EQ(own_part.buffer, whole.buffer);
  EXPECT_EQ(own_part.row, 2);
  EXPECT_EQ(own_part.rows, 1);
  EXPECT_EQ(whole.rows, 4);
  EXPECT_EQ(command(CollectiveKind::reduce_scatter).outputs.front().front(), own_part);
  EXPECT_EQ(command(CollectiveKind::all_reduce).outputs.front(), command(CollectiveKind::all_reduce).inputs.front());
  EXPECT_FALSE(can_be_in_place(CollectiveKind::all_to_all));
}

TEST(Rates, AreCountedAsNvbandwidthAndNcclTestsDo) {
  std::vector<MicroBenchmark> measured{
      {.op = "both_ways", .bytes = 1'000'000, .ranks = 2, .rank = 0, .peer = 1, .samples = around(100us)},
      {.op = "all_reduce", .bytes = 4'000'000, .ranks = 4, .samples = around(100us)},
      {.op = "all_gather", .bytes = 4'000'000, .ranks = 4, .samples = around(100us)},
      {.op = "all_gather", .bytes = 4'000'000, .ranks = 4, .in_place = true, .samples = around(50us)}};
  EXPECT_EQ(rates_in_words(measured),
            "both ways simultaneously, 1000000 bytes each, GB/s in both directions together\n"
            "           0       1\n"
            "   0       -   20.00\n"
            "   1   20.00       -\n"
            "all_gather, 4 ranks, out of place\n"
            "       bytes      time/us     algbw GB/s     busbw GB/s\n"
            "     4000000        100.0          40.00          30.00\n"
            "all_gather, 4 ranks, in place\n"
            "       bytes      time/us     algbw GB/s     busbw GB/s\n"
            "     4000000         50.0          80.00          60.00\n"
            "all_reduce, 4 ranks, out of place\n"
            "       bytes      time/us     algbw GB/s     busbw GB/s\n"
            "     4000000        100.0          40.00          60.00\n");
  EXPECT_TRUE(findings_in(measured, {}, 0.2).groups.empty());
}

}  // namespace
}  // namespace commfuse::validate
