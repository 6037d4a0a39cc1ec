// SPDX-License-Identifier: Apache-2.0
// Tests traces of PyTorch's profiler as measurements, with a trace that is small enough to read.
#include "sim/calibrate/kineto.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <string>

#include "model/config_error.h"
#include "model/traces/kineto_events.h"
#include "sim/calibrate/observations.h"
#include "tests/own_folder.h"
#include "tests/sim/message_of.h"

namespace commfuse::calibrate {
namespace {

using std::chrono::microseconds;

/// A trace with four GEMMs (alone, concurrent with a collective, split into two kernels, without sizes), four
/// collectives and an unused event.
const std::string trace = R"({
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 4},
  "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 1.0, "dur": 5.0,
   "args": {"External id": 1, "Input Dims": [[4096, 8192], [8192, 1024]],
            "Input type": ["c10::BFloat16", "c10::BFloat16"]}},
  {"ph": "X", "cat": "kernel", "name": "nvjet_tst_128x256", "pid": 0, "tid": 7, "ts": 10.0, "dur": 100.5,
   "args": {"External id": 1, "device": 0, "stream": 7}},
  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL", "pid": 0, "tid": 20, "ts": 200.0, "dur": 90.0,
   "args": {"External id": 2, "Collective name": "_allgather_base", "In msg nelems": 1048576,
            "Out msg nelems": 4194304, "Group size": 4, "dtype": "BFloat16"}},
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 250.0, "dur": 120.0, "args": {"External id": 3}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 9, "tid": 9, "ts": 220.0, "dur": 5.0,
   "args": {"External id": 3, "Input Dims": [[1024], [4096, 8192], [8192, 1024]],
            "Input type": ["float", "c10::BFloat16", "c10::BFloat16"]}},
  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL", "pid": 0, "tid": 20, "ts": 500.0, "dur": 70.0,
   "args": {"Collective name": "_allgather_base", "In msg nelems": 1048576, "Out msg nelems": 4194304,
            "Group size": 4, "dtype": "BFloat16"}},
  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_ReduceScatter", "pid": 0, "tid": 20, "ts": 600.0, "dur": 80.0,
   "args": {"Collective name": "_reduce_scatter_base", "In msg nelems": 4194304, "Out msg nelems": 1048576,
            "Group size": 4, "dtype": "BFloat16"}},
  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Broadcast", "pid": 0, "tid": 20, "ts": 700.0, "dur": 8.0,
   "args": {"Collective name": "broadcast", "In msg nelems": 4, "Out msg nelems": 4, "Group size": 4, "dtype": "Float"}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 9, "tid": 9, "ts": 800.0, "dur": 5.0,
   "args": {"External id": 4, "Input Dims": [[1024], [128, 256], [256, 1024]],
            "Input type": ["c10::Half", "c10::Half", "c10::Half"]}},
  {"ph": "X", "cat": "kernel", "name": "splitK", "pid": 0, "tid": 7, "ts": 900.0, "dur": 20.0, "args": {"External id": 4}},
  {"ph": "X", "cat": "kernel", "name": "reduce", "pid": 0, "tid": 7, "ts": 921.0, "dur": 5.0, "args": {"External id": 4}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 1.0, "dur": 5.0, "args": {"External id": 5}},
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 950.0, "dur": 9.0, "args": {"External id": 5}},
  {"ph": "i", "name": "Iteration Start", "pid": "Traces", "tid": "Trace", "ts": 1.0, "s": "g"}
  ],
  "traceName": "a.json"
})";

void expect_profile_of_trace(const Profile& profile) {
  ASSERT_EQ(profile.gemms.size(), 2U);
  EXPECT_EQ(profile.gemms[0].size.m, 4096);
  EXPECT_EQ(profile.gemms[0].size.n, 1024);
  EXPECT_EQ(profile.gemms[0].size.k, 8192);
  EXPECT_EQ(profile.gemms[0].size.dtype, DType::bf16);
  EXPECT_EQ(profile.gemms[0].time, Duration{100'500'000});
  EXPECT_EQ(profile.gemms[1].size.m, 128);
  EXPECT_EQ(profile.gemms[1].size.dtype, DType::fp16);
  EXPECT_EQ(profile.gemms[1].time, microseconds(25));  // sum of its two kernels
  ASSERT_EQ(profile.collectives.size(), 2U);
  EXPECT_EQ(profile.collectives[0].op, "all_gather");
  EXPECT_EQ(profile.collectives[0].ranks, 4);
  EXPECT_EQ(profile.collectives[0].bytes, 8'388'608);  // Counts all bytes received, as nccl-tests does.
  EXPECT_EQ(profile.collectives[0].time_us, 70.0);     // The longer all-gather waited for another rank.
  EXPECT_EQ(profile.collectives[1].op, "reduce_scatter");
  EXPECT_EQ(profile.collectives[1].bytes, 8'388'608);
  EXPECT_EQ(profile.skipped,
            (std::map<std::string, std::size_t>{{"broadcast, which the model does not support", 1},
                                                {"GEMMs concurrent with communication, which slows them", 1},
                                                {"GEMMs without sizes: profile with record_shapes=True", 1}}));
}

TEST(Kineto, ReadsSizesOfGemmsAndCollectives) {
  const OwnFolder folder;
  std::ofstream("a.json") << trace;
  EXPECT_TRUE(is_kineto_trace("a.json"));
  expect_profile_of_trace(read_kineto("a.json"));
}

TEST(Kineto, SkipsAByteOrderMark) {
  const OwnFolder folder;
  std::ofstream("a.json") << "\xef\xbb\xbf" << trace;
  EXPECT_TRUE(is_kineto_trace("a.json"));
  expect_profile_of_trace(read_kineto("a.json"));
}

