// SPDX-License-Identifier: Apache-2.0
// Tests files of jobs: step times, traces of several ranks, records of links.
#include "validate/verdict/jobs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "model/record/run_record.h"
#include "tests/own_folder.h"

namespace commfuse::validate {
namespace {

void write(const std::string& name, const std::string& text) { std::ofstream(name) << text; }

/// Returns step times of six ranks over eight steps. Rank `faulty` computes `factor` times as long as the others.
std::string steps_csv(int faulty, double factor) {
  std::string text = "rank,step,time_ms,compute_ms,host\n";
  for (int step = 0; step < 8; ++step) {
    for (int rank = 0; rank < 6; ++rank) {
      const double compute = (300.0 + rank % 3 + step % 2) * (rank == faulty ? factor : 1.0);
      text += fmt::format("{},{},{},{},node-{}\n", rank, step, 300.0 * factor + 80.0, compute, rank / 2);
    }
  }
  return text;
}

/// Returns the trace of a rank's GPU over four steps. All ranks leave a collective together, so a rank that computes
/// for long waits only briefly.
std::string trace_of(int rank, double compute, double idle, double latest, double transfer) {
  std::string events;
  const double step_us = latest + transfer;
  for (int step = 0; step < 4; ++step) {
    const double begin = 1e6 + step * step_us;
    const auto add = [&](const char* category, const std::string& name, double from, double duration,
                         const std::string& args) {
      events += fmt::format(R"({}{{"ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": {}{}}})",
                            events.empty() ? "" : ",\n", category, name, from, duration, args);
    };
    add("gpu_user_annotation", fmt::format("ProfilerStep#{}", step), begin, step_us, "");
    add("kernel", "gemm", begin + idle, compute, "");
    add("kernel", "ncclDevKernel_AllReduce", begin + idle + compute, step_us - idle - compute,
        R"(, "args": {"Collective name": "allreduce", "Process Group Name": "0", "In msg nelems": 64})");
  }
  return fmt::format(R"({{"schemaVersion": 1, "distributedInfo": {{"rank": {}, "world_size": 4}}, "traceEvents": [)",
                     rank) +
         events + "]}";
}

TEST(Jobs, StepTimesAreOneJobPerFileAndOtherFilesRemain) {
  const OwnFolder folder;
  write("steps.csv", steps_csv(4, 1.5));
  write("node.txt", "# nThread 1 nGpus 8\n");
  write("bad.csv", "rank,step,time_ms\n0,0,x\n");
  const JobFiles files = read_jobs({"steps.csv", "node.txt", "bad.csv", "/nowhere"});
  ASSERT_EQ(files.jobs.size(), 1U);
  EXPECT_EQ(files.jobs[0].name, "steps.csv");
  EXPECT_EQ(files.jobs[0].steps.size(), 48U);
  EXPECT_EQ(files.others, (std::vector<std::string>{"node.txt", "/nowhere"}));
  ASSERT_EQ(files.unread.size(), 1U);
  EXPECT_EQ(files.unread[0], "bad.csv:2: time_ms: 'x' is not a time; write a number of more than 0");
  const JobVerdict verdict = verdict_on(files.jobs[0], 0.01);
  EXPECT_EQ(verdict.judgement.health, Health::bad);
  EXPECT_TRUE(verdict.why.starts_with("rank 4 on node-2 computes slowly")) << verdict.why;
  EXPECT_NE(verdict.why.find("(1.50 times as long as the others)"), std::string::npos) << verdict.why;
  EXPECT_TRUE(verdict.next.starts_with("nvidia-smi")) << verdict.next;
}

TEST(Jobs, AJobWithoutASlowRankIsHealthy) {
  const OwnFolder folder;
  write("steps.csv", steps_csv(4, 1.0));
  const JobVerdict verdict = verdict_on(read_jobs({"steps.csv"}).jobs.at(0), 0.01);
  EXPECT_EQ(verdict.judgement.health, Health::healthy);
  EXPECT_EQ(verdict.why, "no rank differs from the others");
  EXPECT_EQ(verdict.next, "");
}

TEST(Jobs, TracesOfSeveralRanksAreOneJob) {
  const OwnFolder folder;
  std::filesystem::create_directory("traces");
  struct Case {
    double compute;
    double idle;
    const char* why;
  };
  for (const Case& tested : {Case{1000.0, 10.0, "no rank differs"}, Case{1600.0, 10.0, "rank 2 computes slowly"},
                             Case{1000.0, 500.0, "rank 2 launches slowly"}}) {
    std::vector<std::string> names;
    for (int rank = 0; rank < 4; ++rank) {
      const bool is_faulty = rank == 2;
      names.push_back(fmt::format("traces/{}.json", rank));
      write(names.back(), trace_of(rank, is_faulty ? tested.compute : 1000.0 + rank, is_faulty ? tested.idle : 10.0,
                                   tested.compute + tested.idle + 5.0, 400.0));
    }
    const JobFiles files = read_jobs(names);
    ASSERT_TRUE(files.unread.empty()) << files.unread.front();
    ASSERT_EQ(files.jobs.size(), 1U);
    EXPECT_EQ(files.jobs[0].name, "traces");
    const JobVerdict verdict = verdict_on(files.jobs[0], 0.01);
    EXPECT_TRUE(verdict.why.starts_with(tested.why)) << verdict.why;
    EXPECT_EQ(verdict.judgement.suspects.size(), verdict.judgement.health == Health::bad ? 1U : 0U);
  }
}

TEST(Jobs, TheCollectiveOfTheLastRankIsTheTransfer) {
  const OwnFolder folder;
  write("a.json", trace_of(0, 1000.0, 0.0, 1500.0, 400.0));
  write("b.json", trace_of(1, 1500.0, 0.0, 1500.0, 400.0));
  const Job job = read_jobs({"a.json", "b.json"}).jobs.at(0);
  ASSERT_EQ(job.steps.size(), 8U);
  EXPECT_NEAR(job.steps[0].communication_us.value(), 900.0, 1e-6);
  EXPECT_NEAR(job.steps[0].send_us.value(), 400.0, 1e-6);
  EXPECT_NEAR(job.steps[4].communication_us.value(), 400.0, 1e-6);
}

TEST(Jobs, ASecondTraceOfARankIsReportedAndSkipped) {
  const OwnFolder folder;
  write("a.json", trace_of(0, 1000.0, 0.0, 1500.0, 400.0));
  write("b.json", trace_of(0, 1500.0, 0.0, 1500.0, 400.0));
  const JobFiles files = read_jobs({"a.json", "b.json"});
  EXPECT_EQ(files.jobs.size(), 1U);
  ASSERT_EQ(files.unread.size(), 1U);
  EXPECT_EQ(files.unread[0], "b.json: two traces are of rank 0; give one trace per rank");
}

TEST(Jobs, ATraceWithoutARankTakesAFreeRank) {
  const OwnFolder folder;
  const auto without_rank = [](std::string trace) {
    const std::size_t begin = trace.find("\"rank\": ");
    return trace.erase(begin, trace.find("\"world_size\"") - begin);
  };
  write("a.json", without_rank(trace_of(0, 1000.0, 0.0, 1500.0, 400.0)));
  write("b.json", trace_of(0, 1500.0, 0.0, 1500.0, 400.0));
  write("c.json", without_rank(trace_of(0, 1100.0, 0.0, 1500.0, 400.0)));
  const JobFiles files = read_jobs({"a.json", "b.json", "c.json"});
  EXPECT_EQ(files.unread, std::vector<std::string>{});
  EXPECT_EQ(files.passed_over, (std::vector<std::string>{"a.json: states no rank; used as rank 1",
                                                         "c.json: states no rank; used as rank 2"}));
  const Job& job = files.jobs.at(0);
  ASSERT_EQ(job.steps.size(), 12U);
  EXPECT_NEAR(job.steps[0].compute_us.value(), 1500.0, 1e-6);
  EXPECT_EQ(job.steps[4].rank, 1);
  EXPECT_NEAR(job.steps[4].compute_us.value(), 1000.0, 1e-6);
  EXPECT_NEAR(job.steps[8].compute_us.value(), 1100.0, 1e-6);
}

TEST(Jobs, RecordsOfLinksNameRanksThatComputeOrSendSlowly) {
  const OwnFolder folder;
  using std::chrono::microseconds;
  RunRecord record{.executor = "mpi", .compute = "real", .links = "mpi"};
  record.environment.mpi = "Open MPI 4.1";
  for (int rank = 0; rank < 4; ++rank) {
    record.environment.hosts.push_back(fmt::format("node-{}", rank));
    const Duration gemm_time = microseconds(100 + rank);
    record.micro_benchmarks.push_back(
        {.op = "product", .ranks = 4, .rank = rank, .samples = {gemm_time, gemm_time, gemm_time}});
    for (int peer = 0; peer < 4; ++peer) {
      if (peer != rank) {
        const Duration transfer_time = microseconds(rank == 1 ? 900 : 500 + peer);
        record.micro_benchmarks.push_back({.op = "transfer",
                                           .bytes = 4 << 20,
                                           .ranks = 4,
                                           .rank = rank,
                                           .peer = peer,
                                           .samples = {transfer_time, transfer_time, transfer_time}});
      }
    }
  }
  write("links.json", to_json(record));
  const JobFiles files = read_jobs({"links.json"});
  ASSERT_EQ(files.jobs.size(), 1U) << (files.unread.empty() ? "" : files.unread.front());
  const JobVerdict verdict = verdict_on(files.jobs[0], 0.01);
  EXPECT_TRUE(verdict.why.starts_with("rank 1 on node-1 sends slowly")) << verdict.why;
  EXPECT_TRUE(files.passed_over.empty());
  record.micro_benchmarks.push_back({.op = "all_gather", .bytes = 1, .ranks = 4, .samples = {microseconds(9)}});
  write("links.json", to_json(record));
  EXPECT_EQ(read_jobs({"links.json"}).passed_over,
            std::vector<std::string>{
                "links.json: the collectives, because a record of links compares ranks; measure them with bench"});
  record.links = "emulated";
  write("links.json", to_json(record));
  EXPECT_EQ(read_jobs({"links.json"}).others.size(), 1U);
}

}  // namespace
}  // namespace commfuse::validate
