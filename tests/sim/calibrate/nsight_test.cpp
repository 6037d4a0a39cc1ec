// SPDX-License-Identifier: Apache-2.0
// Tests exports of Nsight Systems as measurements, in the layout of nsys export and nsys stats.
#include "sim/calibrate/nsight.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "model/config_error.h"
#include "sim/calibrate/observations.h"
#include "sim/sweep/database.h"
#include "tests/own_folder.h"
#include "tests/sim/message_of.h"

namespace commfuse::calibrate {
namespace {

using std::chrono::microseconds;
using Skipped = std::map<std::string, std::size_t>;

constexpr auto tables = R"(
  CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER NOT NULL, blockX INTEGER NOT NULL);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
  CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
    text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER NOT NULL);
  INSERT INTO StringIds VALUES (1, 'nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT'), (2, 'nvjet_tst'),
    (3, 'cudaLaunchKernel_v7000'), (4, 'aten::addmm, seq = 7, op_id = 9, sizes = [[256], [64, 512], [512, 256], [], []]'),
    (5, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)'),
    (6, 'void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>'),
    (7, 'triton_mm'), (8, 'cudaGraphLaunch_v10000');
)";

// Process 1 is 0x1000000, and its thread 5 is 0x1000005.
constexpr std::int64_t thread = 0x1000005;

void write(const std::string& path, const std::string& rows) {
  Database database(path, Database::Access::write);
  database.run(std::string(tables) + rows);
}

std::string range(int begin, int end, const std::string& text) {
  return fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, NULL, {}, {}, NULL, 0);", 1000 * begin, 1000 * end,
                     text, thread);
}
std::string launched(int correlation, int at, int begin, int end, int name, int call = 3) {
  return fmt::format(
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, 1, {}, {}, {}, 0);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, 0, 1, 7, {}, {}, {}, 2, 132, 384);",
      1000 * at, 1000 * at + 500, thread, correlation, call, 1000 * begin, 1000 * end, correlation, 0x1000000, name);
}

const std::string mm_range = "'aten::mm, op_id = 12, sizes = [[4096, 8192], [8192, 1024]]'";

TEST(Nsight, ReadsSizesOfGemmsFromEmitNvtxRanges) {
  const OwnFolder folder;
  write("a.sqlite",
        range(100, 120, mm_range) + launched(1, 110, 400, 500, 1) +
            fmt::format("INSERT INTO NVTX_EVENTS VALUES (130000, 150000, 59, NULL, NULL, {}, 4, 0);", thread) +
            launched(2, 140, 500, 530, 1) + range(0, 1000, "'training step'"));
  EXPECT_TRUE(is_sqlite("a.sqlite"));
  const Profile profile = read_nsight_database("a.sqlite");
  ASSERT_EQ(profile.gemms.size(), 2U);
  EXPECT_EQ(profile.gemms[0].size.m, 4096);
  EXPECT_EQ(profile.gemms[0].size.n, 1024);
  EXPECT_EQ(profile.gemms[0].size.k, 8192);
  EXPECT_EQ(profile.gemms[0].size.dtype, DType::bf16);  // from the kernel's name, nvjet_tst
  EXPECT_EQ(profile.gemms[0].time, microseconds(100));
  EXPECT_EQ(profile.gemms[1].size.m, 64);
  EXPECT_EQ(profile.gemms[1].time, microseconds(30));
  EXPECT_EQ(profile.skipped, Skipped{});
}

TEST(Nsight, ReportsTheTimeShareOfKernelsWithoutSizes) {
  const OwnFolder folder;
  write("a.sqlite", launched(1, 10, 100, 160, 1) + launched(2, 20, 200, 230, 5) + launched(3, 30, 300, 310, 6));
  EXPECT_EQ(
      read_nsight_database("a.sqlite").skipped,
      (Skipped{{"kernels of GEMMs without sizes: profile under "
                "torch.autograd.profiler.emit_nvtx(record_shapes=True) (60% of the kernel time)",
                1},
               {"NCCL kernels, whose sizes and ranks are not read: use nccl-tests or a trace of PyTorch's profiler "
                "(30% of the kernel time)",
                1},
               {"other kernels without sizes: profile under torch.autograd.profiler.emit_nvtx(record_shapes=True) (10% "
                "of the kernel time)",
                1}}));
}

TEST(Nsight, ReportsWhyGemmsAreSkipped) {
  const OwnFolder folder;
  write("a.sqlite", range(100, 120, mm_range) + launched(1, 110, 400, 500, 1) + launched(2, 130, 450, 600, 5) +
                        range(200, 220, mm_range) +
                        launched(3, 210, 700, 800, 7) +  // Names of Triton's kernels do not state a type.
                        range(300, 320, mm_range) + launched(4, 310, 900, 950, 1, 8));
  const Profile profile = read_nsight_database("a.sqlite");
  EXPECT_TRUE(profile.gemms.empty());
  EXPECT_EQ(profile.skipped.count("GEMMs concurrent with communication, which slows them"), 1U);
  EXPECT_EQ(profile.skipped.count("GEMMs whose type is neither recorded nor in the name of their kernel"), 1U);
  EXPECT_EQ(profile.skipped.count("kernels of CUDA graphs, which no operator launches (12% of the kernel time)"), 1U);
  EXPECT_EQ(profile.skipped.count("GEMMs without a kernel"), 1U);
}

