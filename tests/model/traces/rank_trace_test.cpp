// SPDX-License-Identifier: Apache-2.0
#include "model/traces/rank_trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "model/config_error.h"
#include "tests/own_folder.h"

namespace commfuse {
namespace {

std::string event(const std::string& category, const std::string& name, double begin, double duration,
                  const std::string& args = "{}") {
  return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": {}, "args": {}}})",
                     category, name, begin, duration, args);
}

const std::string gathers =
    R"({"Collective name": "allgather", "Process Group Name": "tp", "Process Group Ranks": "[0, 1]", "In msg nelems": 8})";

RankTrace read(const std::string& events,
               const std::string& job = R"("distributedInfo": {"rank": 3, "world_size": 8}, )") {
  std::ofstream("t.json") << "{\"schemaVersion\": 1, " << job << "\"traceEvents\": [" << events << "]}";
  return read_rank_trace("t.json");
}

TEST(RankTraceFile, StepsAreSplitIntoComputeCommunicationAndIdleTime) {
  const OwnFolder folder;
  const RankTrace trace =
      read(event("gpu_user_annotation", "ProfilerStep#4", 100, 50) + "," +
           event("user_annotation", "ProfilerStep#4", 0, 10) + "," + event("kernel", "gemm", 100, 20) + "," +
           event("kernel", "gemm", 110, 15) + "," + event("kernel", "ncclDevKernel_AllGather", 120, 20, gathers) + "," +
           event("gpu_memcpy", "HtoD", 142, 4) + "," + event("kernel", "late", 155, 9));
  EXPECT_EQ(trace.rank, 3);
  ASSERT_EQ(trace.steps.size(), 1U);
  EXPECT_EQ(trace.steps[0].step, 4);
  EXPECT_DOUBLE_EQ(trace.steps[0].time_us, 50.0);
  EXPECT_DOUBLE_EQ(trace.steps[0].compute_us, 25.0);  // The two intervals overlap.
  EXPECT_DOUBLE_EQ(trace.steps[0].communication_us, 20.0);
  EXPECT_DOUBLE_EQ(trace.steps[0].idle_us, 6.0);  // from 140 to 142 and from 146 to 150
  ASSERT_EQ(trace.calls.size(), 1U);
  EXPECT_EQ(trace.calls[0].group, "allgather tp [0, 1] 8");
  EXPECT_DOUBLE_EQ(trace.calls[0].duration_us, 20.0);
}

TEST(RankTraceFile, WithoutStepsTheWholeTraceIsOneStep) {
  const OwnFolder folder;
  const RankTrace trace = read(event("kernel", "a", 10, 5) + "," + event("kernel", "rcclKernel", 20, 5), "");
  EXPECT_FALSE(trace.rank.has_value());
  ASSERT_EQ(trace.steps.size(), 1U);
  EXPECT_DOUBLE_EQ(trace.steps[0].time_us, 15.0);
  EXPECT_DOUBLE_EQ(trace.steps[0].idle_us, 5.0);
  EXPECT_EQ(trace.calls.at(0).group, "rcclKernel");
}

TEST(RankTraceFile, HostStepsAreUsedIfTheGpuHasNone) {
  const OwnFolder folder;
  const RankTrace trace = read(event("user_annotation", "ProfilerStep#1", 0, 10) + "," +
                               event("user_annotation", "ProfilerStep#2", 10, 10) + "," + event("kernel", "a", 2, 5) +
                               "," + event("kernel", "a", 11, 7) + "," + event("cpu_op", "aten::mm", 0, 3));
  ASSERT_EQ(trace.steps.size(), 2U);
  EXPECT_DOUBLE_EQ(trace.steps[0].compute_us, 5.0);
  EXPECT_DOUBLE_EQ(trace.steps[1].compute_us, 7.0);
}

// The first kernel ends at 15, later than the second; the last runs from 25 to 45.
TEST(RankTraceFile, AGpuIsNotIdleWhileAKernelOfAnEarlierStepRuns) {
  const OwnFolder folder;
  const RankTrace trace = read(
      event("user_annotation", "ProfilerStep#1", 0, 10) + "," + event("user_annotation", "ProfilerStep#2", 10, 10) +
      "," + event("user_annotation", "ProfilerStep#3", 20, 10) + "," +
      event("user_annotation", "ProfilerStep#4", 30, 10) + "," + event("kernel", "a", 2, 13) + "," +
      event("kernel", "a", 8, 1) + "," + event("kernel", "a", 16, 3) + "," + event("kernel", "a", 25, 20));
  ASSERT_EQ(trace.steps.size(), 4U);
  EXPECT_DOUBLE_EQ(trace.steps[0].idle_us, 2.0);
  EXPECT_DOUBLE_EQ(trace.steps[1].idle_us, 2.0);
  EXPECT_DOUBLE_EQ(trace.steps[2].idle_us, 5.0);
  EXPECT_DOUBLE_EQ(trace.steps[3].idle_us, 0.0);
  EXPECT_DOUBLE_EQ(trace.steps[0].compute_us, 13.0);
  EXPECT_DOUBLE_EQ(trace.steps[1].compute_us, 3.0);
  EXPECT_DOUBLE_EQ(trace.steps[2].compute_us, 20.0);
  EXPECT_DOUBLE_EQ(trace.steps[3].compute_us, 0.0);
}

TEST(RankTraceFile, ATraceWithoutKernelsIsReported) {
  const OwnFolder folder;
  try {
    read(event("cpu_op", "aten::mm", 0, 3));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "t.json: has no kernel; trace with ProfilerActivity.CUDA");
  }
}

}  // namespace
}  // namespace commfuse
