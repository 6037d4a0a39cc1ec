// SPDX-License-Identifier: Apache-2.0
#include "model/formats/nccl_tests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/refusal.h"

namespace commfuse {
namespace {

const std::string log_head =
    R"(# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
#
# Using devices
#  Rank  0 Group  0 Pid  11461 on   node-a device  0 [0x07] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  11462 on   node-a device  1 [0x0a] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid  21461 on   node-b device  0 [0x07] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid  21462 on   node-b device  1 [0x0a] NVIDIA H100 80GB HBM3
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
)";

NcclTestsRun only_run(std::string_view text, const std::string& path,
                      const std::optional<std::string>& op = std::nullopt) {
  std::vector<NcclTestsRun> runs = read_nccl_tests(text, path, op);
  EXPECT_EQ(runs.size(), 1U);
  return std::move(runs.front());
}

std::string log_refusal(const std::string& text, const std::optional<std::string>& op = "all_gather") {
  return test::refusal_of([&] { read_nccl_tests(text, "out.txt", op); });
}

TEST(NcclTests, TextHasSizesTimesRanksAndNodes) {
  const NcclTestsRun run = only_run(log_head +
                                        "node-a:11461:11461 [0] NCCL INFO Bootstrap\n"
                                        "           0             0     float     sum      -1     6.10    0.00  "
                                        "  0.00      0     6.00    0.00    0.00      0\n"
                                        "     1048576        262144     float     sum      -1    17.13   61.21  "
                                        " 53.56      0    16.90   62.05   54.29    N/A\n"
                                        "  8589934592    2147483648     float     sum      -1    44841  191.57  "
                                        "335.24      0    44840  191.57  335.25      0\n"
                                        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 43.3\n",
                                    "out.txt", "all_reduce");
  EXPECT_EQ(run.op, "all_reduce");
  EXPECT_EQ(run.ranks, 4);
  EXPECT_EQ(run.nodes, 2);
  ASSERT_EQ(run.rows.size(), 2U);
  EXPECT_EQ(run.rows[0].bytes, 1048576);
  EXPECT_EQ(run.rows[0].time_us, 17.13);
  EXPECT_EQ(run.rows[0].in_place_time_us, 16.90);
  EXPECT_EQ(run.rows[1].bytes, 8589934592);
  EXPECT_TRUE(run.mistakes.empty());
}

TEST(NcclTests, NewerTextNamesItsProgram) {
  const NcclTestsRun run = only_run("# Collective test starting: reduce_scatter_perf\n" + log_head +
                                        "  64  2  float  sum  -1  17.1  0.0  0.0  0  16.9  0.0  0.0  0\n",
                                    "out.txt");
  EXPECT_EQ(run.op, "reduce_scatter");
}

TEST(NcclTests, IterationTimesBetweenColumnsAreSkipped) {
  const NcclTestsRun run = only_run(
      log_head + "  64  2  float  sum  -1  17.1  0.0  0.0  0  16  20  19  3.1  16.9  0.0  0.0  0  15  20  19  3.0\n",
      "out.txt", "all_gather");
  ASSERT_EQ(run.rows.size(), 1U);
  EXPECT_EQ(run.rows[0].time_us, 17.1);
  EXPECT_EQ(run.rows[0].in_place_time_us, 16.9);
}

TEST(NcclTests, BadRowsAreNamedAndTheRestIsRead) {
  const NcclTestsRun run = only_run(log_head +
                                        "  64  2  float  sum  -1  nan  0.0  0.0  0  16.9  0.0  0.0  0\n"
                                        "  128  2  float  sum  -1  -3.0  0.0  0.0  0  16.9  0.0  0.0  0\n"
                                        "  256  2  float  sum  -1  17.2  0.0  0.0  7  16.9  0.0  0.0  0\n"
                                        "  512  2  float  sum  -1  17.3  0.0  0.0  0  16.9  0.0  0.0  0\n"
                                        "  1e3  2  float  sum  -1  17.3  0.0  0.0  0  16.9  0.0  0.0  0\n"
                                        "  1024  2  float  sum  -1  17.\n",
                                    "out.txt", "all_gather");
  ASSERT_EQ(run.rows.size(), 1U);
  EXPECT_EQ(run.rows[0].bytes, 512);
  std::string mistakes;
  for (const NcclTestsMistake& mistake : run.mistakes) {
    mistakes += mistake.place + ": " + mistake.reason + "\n";
  }
  EXPECT_EQ(mistakes,
            "line 11: the time is not a number\n"
            "line 12: the time is not above 0\n"
            "line 13: 7 elements were wrong\n"
            "line 15: '1e3' is not a size in bytes\n"
            "line 16: the row is cut off: 6 of 13 columns\n");
}

// Collectives without an in-place form print N/A.
TEST(NcclTests, WrongElementsInPlaceAreAWrongResultToo) {
  const NcclTestsRun run = only_run(log_head +
                                        "  64  2  float  sum  -1  17.2  0.0  0.0  0  16.9  0.0  0.0  5\n"
                                        "  128  2  float  sum  -1  17.2  0.0  0.0  1  16.9  0.0  0.0  5\n"
                                        "  256  2  float  sum  -1  17.2  0.0  0.0  0  16.9  0.0  0.0  N/A\n",
                                    "out.txt", "all_gather");
  ASSERT_EQ(run.rows.size(), 1U);
  EXPECT_EQ(run.rows[0].bytes, 256);
  ASSERT_EQ(run.mistakes.size(), 2U);
  EXPECT_EQ(run.mistakes[0].reason, "5 elements were wrong in place");
  EXPECT_TRUE(run.mistakes[0].is_wrong_result);
  EXPECT_EQ(run.mistakes[1].reason, "1 element was wrong");
}

const std::string json_log =
    R"({"version":2,"start_time":"2026-01-01 00:00:00","args":["/opt/bin/all_gather_perf","-J","x"],
"env":["SECRET_TOKEN=abc"],"nccl_version":22809,
"config":{"devices":[{"rank":0,"hostname":"node-a"},{"rank":1,"hostname":"node-a"}]},
"results":[
{"size":1024,"out_of_place":{"time":9.5,"alg_bw":0.1,"bus_bw":0.1,"nwrong":0.0},"in_place":{"time":9.25,"nwrong":null}},
{"size":2048,"out_of_place":{"time":"nan","alg_bw":0.1,"bus_bw":0.1,"nwrong":0.0},"in_place":null},
{"size":4096,"out_of_place":{"time":9.75,"nwrong":3.0},"in_place":null},
{"size":8192,"out_of_place":{"time":10.5,"nwrong":null},"in_place":null},
{"size":"x"}]})";