TEST(Kineto, ReadsABareListOfEvents) {
  const OwnFolder folder;
  const std::size_t list = trace.find('[', trace.find("traceEvents"));
  const std::string events = trace.substr(list, trace.rfind(']') + 1 - list);
  std::ofstream("a.json") << " \n" << events;
  EXPECT_TRUE(is_kineto_trace("a.json"));
  expect_profile_of_trace(read_kineto("a.json"));
  std::ofstream("cut.json") << events.substr(0, events.size() - 10);
  EXPECT_THROW(read_kineto("cut.json"), ConfigError);
  for (const char* other : {"[]", "[1, 2]", "[{\"name\": \"ph\"}]", "[", ""}) {
    std::ofstream("other.json") << other;
    EXPECT_FALSE(is_kineto_trace("other.json")) << other;
  }
}

TEST(Kineto, ReadsGzippedTraces) {
  const OwnFolder folder;
  gzFile file = gzopen("a.json.gz", "wb");
  gzwrite(file, trace.data(), static_cast<unsigned>(trace.size()));
  gzclose(file);
  EXPECT_TRUE(is_kineto_trace("a.json.gz"));
  expect_profile_of_trace(read_kineto("a.json.gz"));
}

TEST(Kineto, CalibrateReadsTraces) {
  const OwnFolder folder;
  std::ofstream("a.json") << trace;
  const Observations observations = read_observations({"a.json"}, std::nullopt);
  EXPECT_EQ(observations.gemm[static_cast<std::size_t>(DType::bf16)].rows.size(), 1U);
  EXPECT_EQ(observations.gemm[static_cast<std::size_t>(DType::fp16)].source, "a.json");
  ASSERT_EQ(observations.collectives.rows.size(), 2U);
  EXPECT_EQ(observations.collectives.rows[0].row.total, Bytes{8'388'608});
  EXPECT_EQ(observations.skipped.size(), 3U);
  EXPECT_TRUE(observations.faults.empty());
}

TEST(Kineto, IgnoresASizeThatIsNotAWholeNumber) {
  const OwnFolder folder;
  for (const char* size : {"1e80", "0.5", "18446744073709551615", "null"}) {
    std::string other = trace;
    other.replace(other.find("4096, 8192"), 4, size);
    std::ofstream("a.json") << other;
    const Profile profile = read_kineto("a.json");
    EXPECT_EQ(profile.skipped.count("GEMMs whose sizes are not two matrices"), 1U) << size;
    EXPECT_EQ(profile.gemms.size(), 1U) << size;
  }
}

TEST(Kineto, SkipsAGemmWithAnImpossibleTime) {
  const OwnFolder folder;
  for (const char* time : {"1e300", "0", "1e-9"}) {
    std::string other = trace;
    other.replace(other.find("\"dur\": 100.5"), 12, std::string("\"dur\": ") + time);
    std::ofstream("a.json") << other;
    const Profile profile = read_kineto("a.json");
    const bool overlaps_others = std::string(time) == "1e300";
    EXPECT_EQ(profile.skipped.count("GEMMs with times outside 1 ps to 1e5 s"), overlaps_others ? 0U : 1U) << time;
    // A GEMM of 1e300 us overlaps all others, so none is used.
    EXPECT_EQ(profile.gemms.size(), overlaps_others ? 0U : 1U) << time;
  }
}

TEST(Kineto, SkipsAGemmWithAnImpossibleSize) {
  const OwnFolder folder;
  for (const char* size : {"0", "-1", "9223372036854775807"}) {
    std::string other = trace;
    other.replace(other.find("4096, 8192"), 4, size);
    std::ofstream("a.json") << other;
    EXPECT_EQ(read_kineto("a.json").gemms.size(), 1U) << size;
  }
}

TEST(Kineto, RefusesAHugeEventBeforeUnpackingIt) {
  const OwnFolder folder;
  gzFile file = gzopen("bomb.json.gz", "wb1");
  const std::string letters(1 << 20, 'a');
  gzputs(file, R"({"traceEvents":[{"name":")");
  for (int i = 0; i < 20; ++i) {
    gzwrite(file, letters.data(), static_cast<unsigned>(letters.size()));
  }
  gzclose(file);
  try {
    read_kineto("bomb.json.gz");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "bomb.json.gz: one event takes more than 16 MiB; export the trace again");
  }
}

/// Returns why a file with this text is refused.
std::string why(const std::string& text) {
  std::ofstream("a.json") << text;
  return test::message_of([] { read_kineto("a.json"); });
}

TEST(Kineto, ReportsTruncatedOrBrokenTracesWithTheirPlace) {
  const OwnFolder folder;
  constexpr auto no_trace = ": is not a complete trace of PyTorch's profiler; export it again";
  EXPECT_EQ(why("{\"traceEvents\": [\n  {\"ph\": \"X\",\n"), std::string("a.json:3:1") + no_trace);
  EXPECT_EQ(why("\xef\xbb\xbf{\"traceEvents\": x"), std::string("a.json:1:17") + no_trace);
  EXPECT_EQ(why("{\"traceEvents\":\n [{\"dur\": 1e999}]}"),
            "a.json:2:16: a number is out of range; export the trace again");
  EXPECT_EQ(why("\xef\xbb\xbf"), std::string("a.json:1:1") + no_trace);
  std::ofstream("other.json") << R"({"version": "2.17", "results": []})";
  EXPECT_FALSE(is_kineto_trace("other.json"));
}

}  // namespace
}  // namespace commfuse::calibrate
