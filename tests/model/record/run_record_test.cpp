// SPDX-License-Identifier: Apache-2.0
// Tests that a record reads back as it was written, and that messages about a wrong record name the place of the
// mistake.
#include "model/record/run_record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <string>

#include "model/config_error.h"
#include "tests/own_folder.h"
#include "tests/refusal.h"
#include "tests/texts.h"

namespace commfuse {
namespace {

using test::replaced;

using namespace std::chrono_literals;

RunRecord example_record() {
  RunRecord record{.executor = "cpu",
                   .compute = "emulated",
                   .links = "emulated",
                   .dilation = 2.5,
                   .version = "0.1.0",
                   .git_revision = "abc",
                   .environment = {.cpu = "A \"quoted\" CPU", .cores = 2, .os = "Linux 6", .compiler = "GNU 12"},
                   .settings = {{"seq", "8K"}, {"strategy.name", "all"}},
                   .seed = std::numeric_limits<std::uint64_t>::max(),
                   .warm_up = 5,
                   .noise = {.stated = 1ms, .samples = {1001us, 1002us}}};
  record.environment.variables = {{"CUDA_VISIBLE_DEVICES", "0"}, {"NCCL_ALGO", "^NVLS"}};
  record.environment.devices = {{.when = "before",
                                 .rank = 1,
                                 .gpu = "GPU-1",
                                 .clock_mhz = 1980,
                                 .memory_clock_mhz = 2619,
                                 .power_w = 112.5,
                                 .temperature_c = 41,
                                 .throttle_reasons = "none"},
                                {.when = "after", .rank = 1, .gpu = "GPU-1"}};
  record.runs.push_back({.strategy = "sliced",
                         .options = {{"slices", "4"}},
                         .parameters = "k=4",
                         .schedule_sha256 = "00ff",
                         .makespans = {Duration(123456789012345), 1ms},
                         .spans = {{0, OpId{3}, Instant(1us), Instant(2us)}, {1, OpId{3}, Instant(1us), Instant(1us)}},
                         .levels = {{"T3", 10, 0, 0.25}}});
  record.runs.push_back({.strategy = "serial",
                         .status = RunStatus::failed,
                         .message = "rank 0 waits",
                         .levels = {{"T3", 10, 10, std::numeric_limits<double>::infinity()}}});
  record.micro_benchmarks.push_back({.op = "product", .dtype = "bf16", .m = 4, .n = 5, .k = 6, .samples = {1ms, 2ms}});
  record.micro_benchmarks.push_back(
      {.op = "exchange", .beside = "product", .dtype = "fp32", .bytes = 4096, .ranks = 2, .samples = {3us}});
  record.micro_benchmarks.push_back(
      {.op = "transfer", .dtype = "bf16", .bytes = 512, .ranks = 3, .rank = 0, .peer = 2, .samples = {4us}});
  record.micro_benchmarks.push_back({.op = "all_gather", .ranks = 3, .in_place = true, .samples = {5us}});
  return record;
}

std::string record_refusal(const std::string& text) {
  return test::refusal_of([&] { parse_run_record(text, "r.json"); });
}

/// Returns the message about the example with a piece of its text replaced.
std::string record_refusal_with(const std::string& old, const std::string& now) {
  return record_refusal(replaced(to_json(example_record()), old, now));
}

TEST(RunRecord, IsReadBackAsItWasWritten) {
  EXPECT_EQ(parse_run_record(to_json(example_record()), "r.json"), example_record());
  EXPECT_EQ(parse_run_record(to_json({}), "r.json"), RunRecord{});
}

TEST(RunRecord, IsReadBackFromAFile) {
  const OwnFolder folder;
  std::ofstream("r.json") << to_json(example_record());
  EXPECT_EQ(load_run_record("r.json"), example_record());
}

TEST(RunRecord, IgnoresKeysOfALaterVersion) {
  EXPECT_EQ(parse_run_record(replaced(to_json(example_record()), "\"executor\"", "\"later\":1,\"executor\""), "r.json"),
            example_record());
}

constexpr auto record_again = "; record it again with --out of commfuse-validate run, bench or links";

TEST(RunRecord, ControlCharactersOfItsTextAreEscaped) {
  RunRecord hostile = example_record();
  hostile.runs.back().message = "two\n\tlines \x1b[31m";
  hostile.settings.front().first = "seq\u202e";
  const RunRecord parsed = parse_run_record(to_json(hostile), "r.json");
  EXPECT_EQ(parsed.runs.back().message, "two\n\tlines \\x1b[31m");
  EXPECT_EQ(parsed.settings.front().first, "seq\\xe2\\x80\\xae");
}

TEST(RunRecord, RefusesInvalidJsonWithLineAndColumn) {
  EXPECT_EQ(record_refusal("{\n  \"schema\": oops}"), std::string("r.json:2:13: not valid JSON") + record_again);
  EXPECT_EQ(record_refusal(""), std::string("r.json:1:1: not valid JSON") + record_again);
  const std::string text = to_json(example_record());
  EXPECT_NE(record_refusal(text.substr(0, text.size() / 2)), "accepted");  // The file is half-written.
}

TEST(RunRecord, RefusesInvalidRecordsWithTheirKey) {
  EXPECT_EQ(record_refusal("[]"), std::string("r.json: it is not an object") + record_again);
  EXPECT_EQ(record_refusal("{}"), std::string("r.json: schema is missing") + record_again);
  EXPECT_EQ(
      record_refusal_with("commfuse.record/1", "commfuse.result/1"),
      "r.json: schema is 'commfuse.result/1', but 'commfuse.record/1' is required here; give a file of that kind");
  EXPECT_EQ(record_refusal_with("\"cores\"", "\"cpus\""),
            std::string("r.json: environment.cores is missing") + record_again);
  EXPECT_EQ(record_refusal_with("[1001000000,", "[0.5,"),
            std::string("r.json: noise.samples_ps[0]: it is not a whole number") + record_again);
  EXPECT_EQ(record_refusal_with("[1001000000,", "[-1,"),
            std::string("r.json: noise.samples_ps[0]: it is out of range") + record_again);
  EXPECT_EQ(record_refusal_with("\"dilation\": 2.5", "\"dilation\": 0"),
            std::string("r.json: dilation: it is out of range") + record_again);
  EXPECT_EQ(record_refusal_with("\"status\":\"failed\"", "\"status\":\"perhaps\""),
            std::string("r.json: runs[1].status: 'perhaps' is not done, wrong or failed") + record_again);
  EXPECT_EQ(record_refusal_with("[0,3,1000000,2000000]", "[0,3,1000000]"),
            std::string("r.json: runs[0].spans_ps[0]: a span is [rank, op, start, end]") + record_again);
  EXPECT_EQ(record_refusal_with("[0,3,1000000,2000000]", "[0,3,3000000,2000000]"),
            std::string("r.json: runs[0].spans_ps[0]: it ends before it starts") + record_again);
  EXPECT_EQ(record_refusal_with("[0,3,1000000,2000000]", "[4294967296,3,1000000,2000000]"),
            std::string("r.json: runs[0].spans_ps[0][0]: it is out of range") + record_again);
  EXPECT_EQ(record_refusal_with("\"samples_ps\":[1000000000,2000000000]", "\"samples_ps\":[]"),
            std::string("r.json: micro_benchmarks[0].samples_ps: it has no sample") + record_again);
  EXPECT_EQ(record_refusal_with("\"peer\":2", "\"peer\":3"),
            std::string("r.json: micro_benchmarks[2].peer: it is out of range") + record_again);
  EXPECT_EQ(record_refusal_with("\"seed\": 18446744073709551615", "\"seed\": -1"),
            std::string("r.json: seed: it is not a whole number of at least 0") + record_again);
}

TEST(RunRecord, RanksAndTimesBeyondAnyMachineAreRefused) {
  const std::string out_of_range = "it is out of range";
  for (const char* ranks : {"0", "1048577", "2147483647", "4611686018427387904"}) {
    EXPECT_EQ(record_refusal_with("\"ranks\":3", fmt::format("\"ranks\":{}", ranks)),
              "r.json: micro_benchmarks[2].ranks: " + out_of_range + record_again);
  }
  EXPECT_EQ(record_refusal_with("\"ranks\":3", "\"ranks\":1048576"), "accepted");
  EXPECT_EQ(record_refusal_with("[1001000000,", "[100000000000000001,"),
            "r.json: noise.samples_ps[0]: " + out_of_range + record_again);
}

TEST(RunRecord, ARunThatIsDoneHasAMakespan) {
  EXPECT_EQ(record_refusal_with("\"makespans_ps\":[123456789012345,1000000000]", "\"makespans_ps\":[]"),
            std::string("r.json: runs[0].makespans_ps: it has no sample, but the status is done") + record_again);
}

TEST(RunRecord, RefusesAMissingFile) {
  try {
    load_run_record("nowhere.json");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "nowhere.json: no such file; write it with --out of commfuse-validate run, bench or links");
  }
}

}  // namespace
}  // namespace commfuse