TEST(NcclTests, JsonIsReadLikeTextAndItsBadRowsAreNumbered) {
  const NcclTestsRun run = only_run(json_log, "out.json");
  EXPECT_EQ(run.op, "all_gather");
  EXPECT_EQ(run.ranks, 2);
  EXPECT_EQ(run.nodes, 1);
  ASSERT_EQ(run.rows.size(), 2U);
  EXPECT_EQ(run.rows[0].time_us, 9.5);
  EXPECT_EQ(run.rows[0].in_place_time_us, 9.25);
  EXPECT_EQ(run.rows[1].bytes, 8192);
  EXPECT_FALSE(run.rows[1].in_place_time_us.has_value());
  ASSERT_EQ(run.mistakes.size(), 3U);
  EXPECT_EQ(run.mistakes[0].place, "results[1]");
  EXPECT_EQ(run.mistakes[0].reason, "the time is not a number");
  EXPECT_EQ(run.mistakes[1].reason, "3 elements were wrong");
  EXPECT_EQ(run.mistakes[2].reason, "the size is not a number of bytes");
}

TEST(NcclTests, WrongElementsInPlaceOfJsonAreAWrongResultToo) {
  std::string changed = json_log;
  changed.replace(changed.find("\"nwrong\":null"), 13, "\"nwrong\":1.0");
  const NcclTestsRun run = only_run(changed, "out.json");
  EXPECT_EQ(run.rows.size(), 1U);
  EXPECT_EQ(run.mistakes[0].reason, "1 element was wrong in place");
  EXPECT_TRUE(run.mistakes[0].is_wrong_result);
}

TEST(NcclTests, AnInvalidHostNameCountsAsNone) {
  std::string changed = json_log;
  changed.replace(changed.find("\"hostname\":\"node-a\""), 19, "\"hostname\":7");
  EXPECT_EQ(only_run(changed, "out.json").ranks, 2);
}

TEST(NcclTests, BrokenJsonIsRefusedWithItsPlace) {
  constexpr auto no_json = ": is not JSON; give the whole file that nccl-tests -J wrote";
  EXPECT_EQ(log_refusal("{\"results\": [\n  {x"), std::string("out.txt:2:4") + no_json);
  EXPECT_EQ(log_refusal("{\"results\": [\n"), std::string("out.txt:2:1") + no_json);
  EXPECT_EQ(log_refusal("{\"version\": 1e999}"),
            "out.txt: a number is out of range; give the whole file that nccl-tests -J wrote");
}

