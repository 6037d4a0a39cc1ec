// SPDX-License-Identifier: Apache-2.0
#include "model/formats/nccl_tests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "model/config_error.h"

namespace commfuse {
namespace {

const std::string head =
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

std::string why(const std::string& text, const std::optional<std::string>& op = "all_gather") {
  try {
    read_nccl_tests(text, "out.txt", op);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(NcclTests, text_gives_sizes_times_ranks_and_nodes) {
  const NcclTestsRun run = read_nccl_tests(head +
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

TEST(NcclTests, newer_text_names_its_program) {
  const NcclTestsRun run = read_nccl_tests("# Collective test starting: reduce_scatter_perf\n" + head +
                                               "  64  2  float  sum  -1  17.1  0.0  0.0  0  16.9  0.0  0.0  0\n",
                                           "out.txt");
  EXPECT_EQ(run.op, "reduce_scatter");
}

TEST(NcclTests, times_of_iterations_stand_between_the_columns) {
  const NcclTestsRun run = read_nccl_tests(
      head + "  64  2  float  sum  -1  17.1  0.0  0.0  0  16  20  19  3.1  16.9  0.0  0.0  0  15  20  19  3.0\n",
      "out.txt", "all_gather");
  ASSERT_EQ(run.rows.size(), 1U);
  EXPECT_EQ(run.rows[0].time_us, 17.1);
  EXPECT_EQ(run.rows[0].in_place_time_us, 16.9);
}

TEST(NcclTests, bad_rows_are_named_and_the_rest_is_read) {
  const NcclTestsRun run = read_nccl_tests(head +
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

const std::string json =
    R"({"version":2,"start_time":"2026-01-01 00:00:00","args":["/opt/bin/all_gather_perf","-J","x"],
"env":["SECRET_TOKEN=abc"],"nccl_version":22809,
"config":{"devices":[{"rank":0,"hostname":"node-a"},{"rank":1,"hostname":"node-a"}]},
"results":[
{"size":1024,"out_of_place":{"time":9.5,"alg_bw":0.1,"bus_bw":0.1,"nwrong":0.0},"in_place":{"time":9.25,"nwrong":null}},
{"size":2048,"out_of_place":{"time":"nan","alg_bw":0.1,"bus_bw":0.1,"nwrong":0.0},"in_place":null},
{"size":4096,"out_of_place":{"time":9.75,"nwrong":3.0},"in_place":null},
{"size":8192,"out_of_place":{"time":10.5,"nwrong":null},"in_place":null},
{"size":"x"}]})";

TEST(NcclTests, json_gives_the_same_and_its_bad_rows_by_number) {
  const NcclTestsRun run = read_nccl_tests(json, "out.json");
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

TEST(NcclTests, a_host_that_is_no_name_counts_as_one_without) {
  std::string odd = json;
  odd.replace(odd.find("\"hostname\":\"node-a\""), 19, "\"hostname\":7");
  EXPECT_EQ(read_nccl_tests(odd, "out.json").ranks, 2);
}

TEST(NcclTests, broken_json_is_refused_with_its_place) {
  constexpr auto no_json = ": is not JSON; give the whole file that nccl-tests -J wrote";
  EXPECT_EQ(why("{\"results\": [\n  {x"), std::string("out.txt:2:4") + no_json);
  EXPECT_EQ(why("{\"results\": [\n"), std::string("out.txt:2:1") + no_json);
  EXPECT_EQ(why("{\"version\": 1e999}"),
            "out.txt: a number is out of range; give the whole file that nccl-tests -J wrote");
}

TEST(NcclTests, no_message_repeats_the_environment) {
  std::string broken = json;
  broken.replace(broken.find("\"results\":["), 11, "\"results\":{");
  EXPECT_EQ(why(broken).find("SECRET"), std::string::npos);
  const NcclTestsRun run = read_nccl_tests(json, "out.json");
  for (const NcclTestsMistake& mistake : run.mistakes) {
    EXPECT_EQ(mistake.reason.find("SECRET"), std::string::npos);
  }
}

TEST(NcclTests, other_texts_are_the_users_mistake) {
  EXPECT_EQ(why(""), "out.txt: has no rows of nccl-tests; give what one of its programs printed");
  EXPECT_EQ(why("hello\n"), "out.txt: has no rows of nccl-tests; give what one of its programs printed");
  EXPECT_EQ(why("  64  2  float  sum  -1  17.1  0.0  0.0  0  16.9  0.0  0.0  0\n"),
            "out.txt: has no lines of ranks and devices; give the whole output");
  EXPECT_EQ(why(head + "  64  2  float  sum  -1  17.1  0.0  0.0  0  16.9  0.0  0.0  0\n", std::nullopt),
            "out.txt: does not say which collective was timed; name it, as in all_gather");
}

TEST(NcclTests, a_time_that_no_clock_measures_is_a_mistake_of_its_row) {
  const auto row = [](const char* bytes, const char* time) {
    return fmt::format("  {}  2  float  sum  -1  {}  0.0  0.0  0  16.9  0.0  0.0  0\n", bytes, time);
  };
  const NcclTestsRun run = read_nccl_tests(
      head + row("64", "1e300") + row("64", "1e-7") + row("140737488355328", "17.1") + row("64", "17.1"), "out.txt",
      "all_gather");
  EXPECT_EQ(run.rows.size(), 1U);
  ASSERT_EQ(run.mistakes.size(), 3U);
  EXPECT_EQ(run.mistakes[0].reason, "the time is 1e+300 us, outside 1e-06 to 1e+11 us");
  EXPECT_EQ(run.mistakes[1].reason, "the time is 1e-07 us, outside 1e-06 to 1e+11 us");
  EXPECT_EQ(run.mistakes[2].reason, "the size is 140737488355328 bytes, above 70368744177664");
}

}  // namespace
}  // namespace commfuse