TEST(Nsight, SeparatesCorrelationsOfTwoProcesses) {
  const OwnFolder folder;
  std::string other = launched(1, 110, 800, 830, 6);
  for (std::size_t at = other.find("16777221"); at != std::string::npos; at = other.find("16777221")) {
    other.replace(at, 8, "33554437");  // This is thread 5 of process 2.
  }
  other.replace(other.find("16777216"), 8, "33554432");
  write("a.sqlite", range(100, 120, mm_range) + launched(1, 110, 400, 500, 1) + other);
  const Profile profile = read_nsight_database("a.sqlite");
  ASSERT_EQ(profile.gemms.size(), 1U);
  EXPECT_EQ(profile.gemms[0].time, microseconds(100));
}

TEST(Nsight, AKernelWithoutAProcessIsMatchedByCorrelation) {
  const OwnFolder folder;
  const auto write_with_launch = [](const std::string& path, int correlation) {
    write(path, range(100, 120, mm_range) + launched(1, 110, 400, 500, 1) +
                    fmt::format("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = NULL;"
                                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 1, 1, 5, {}, 3, 0);",
                                correlation));  // The call belongs to process 0, which comes first.
  };
  write_with_launch("one.sqlite", 2);
  EXPECT_EQ(read_nsight_database("one.sqlite").gemms.size(), 1U);
  write_with_launch("two.sqlite", 1);
  EXPECT_EQ(test::message_of([] { read_nsight_database("two.sqlite"); }),
            "two.sqlite: correlation 1 belongs to launches of two processes, and the kernel does not name its process "
            "(globalPid); profile one process, or export the report with a newer nsys");
}

TEST(Nsight, OtherDatabasesAreRefused) {
  const OwnFolder folder;
  {
    Database database("results.db", Database::Access::write);
    database.run("CREATE TABLE rows (a)");
  }
  EXPECT_EQ(test::message_of([] { read_observations({"results.db"}, std::nullopt); }),
            "results.db: a database without Nsight's table of kernels (CUPTI_ACTIVITY_KIND_KERNEL); give the output of "
            "nsys export --type sqlite for a run with --trace=cuda,nvtx");
  {
    Database database("old.db", Database::Access::write);
    database.run("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId)");
  }
  EXPECT_EQ(test::message_of([] { read_nsight_database("old.db"); }),
            "old.db: its table CUPTI_ACTIVITY_KIND_KERNEL has no column correlationId; export the report again with "
            "nsys export --type sqlite");
  std::ofstream("cut.db") << std::string("SQLite format 3\0", 16) + std::string(84, 'x');
  EXPECT_EQ(test::message_of([] { read_nsight_database("cut.db"); }),
            "cut.db: is damaged; export the report again with nsys export --type sqlite");
}

constexpr auto header =
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n";

TEST(Nsight, ReportsThatATableOfStatsHasNoSizes) {
  const OwnFolder folder;
  std::ofstream("t.csv") << "\nNOTICE: Existing SQLite export found: x.sqlite\n"
                            "Processing [x.sqlite] with [cuda_gpu_trace.py]... \n"
                         << header
                         << "100,75,1,132,1,1,384,1,1,168,0.000,0.2,,,,,NVIDIA H100 (0),1,,7,nvjet_tst_128x256\n"
                            "200,25,2,132,1,1,384,1,1,168,0.000,0.2,,,,,NVIDIA H100 (0),1,,7,"
                            "\"void at::native::kernel<int, float>(int)\"\n";
  EXPECT_TRUE(is_nsight_table("t.csv"));
  const Observations observations = read_observations({"t.csv"}, std::nullopt);
  EXPECT_EQ(observations.skipped,
            (std::vector<std::string>{
                "t.csv: kernels of GEMMs without sizes: profile under "
                "torch.autograd.profiler.emit_nvtx(record_shapes=True) (75% of the kernel time) (1 row)",
                "t.csv: other kernels without sizes: profile under "
                "torch.autograd.profiler.emit_nvtx(record_shapes=True) (25% of the kernel time) (1 row)"}));
  std::ofstream("t.csv") << "NOTICE\n" << header << "100,soon,1,132,1,1,384,1,1,168,0.0,0.2,,,,,H100 (0),1,,7,nvjet\n";
  EXPECT_EQ(test::message_of([] { read_nsight_table("t.csv"); }),
            "t.csv:3: the duration is not a number; export the table again");
  std::ofstream("s.csv") << "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
                            "100.0,100,1,100.0,100.0,100,100,0.0,nvjet\n";
  EXPECT_EQ(test::message_of([] { read_observations({"s.csv"}, std::nullopt); }),
            "s.csv: a summary of nsys stats, which has no single calls; give the SQLite export (nsys export --type "
            "sqlite)");
}

}  // namespace
}  // namespace commfuse::calibrate