TEST(NcclTests, NoMessageRepeatsTheEnvironment) {
  std::string broken = json_log;
  broken.replace(broken.find("\"results\":["), 11, "\"results\":{");
  EXPECT_EQ(log_refusal(broken).find("SECRET"), std::string::npos);
  const NcclTestsRun run = only_run(json_log, "out.json");
  for (const NcclTestsMistake& mistake : run.mistakes) {
    EXPECT_EQ(mistake.reason.find("SECRET"), std::string::npos);
  }
}

TEST(NcclTests, OtherTextsAreUserErrors) {
  EXPECT_EQ(log_refusal(""), "out.txt: has no rows of nccl-tests; give the output of one of its programs");
  EXPECT_EQ(log_refusal("hello\n"), "out.txt: has no rows of nccl-tests; give the output of one of its programs");
  EXPECT_EQ(log_refusal("  64  2  float  sum  -1  17.1  0.0  0.0  0  16.9  0.0  0.0  0\n"),
            "out.txt: has no lines of ranks and devices; give the whole output");
  EXPECT_EQ(log_refusal(log_head + "  64  2  float  sum  -1  17.1  0.0  0.0  0  16.9  0.0  0.0  0\n", std::nullopt),
            "out.txt: does not name its collective; name the file after the collective, as in all_gather.txt");
}

TEST(NcclTests, AnImpossibleTimeIsAMistakeInItsRow) {
  const auto row = [](const char* bytes, const char* time) {
    return fmt::format("  {}  2  float  sum  -1  {}  0.0  0.0  0  16.9  0.0  0.0  0\n", bytes, time);
  };
  const NcclTestsRun run =
      only_run(log_head + row("64", "1e300") + row("64", "1e-7") + row("140737488355328", "17.1") + row("64", "17.1"),
               "out.txt", "all_gather");
  EXPECT_EQ(run.rows.size(), 1U);
  ASSERT_EQ(run.mistakes.size(), 3U);
  EXPECT_EQ(run.mistakes[0].reason, "the time is 1e+300 us, outside 1e-06 to 1e+11 us");
  EXPECT_EQ(run.mistakes[1].reason, "the time is 1e-07 us, outside 1e-06 to 1e+11 us");
  EXPECT_EQ(run.mistakes[2].reason, "the size is 140737488355328 bytes, above 70368744177664");
}

// Users have logs of launchers, of several programs and of old versions.

std::string device_lines(int ranks, int per_node = 8) {
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    text += fmt::format("#  Rank {:2} Group  0 Pid   {} on {:>10} device {:2} [0x0a] NVIDIA H100\n", rank, 1000 + rank,
                        fmt::format("{}", 7100 + rank / per_node), rank % per_node);
  }
  return text;
}

/// Returns the output of one program: rows of two sizes.
std::string program(std::string_view name, int ranks) {
  return fmt::format(
      "# Collective test starting: {}_perf\n# nThread 1 nGpus 1 minBytes 1024 maxBytes 2048\n#\n# Using devices\n{}#\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
      "#wrong\n"
      "        1024           256     float    none      -1     25.5    0.04    0.04      0    25.25    0.04    0.04   "
      "   0\n"
      "        2048           512     float    none      -1     26.5    0.08    0.07      0    26.25    0.08    0.07   "
      "   0\n"
      "# Out of bounds values : 0 OK\n",
      name, device_lines(ranks));
}

/// Returns the text with a prefix before every line.
std::string prefixed(std::string_view prefix, const std::string& text) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at) + 1;
    out += std::string(prefix) + text.substr(at, end - at);
    at = end;
  }
  return out;
}

TEST(NcclTests, HostsMayHaveNumbersAsNames) {
  const NcclTestsRun run = only_run(program("all_reduce", 16), "out.txt");
  EXPECT_EQ(run.ranks, 16);
  EXPECT_EQ(run.nodes, 2);
}

TEST(NcclTests, RemovesThePrefixesOfLaunchers) {
  for (const char* const prefix :
       {"[1,0]<stdout>:", "[1,0]<stdout>: ", " 0: ", "[0] ", "[0]", "node-a: ", "[pod/nccl-launcher-x7/mpi] ",
        "2026-11-25T12:00:00.123Z ", "2026-11-25 12:00:00.123 ", "[2026-11-25 12:00:00] 0: "}) {
    const NcclTestsRun run = only_run(prefixed(prefix, program("all_gather", 8)), "out.txt");
    EXPECT_EQ(run.op, "all_gather") << prefix;
    EXPECT_EQ(run.ranks, 8) << prefix;
    ASSERT_EQ(run.rows.size(), 2U) << prefix;
    EXPECT_EQ(run.rows[1].time_us, 26.5) << prefix;
    EXPECT_TRUE(run.mistakes.empty()) << prefix;
  }
}

TEST(NcclTests, RemovesAPrefixInsideARowToo) {
  const NcclTestsRun run = only_run(
      "[0]# Collective test starting: all_gather_perf\n" + prefixed("[0]", device_lines(8)) +
          "[0]        1024            32     float    none      -1[0]       25    0.04    0.04      0[0]    25.25    "
          "0.04    0.04      0\n",
      "out.txt");
  ASSERT_EQ(run.rows.size(), 1U);
  EXPECT_EQ(run.rows[0].time_us, 25.0);
  EXPECT_EQ(run.rows[0].in_place_time_us, 25.25);
}

TEST(NcclTests, ALogMayHoldSeveralPrograms) {
  const std::vector<NcclTestsRun> runs =
      read_nccl_tests("+ srun all_gather_perf\n" + program("all_gather", 8) +
                          "01node:4242:4242 [0] NCCL INFO Channel 00\n" + program("reduce_scatter", 16),
                      "out.txt");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].op, "all_gather");
  EXPECT_EQ(runs[0].ranks, 8);
  EXPECT_EQ(runs[0].rows.size(), 2U);
  EXPECT_TRUE(runs[0].mistakes.empty());
  EXPECT_EQ(runs[1].op, "reduce_scatter");
  EXPECT_EQ(runs[1].ranks, 16);
  EXPECT_EQ(runs[1].rows.size(), 2U);
}

/// Alternates the lines of two texts, as two processes do that write at the same time.
std::string interleaved(const std::string& first, const std::string& second) {
  std::string text;
  std::size_t a = 0;
  std::size_t b = 0;
  while (a < first.size() || b < second.size()) {
    for (const auto& [from, at] : {std::pair<const std::string*, std::size_t*>{&first, &a}, {&second, &b}}) {
      const std::size_t end = std::min(from->find('\n', *at), from->size() - 1) + 1;
      text += from->substr(*at, end - *at);
      *at = std::min(end, from->size());
    }
  }
  return text;
}

TEST(NcclTests, LabelsDistinguishLinesOfSeveralProcesses) {
  const std::vector<NcclTestsRun> runs = read_nccl_tests(
      interleaved(prefixed("0: ", program("all_gather", 8)), prefixed("1: ", program("reduce_scatter", 16))),
      "out.txt");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].op, "all_gather");
  EXPECT_EQ(runs[0].ranks, 8);
  EXPECT_EQ(runs[0].rows.size(), 2U);
  EXPECT_EQ(runs[1].op, "reduce_scatter");
  EXPECT_EQ(runs[1].ranks, 16);
  EXPECT_EQ(runs[1].rows.size(), 2U);
}

TEST(NcclTests, IgnoresTheWordsOfALoggerBeforeALine) {
  for (const char* const prefix : {"Nov 25 12:00:00 ", "INFO worker-3 | ", "(WorkerProc pid=12, ip=10.0.0.1) "}) {
    const NcclTestsRun run = only_run(prefixed(prefix, program("all_gather", 8)), "out.txt");
    EXPECT_EQ(run.op, "all_gather") << prefix;
    EXPECT_EQ(run.ranks, 8) << prefix;
    EXPECT_EQ(run.rows.size(), 2U) << prefix;
  }
}

TEST(NcclTests, AnAttemptThatFailedBeforeItsRowsAddsNoDevices) {
  const std::string failed_attempt =
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor)\n# Using devices\n" + device_lines(8);
  const NcclTestsRun run =
      only_run(failed_attempt + log_head + "  64  2  float  sum  -1  17.1  0.0  0.0  0  16.9  0.0  0.0  0\n", "out.txt",
               "all_reduce");
  EXPECT_EQ(run.ranks, 4);
}

TEST(NcclTests, SeveralUnnamedRunsAreRefused) {
  const std::string table = log_head + "  64  2  float  sum  -1  17.1  0.0  0.0  0  16.9  0.0  0.0  0\n";
  EXPECT_EQ(log_refusal(table + table),
            "out.txt: has 2 runs that do not name their collective; split it into one file per run, each "
            "named after its collective, as in all_gather.txt");
}

TEST(NcclTests, OldVersionsHaveNoRootAndARoundingError) {
  const std::string devices =
      "#   Rank  0 Pid 1000 on node-a device  0 [0x00] A100\n"
      "#   Rank  1 Pid 1001 on node-a device  1 [0x01] A100\n";
  const NcclTestsRun sums = only_run(
      devices +
          "        1024           256   float     sum    30.01    0.03    0.06  1e-07    30.02    0.03    0.06  "
          "1e-07\n",
      "out.txt", "all_reduce");
  EXPECT_EQ(sums.ranks, 2);
  ASSERT_EQ(sums.rows.size(), 1U);
  EXPECT_EQ(sums.rows[0].time_us, 30.01);
  EXPECT_EQ(sums.rows[0].in_place_time_us, 30.02);
  const NcclTestsRun gathers = only_run(
      devices + "        1024           256   float    30.01    0.03    0.06  0e+00    30.02    0.03    0.06  0e+00\n",
      "out.txt", "all_gather");
  ASSERT_EQ(gathers.rows.size(), 1U);
  EXPECT_EQ(gathers.rows[0].time_us, 30.01);
}

TEST(NcclTests, ProcessesThatRanAloneAreRefused) {
  std::string lone_processes = "# Collective test starting: all_reduce_perf\n# Using devices\n";
  for (int i = 0; i < 8; ++i) {
    lone_processes += fmt::format("#  Rank  0 Group  0 Pid {} on node-a device  0 [0x0f] H100\n", 2000 + i);
  }
  EXPECT_EQ(log_refusal(lone_processes + "  64  2  float  sum  -1  17.1  0.0  0.0  0  16.9  0.0  0.0  0\n"),
            "out.txt: names rank 0 8 times, so every process ran alone and nothing was sent between them; build "
            "nccl-tests with MPI=1, or run one process with -g");
  std::string named_twice = "# Using devices\n";
  for (const int rank : {0, 1, 1}) {
    named_twice += fmt::format("#  Rank  {} Group  0 Pid 2000 on node-a device  0 [0x0f] H100\n", rank);
  }
  EXPECT_EQ(log_refusal(named_twice + "  64  2  float  sum  -1  17.1  0.0  0.0  0  16.9  0.0  0.0  0\n"),
            "out.txt: names rank 1 2 times, so every process ran alone and nothing was sent between them; build "
            "nccl-tests with MPI=1, or run one process with -g");
  EXPECT_EQ(log_refusal(program("all_reduce", 1) + program("all_reduce", 1)),
            "out.txt: has 2 runs of one rank each, so every process ran alone; build nccl-tests with MPI=1, or run one "
            "process with -g");
}

TEST(NcclTests, RanksMissingFromTheListAreCountedAndReported) {
  std::string text = program("all_reduce", 16);
  const std::size_t cut = text.find("#  Rank  5");
  const std::size_t last = text.find("#  Rank 15");
  text.replace(cut, last - cut, "#  ...\n");
  const NcclTestsRun run = only_run(text, "out.txt");
  EXPECT_EQ(run.ranks, 16);
  EXPECT_EQ(run.nodes, 2);
  ASSERT_EQ(run.notes.size(), 1U);
  EXPECT_EQ(run.notes[0], "the list of ranks is cut off; assuming 16 ranks on 2 nodes");
}

TEST(NcclTests, ConcurrentGroupsCountTheRanksOfOneGroup) {
  std::string text;
  for (int rank = 0; rank < 8; ++rank) {
    text += fmt::format("#  Rank {} Group {} Pid 1 on node-a device {} [0x0a] H100\n", rank, rank % 2, rank);
  }
  const NcclTestsRun run =
      only_run(text + "  64  2  float  sum  -1  17.1  0.0  0.0  0  16.9  0.0  0.0  0\n", "out.txt", "all_reduce");
  EXPECT_EQ(run.ranks, 4);
  EXPECT_EQ(run.groups, 2);
}

TEST(NcclTests, CpuTimesAreRefused) {
  std::string text = program("all_reduce", 8);
  text.replace(text.find("     time"), 9, "  cputime");
  EXPECT_EQ(log_refusal(text),
            "out.txt: the times are CPU times, which cover only the launch (-C 1); run nccl-tests without -C 1");
}

TEST(NcclTests, TimestampsAfterARowAreNotColumns) {
  const NcclTestsRun run =
      only_run(log_head + "  64  2  float  sum  -1  17.1  0.0  0.0  0  16.9  0.0  0.0  0  2026-11-25 12:00:00\n",
               "out.txt", "all_gather");
  ASSERT_EQ(run.rows.size(), 1U);
  EXPECT_EQ(run.rows[0].time_us, 17.1);
}

TEST(NcclTests, JsonListsOnlyTheFirstDeviceOfAProcess) {
  const NcclTestsRun run = only_run(
      R"({"args":["all_gather_perf"],"config":{"nthreads":1,"ngpus":4,"devices":[{"rank":0,"hostname":"a","device":0},
      {"rank":4,"hostname":"b","device":0}]},"results":[{"size":1024,"out_of_place":{"time":9.5},"in_place":null}]})",
      "out.json");
  EXPECT_EQ(run.ranks, 8);
  EXPECT_EQ(run.nodes, 2);
}

TEST(NcclTests, MoreRanksThanAnyMachineHasAreRefused) {
  const auto log_of = [](const std::string& threads, const std::string& gpus) {
    return R"({"args":["all_gather_perf"],"config":{"nthreads":)" + threads + R"(,"ngpus":)" + gpus +
           R"(,"devices":[{"rank":0},{"rank":1}]},"results":[{"size":1024,"out_of_place":{"time":9.5}}]})";
  };
  EXPECT_EQ(only_run(log_of("1024", "512"), "out.json").ranks, 1048576);
  EXPECT_EQ(log_refusal(log_of("65536", "65536")),
            "out.txt: config: 2 devices x nthreads 65536 x ngpus 65536 are more than 1048576 ranks; give the whole "
            "file that nccl-tests -J wrote");
  EXPECT_NE(log_refusal(log_of("1e18", "1e300")).find("nthreads 1e+18"), std::string::npos);
  EXPECT_EQ(only_run(log_of("-3", "0.5"), "out.json").ranks, 2);
}

TEST(NcclTests, HostsAndVersionsAreKeptAndWrongResultsMarked) {
  const std::string rows =
      "     1048576        262144     float     sum      -1    17.13   61.21   53.56      0    16.90   62.05   54.29   "
      "   0\n"
      "     2097152        524288     float     sum      -1    27.13   61.21   53.56      5    26.90   62.05   54.29   "
      "   0\n";
  const NcclTestsRun run = only_run(
      "# nccl-tests version 2.17.6 nccl-headers=22803 nccl-library=22809\n" + log_head + rows, "o.txt", "all_reduce");
  EXPECT_EQ(run.hosts, (std::vector<std::string>{"node-a", "node-b"}));
  EXPECT_EQ(run.nccl_version, "2.28.9");
  ASSERT_EQ(run.mistakes.size(), 1U);
  EXPECT_TRUE(run.mistakes[0].is_wrong_result);
  EXPECT_EQ(only_run(log_head + rows, "o.txt", "all_reduce").nccl_version, "");
  EXPECT_EQ(only_run("# nccl-tests version 2.17.6 nccl-headers=1 nccl-library=x\n" + log_head + rows, "o", "all_reduce")
                .nccl_version,
            "");
}

// One log holds two programs, each with its own version line.
TEST(NcclTests, VersionsBelongToTheRunAfterThem) {
  const std::string row =
      "     1048576        262144     float     sum      -1    17.13   61.21   53.56      0    16.90   62.05   54.29   "
      "   0\n";
  const auto program = [&](const std::string& code, const std::string& name) {
    return "# nccl-tests version 2.17.6 nccl-headers=22803 nccl-library=" + code +
           "\n# Collective test starting: " + name + "_perf\n" + log_head + row;
  };
  const std::vector<NcclTestsRun> runs =
      read_nccl_tests(program("22809", "all_gather") + program("22902", "all_reduce"), "o.txt");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].nccl_version, "2.28.9");
  EXPECT_EQ(runs[1].nccl_version, "2.29.2");
  EXPECT_EQ(runs[1].op, "all_reduce");
}

TEST(NcclTests, TheNameOfAFileMayNameTheCollective) {
  EXPECT_EQ(nccl_program_in("allgather-2.txt"), "all_gather");
  EXPECT_EQ(nccl_program_in("reduce_scatter.log"), "reduce_scatter");
  EXPECT_EQ(nccl_program_in("all_gather_and_allreduce.txt"), std::nullopt);
  EXPECT_EQ(nccl_program_in("out.txt"), std::nullopt);
}

}  // namespace
}  // namespace commfuse
