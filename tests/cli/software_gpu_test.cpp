// SPDX-License-Identifier: Apache-2.0
// Tests whole commands that need a GPU, with the plugin itself on the software GPU: virtual ranks on one GPU, and
// processes under NCCL with one visible GPU each. The results are checked; the times mean nothing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "model/record/run_record.h"
#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

constexpr const char* small_point =
    " --hardware h100-sxm --model 64x128 --seq 64 --scope gate_up --strategy serial,commfuse --iterations 2 --warm-up "
    "1";
/// Kernels with more FLOPs than this take their time but compute nothing.
constexpr const char* few_flops = "SOFTWARE_GPU_MOST_WORK=10000000 ";

class SoftwareGpu : public testing::Test {
 protected:
  /// Runs on one GPU. `variables` is a string such as "NAME=value ".
  static Outcome on_one_gpu(const std::string& command, const std::string& variables = "") {
    Outcome outcome =
        run_program("COMMFUSE_CUDA_PLUGIN='" COMMFUSE_SOFTWARE_GPU "' " + variables + "commfuse-validate " + command);
    EXPECT_EQ(outcome.code, 0) << command << '\n' << outcome.out << outcome.err;
    EXPECT_NE(outcome.err.find("software GPU"), std::string::npos) << command << '\n' << outcome.err;
    return outcome;
  }

  /// Runs processes with a GPU each, which meet over TCP. Returns the first process's output.
  static Outcome on_ranks(int ranks, const std::string& command, const std::string& variables = "") {
    static int port = 20000 + static_cast<int>(::getpid() % 20000);
    ++port;
    const std::string count = std::to_string(ranks);
    std::ofstream("ranks.sh")
        << "for r in $(seq 0 " << ranks - 1 << "); do\n"
        << "  RANK=$r WORLD_SIZE=" << count << " LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=" << port
        << " SOFTWARE_GPU_DEVICES=" << count << " CUDA_VISIBLE_DEVICES=$r " << variables
        << "COMMFUSE_CUDA_PLUGIN='" COMMFUSE_SOFTWARE_GPU "' commfuse-validate " << command
        << " >out.$r 2>err.$r || echo \"rank $r: $?\" >>failed &\n"
        << "done\nwait\ncat out.0\ncat err.0 >&2\ntest ! -e failed || { cat failed err.* >&2; exit 1; }\n";
    std::filesystem::remove("failed");
    Outcome outcome = run_program("bash ranks.sh");
    EXPECT_EQ(outcome.code, 0) << command << '\n' << outcome.out << outcome.err;
    EXPECT_NE(outcome.err.find("software GPU"), std::string::npos) << command << '\n' << outcome.err;
    return outcome;
  }

  static RunRecord record_of_software(const std::string& path) {
    RunRecord record = load_run_record(path);
    EXPECT_TRUE(record.environment.gpu.starts_with("software GPU")) << record.environment.gpu;
    return record;
  }

  const OwnFolder folder_;
};

class SoftwareGpuOnRanks : public SoftwareGpu, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(OneToEight, SoftwareGpuOnRanks, testing::Values(1, 2, 4, 8));

/// Returns the strategies to check: more of them on few ranks, because a software GPU is slow.
std::string strategies_on(int ranks) { return ranks <= 2 ? "serial,sliced" : "serial"; }

TEST_P(SoftwareGpuOnRanks, CheckOfVirtualRanksPasses) {
  const Outcome outcome = on_one_gpu("check --executor cuda-virtual --scope ag_gemm,gemm_rs --ranks " +
                                     std::to_string(GetParam()) + " --strategy " + strategies_on(GetParam()));
  EXPECT_NE(outcome.out.find(" correct on cuda-virtual"), std::string::npos) << outcome.out;
}

TEST_P(SoftwareGpuOnRanks, CheckOfProcessesPasses) {
  const Outcome outcome =
      on_ranks(GetParam(), "check --executor nccl --scope gemm_rs --strategy " + strategies_on(GetParam()));
  EXPECT_NE(outcome.out.find(" correct on nccl"), std::string::npos) << outcome.out;
}

TEST_P(SoftwareGpuOnRanks, CheckOfPeersPasses) {
  const Outcome outcome =
      on_ranks(GetParam(), "check --executor cuda-peer --scope gemm_rs --strategy " + strategies_on(GetParam()));
  EXPECT_NE(outcome.out.find(" correct on cuda-peer"), std::string::npos) << outcome.out;
}

TEST_F(SoftwareGpu, PeersCheckEveryProtocolAndStrategy) {
  on_ranks(4, "check --executor cuda-peer " COMMFUSE_SOURCE_DIR "/configs/schedules/push-ring.yaml");
  on_ranks(3, "check --executor cuda-peer --scope gemm_rs --strategy async_tp,ring_exchange");
  on_ranks(2, "check --executor cuda-peer --scope ulysses --strategy serial");
}

TEST_F(SoftwareGpu, AttentionAndItsAllToAllsAreRight) {
  on_one_gpu("check --executor cuda-virtual --scope attention,ulysses --strategy serial --ranks 2");
}

TEST_F(SoftwareGpu, RunsInEveryModeAndOverEveryLink) {
  for (const char* flags : {"--issue gated", "--issue stream --view all-ranks", "--issue graph --spans",
                            "--link bounce", "--partition 16", "--link-bandwidth '1 GB/s' --link-latency '20 us'"}) {
    std::filesystem::remove("run.json");
    on_one_gpu(std::string("run --executor cuda-virtual --ranks 2 --out run.json ") + flags + small_point);
    const RunRecord record = record_of_software("run.json");
    ASSERT_EQ(record.runs.size(), 2U) << flags;
    for (const MeasuredRun& run : record.runs) {
      EXPECT_EQ(run.status, RunStatus::done) << flags << ": " << run.message;
      EXPECT_EQ(run.makespans.size(), 2U) << flags;
    }
    // The double of NVML reports the device once before and once after the run.
    ASSERT_EQ(record.environment.devices.size(), 2U) << flags;
    EXPECT_EQ(record.environment.devices.back().clock_mhz, 1000) << flags;
    EXPECT_EQ(record.environment.devices.back().throttle_reasons, "nothing") << flags;
  }
}

TEST_F(SoftwareGpu, DoctorSeesItsGpus) {
  const Outcome outcome = run_program("LD_LIBRARY_PATH=\"$(dirname '" COMMFUSE_SOFTWARE_GPU
                                      "')\" SOFTWARE_GPU_DEVICES=3 commfuse-validate doctor -o json");
  EXPECT_NE(outcome.out.find("3 GPUs"), std::string::npos) << outcome.out << outcome.err;
}

TEST_F(SoftwareGpu, ComparesWithPredictions) {
  const Outcome outcome = on_one_gpu(std::string("compare --executor cuda-virtual --ranks 2") + small_point);
  EXPECT_NE(outcome.out.find("predicted  measured   ratio"), std::string::npos) << outcome.out;
  on_one_gpu(std::string("compare --executor cuda-virtual --ranks 2 --issue stream --link-ctas 2 --by-op --page p.html "
                         "--trace p.json") +
             small_point);
  EXPECT_NE(contents_of("p.html").find(" --issue stream --link-ctas 2 --page p.html"), std::string::npos);
}

/// Returns the time, in microseconds, of the kernels that add inside reduce-scatters. The simulator includes them in
/// the collective's price.
double sums_of(const nlohmann::json& schedule, const std::string& flags) {
  const std::string parameters = schedule["parameters"];
  const bool scatters = flags.find("gate_up") == std::string::npos && schedule["strategy"] != "commfuse";
  const std::size_t slices = parameters.find("k=");
  return !scatters ? 0.0 : slices == std::string::npos ? 1.0 : std::stod(parameters.substr(slices + 2));
}

class SoftwareGpuStated : public SoftwareGpu, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(TwoToEight, SoftwareGpuStated, testing::Values(2, 4, 8));

// With stated costs, a makespan depends only on the order of the ops, their waits and which ops run simultaneously, so
// the plugin and the simulator must agree up to the rounding of costs to nanoseconds. Schedules have one lane, because
// paced lanes do not share their wire as the lanes of a machine do.
TEST_P(SoftwareGpuStated, MakespansEqualThoseOfTheSimulator) {
  std::filesystem::copy_file(COMMFUSE_SOURCE_DIR "/tests/software_gpu/stated.yaml", "stated.yaml");
  const std::string stated = std::string(few_flops) + "SOFTWARE_GPU_KERNEL_NS=1000 SOFTWARE_GPU_FLOPS=10000000000000 ";
  for (const char* flags : {"--scope gate_up --issue gated", "--scope gate_up --issue stream",
                            "--scope gate_up --issue graph", "--scope down", "--scope mlp"}) {
    const Outcome outcome = on_one_gpu(
        "compare --executor cuda-virtual --hardware ./stated.yaml --model 512x1024 --seq 2048 --strategy "
        "serial,sliced,commfuse --lanes 1 --interference none --link-bandwidth '10 GB/s' --link-latency '5 us' "
        "--iterations 3 --warm-up 1 -o json --ranks " +
            std::to_string(GetParam()) + ' ' + flags,
        stated);
    const auto schedules = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(schedules.size(), 3U);
    for (const auto& schedule : schedules) {
      const double measured = schedule["measured_us"];
      const double predicted = schedule["predicted_us"];
      const double kernels = sums_of(schedule, flags);
      EXPECT_NEAR(measured, predicted + kernels, 0.05) << flags << ", " << schedule["strategy"];
      EXPECT_EQ(schedule["p10_us"], schedule["p90_us"]) << flags << ", " << schedule["strategy"];
    }
  }
}

class SoftwareGpuProbes : public SoftwareGpu, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Stages, SoftwareGpuProbes,
                         testing::Values("launch", "products", "attention", "links", "interference", "engines",
                                         "partitions", "nccl", "pinned"));

TEST_P(SoftwareGpuProbes, WriteTheRowsOfTheirStage) {
  const std::string stage = GetParam();
  on_one_gpu("probe --quick --out probes.csv --stage " + stage, few_flops);
  std::ifstream lines("probes.csv");
  std::set<std::string> stages;
  for (std::string line; std::getline(lines, line);) {
    stages.insert(line.substr(0, line.find(',')));
  }
  EXPECT_EQ(stages, (std::set<std::string>{"stage", stage}));
}

TEST_F(SoftwareGpu, TimesOpsAndLinks) {
  on_one_gpu("bench --quick --executor cuda-virtual --out bench.json", few_flops);
  EXPECT_FALSE(record_of_software("bench.json").micro_benchmarks.empty());
  on_one_gpu("links --executor cuda-virtual --ranks 3 --tolerance 1000000 --out links.json", few_flops);
  EXPECT_FALSE(record_of_software("links.json").micro_benchmarks.empty());
}

TEST_F(SoftwareGpu, AHardwareFileStatesTheSourceOfItsValues) {
  on_one_gpu("calibrate --quick --executor cuda-virtual --base h100-sxm --out soft.yaml", few_flops);
  const std::string text = contents_of("soft.yaml");
  EXPECT_NE(text.find("on a software GPU"), std::string::npos) << text;
  EXPECT_EQ(text.find("\"measured: micro-benchmarks\""), std::string::npos) << text;
}

TEST_F(SoftwareGpu, ProcessesRunAndCapture) {
  for (const char* flags : {"", "--issue graph --nccl-register on", "--nccl-register on --cta-policy zero"}) {
    std::filesystem::remove("run.json");
    on_ranks(4, std::string("run --executor nccl --ranks 4 --out run.json ") + flags + small_point);
    const RunRecord record = record_of_software("run.json");
    ASSERT_EQ(record.runs.size(), 2U) << flags;
    for (const MeasuredRun& run : record.runs) {
      EXPECT_EQ(run.status, RunStatus::done) << flags << ": " << run.message;
    }
    EXPECT_NE(record.environment.gpu.find("4 GPUs"), std::string::npos) << record.environment.gpu;
  }
}

TEST_F(SoftwareGpu, CollectivesWithoutSmsHaveWindowsWhichTheRecordNames) {
  on_ranks(2, std::string("run --executor nccl --ranks 2 --cta-policy zero --out run.json") + small_point);
  const RunRecord record = record_of_software("run.json");
  const std::string expected = ", NVLS on, NCCL 2.30.7 at run time, CTA policy zero, buffers registered as windows";
  EXPECT_TRUE(record.environment.gpu.ends_with(expected)) << record.environment.gpu;
}

TEST_F(SoftwareGpu, OptionsThatNcclIgnoresAreNotedAndRecorded) {
  const Outcome outcome = on_ranks(
      2, std::string("run --executor nccl --ranks 2 --nvls off --out run.json") + small_point, "NCCL_ALGO=Ring ");
  const std::string note =
      "NCCL_ALGO is set and decides whether NVLS is used; unset it, so that --nvls off takes effect";
  EXPECT_NE(outcome.err.find("note: " + note + "\n"), std::string::npos) << outcome.err;
  const RunRecord record = record_of_software("run.json");
  EXPECT_TRUE(record.environment.gpu.ends_with(", NVLS set by NCCL_ALGO, NCCL 2.30.7 at run time; " + note))
      << record.environment.gpu;
}

TEST_F(SoftwareGpu, ProcessesTimeOpsAndLinksThoughSomeAreIdle) {
  on_ranks(2, "bench --executor nccl --quick --only neighbours --out bench.json", few_flops);
  EXPECT_FALSE(record_of_software("bench.json").micro_benchmarks.empty());
  const Outcome links = on_ranks(3,
                                 "links --executor nccl --ranks 2 --bytes '8 KiB' --both-ways --collectives '8 KiB' "
                                 "--tolerance 1000000 --out links.json",
                                 few_flops);
  EXPECT_NE(links.out.find("both ways simultaneously, 8192 bytes each"), std::string::npos) << links.out;
  EXPECT_NE(links.out.find("all_to_all, 2 ranks, out of place"), std::string::npos) << links.out;
  EXPECT_NE(links.out.find("all_reduce, 2 ranks, in place"), std::string::npos) << links.out;
  EXPECT_FALSE(record_of_software("links.json").micro_benchmarks.empty());
}

/// Each GPU has few multiprocessors, because a copy kernel has one block per multiprocessor.
constexpr const char* four_gpus = "SOFTWARE_GPU_DEVICES=4 SOFTWARE_GPU_MULTIPROCESSORS=4 ";

TEST_F(SoftwareGpu, CopiesBetweenFourGpusMatchNvbandwidth) {
  const Outcome outcome = on_one_gpu(
      "links --copies all --both-ways --bytes '8 KiB' --iterations 3 --tolerance 1000000 --out copies.json", four_gpus);
  const RunRecord record = record_of_software("copies.json");
  // Each of the two engines makes 4 copies to the host, 4 from it, 12 reads and 12 writes, and repeats them with both
  // directions busy.
  EXPECT_EQ(record.micro_benchmarks.size(), 2U * 2U * (2U * 4U + 2U * 12U));
  for (const MicroBenchmark& benchmark : record.micro_benchmarks) {
    EXPECT_EQ(benchmark.samples.size(), 3U) << benchmark.op;
    EXPECT_GE(benchmark.rank, 0) << benchmark.op;
  }
  EXPECT_EQ(record.environment.devices.size(), 2U * 4U);
  for (const char* title :
       {"host_to_device_memcpy_ce of 8 KiB by GPU, us", "device_to_device_memcpy_read_sm of 8 KiB, us, GPU (down) <- ",
        "device_to_device_bidirectional_memcpy_write_ce, 8192 bytes each, GB/s in both directions together"}) {
    EXPECT_NE(outcome.out.find(title), std::string::npos) << title << '\n' << outcome.out;
  }
  const Outcome again = run_program("commfuse-validate links copies.json --tolerance 1000000 --expect h100-sxm");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.err, "not judged: copies of less than 64 MiB: fixed costs of a copy are not negligible\n");
}

TEST_F(SoftwareGpu, GpusThatDoNotReachEachOtherHaveNoCopies) {
  const Outcome outcome =
      on_one_gpu("links --copies ce --bytes '8 KiB' --iterations 3 --tolerance 1000000 --out copies.json",
                 std::string(four_gpus) + "SOFTWARE_GPU_PEERS=2 ");
  EXPECT_EQ(record_of_software("copies.json").micro_benchmarks.size(), 2U * 4U + 2U * 4U);
  std::filesystem::remove("copies.json");
  on_one_gpu("links --copies sm --ranks 1 --bytes '8 KiB' --iterations 3 --tolerance 1000000 --out copies.json",
             four_gpus);
  EXPECT_EQ(record_of_software("copies.json").micro_benchmarks.size(), 2U);
}

TEST_F(SoftwareGpu, TheListOfVisibleDevicesEndsAtAWordThatIsNone) {
  on_one_gpu("links --copies ce --bytes '8 KiB' --iterations 3 --tolerance 1000000 --out copies.json",
             "SOFTWARE_GPU_DEVICES=3 CUDA_VISIBLE_DEVICES=2,x,1 ");
  EXPECT_EQ(record_of_software("copies.json").micro_benchmarks.size(), 2U);
}

// A record of an H100 node that is healthy except for one pair at half its rate.
TEST_F(SoftwareGpu, ASlowPairOfARecordIsNamedByLinksAndByVerdict) {
  RunRecord record{.executor = "cuda", .compute = "real", .links = "copies"};
  for (std::int64_t gpu = 0; gpu < 8; ++gpu) {
    for (std::int64_t peer = 0; peer < 8; ++peer) {
      const bool is_slow = std::min(gpu, peer) == 3 && std::max(gpu, peer) == 5;
      if (gpu != peer) {
        record.micro_benchmarks.push_back({.op = "device_to_device_memcpy_read_ce",
                                           .bytes = 64 << 20,
                                           .ranks = 8,
                                           .rank = gpu,
                                           .peer = peer,
                                           .samples = {std::chrono::microseconds(is_slow ? 346 : 173)}});
      }
    }
  }
  std::ofstream("node-7.json") << to_json(record);
  const Outcome links = run_program("commfuse-validate links node-7.json --tolerance 200 --expect h100-sxm");
  EXPECT_EQ(links.code, 4) << links.err;
  EXPECT_NE(links.out.find("against h100-sxm: copies between GPUs are bad: 56 of them, 387.9 GB/s, 388.4\n"
                           "  expected\n"
                           "  GPU 3 – GPU 5 at 0.50 of the rate"),
            std::string::npos)
      << links.out;
  const Outcome verdict = run_program("commfuse-validate verdict node-7.json --expect h100-sxm");
  EXPECT_EQ(verdict.code, 4) << verdict.err;
  EXPECT_NE(verdict.out.find("GPU 3 – GPU 5"), std::string::npos) << verdict.out;
}

TEST_F(SoftwareGpu, RefusesCopiesThatMakeNoSense) {
  for (const auto& [flags, sentence] : {std::pair{"--copies all --executor cuda-virtual", "remove --executor"},
                                        {"--copies some", "--copies"},
                                        {"--copies ce --collectives '8 KiB'", "--collectives"},
                                        {"--copies ce --ranks 9", "--ranks"},
                                        {"--copies ce --iterations 4", "--iterations"},
                                        {"--copies ce --device 1", "CUDA_VISIBLE_DEVICES"}}) {
    const Outcome outcome = run_program(std::string("COMMFUSE_CUDA_PLUGIN='" COMMFUSE_SOFTWARE_GPU "' ") + four_gpus +
                                        "commfuse-validate links " + flags);
    EXPECT_EQ(outcome.code, 2) << flags << outcome.err;
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
  }
}

TEST_F(SoftwareGpu, PeersRunAndAreCompared) {
  for (const char* flags : {"", "--issue stream", "--spans"}) {
    std::filesystem::remove("run.json");
    on_ranks(4, std::string("run --executor cuda-peer --ranks 4 --out run.json ") + flags + small_point);
    const RunRecord record = record_of_software("run.json");
    EXPECT_EQ(record.executor, "cuda-peer");
    EXPECT_EQ(record.links, "peers");
    ASSERT_EQ(record.runs.size(), 2U) << flags;
    for (const MeasuredRun& run : record.runs) {
      EXPECT_EQ(run.status, RunStatus::done) << flags << ": " << run.message;
      EXPECT_EQ(run.spans.empty(), std::string(flags) != "--spans") << flags;
      std::set<std::pair<Rank, OpId>> ops;  // one span per op and rank
      for (const OpSpan& span : run.spans) {
        EXPECT_TRUE(ops.emplace(span.rank, span.op).second) << flags;
      }
    }
    EXPECT_NE(record.environment.gpu.find("4 GPUs, copies into peers' memory"), std::string::npos)
        << record.environment.gpu;
  }
  const Outcome outcome = run_program("commfuse-validate compare run.json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("predicted  measured   ratio"), std::string::npos) << outcome.out;
}

TEST_F(SoftwareGpu, PeersTimeOpsAndLinksThoughSomeAreIdle) {
  on_ranks(2, "bench --executor cuda-peer --quick --only neighbours --out bench.json", few_flops);
  EXPECT_FALSE(record_of_software("bench.json").micro_benchmarks.empty());
  on_ranks(3,
           "links --executor cuda-peer --ranks 2 --bytes '8 KiB' --both-ways --collectives '8 KiB' --tolerance 1000000 "
           "--out links.json",
           few_flops);
  EXPECT_FALSE(record_of_software("links.json").micro_benchmarks.empty());
}

/// Makes three processes check schedules endlessly, until rank 1 gets a signal. Returns the exit codes of the other
/// processes, and the first process's output.
Outcome signalled(const std::string& executor, const std::string& signal, int port) {
  std::ofstream("signalled.sh") << "for r in 0 1 2; do\n"
                                << "  RANK=$r WORLD_SIZE=3 LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=" << port
                                << " SOFTWARE_GPU_DEVICES=3 CUDA_VISIBLE_DEVICES=$r"
                                << " COMMFUSE_CUDA_PLUGIN='" COMMFUSE_SOFTWARE_GPU "' exec -a rank$r"
                                << " commfuse-validate check --executor " << executor
                                << " --scope layer,mlp --long --patience 5s"
                                << " -o csv >out.$r 2>err.$r &\n"
                                << "  pids[$r]=$!\n"
                                << "done\n"
                                << "until (( $(wc -l <out.0) > 1 )); do\n"
                                << "  kill -0 ${pids[0]} || exit 9\n"
                                << "  sleep 0.1\n"
                                << "done\n"
                                << "kill -" << signal << " ${pids[1]}\n"
                                << "( sleep 60; kill -KILL ${pids[0]} ${pids[2]} ) 2>/dev/null &\n"
                                << "killer=$!\n"
                                << "for r in 0 2; do\n"
                                << "  code=0; wait ${pids[$r]} || code=$?\n"
                                << "  echo \"rank $r: $code\"\n"
                                << "done\n"
                                << "kill $killer; kill -KILL ${pids[1]} 2>signals\n"
                                << "cat err.0 >&2\n";
  return run_program("bash signalled.sh");
}

class SoftwareGpuSignalled : public SoftwareGpu, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Processes, SoftwareGpuSignalled, testing::Values("nccl", "cuda-peer"),
                         [](const auto& executor) { return std::string(executor.param) == "nccl" ? "Nccl" : "Peers"; });

int port_for(const std::string& executor, int first) {
  return first + (executor == "nccl" ? 0 : 2000) + static_cast<int>(::getpid() % 2000);
}

TEST_P(SoftwareGpuSignalled, AKilledRankEndsAllRanksWithinTheTimeout) {
  const Outcome outcome = signalled(GetParam(), "KILL", port_for(GetParam(), 12000));
  EXPECT_EQ(outcome.out, "rank 0: 1\nrank 2: 1\n") << outcome.err;
  // The progress of the killed rank determines which of the two messages the others print.
  const bool is_reported = outcome.err.find("process 1 has exited") != std::string::npos ||
                           outcome.err.find("within 5 s") != std::string::npos;
  EXPECT_TRUE(is_reported) << outcome.err;
}

TEST_P(SoftwareGpuSignalled, ARankThatHangsEndsAllRanksAfterTheTimeout) {
  const Outcome outcome = signalled(GetParam(), "STOP", port_for(GetParam(), 16000));
  EXPECT_EQ(outcome.out, "rank 0: 1\nrank 2: 1\n") << outcome.err;
  EXPECT_NE(outcome.err.find("5 s"), std::string::npos) << outcome.err;
}

class SoftwareGpuWithNccl : public SoftwareGpu, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Versions, SoftwareGpuWithNccl,
                         testing::Values("2.18.5", "2.19.3", "2.26.2", "2.27.3", "2.28.9", "2.29.2", "2.30.7"));

TEST_P(SoftwareGpuWithNccl, CallsNoFunctionThatTheVersionLacks) {
  const std::string version = std::string("SOFTWARE_GPU_NCCL=") + GetParam() + ' ';
  on_ranks(2, "check --executor nccl --scope ulysses --strategy serial", version);
  on_ranks(
      2, std::string("run --executor nccl --ranks 2 --nccl-register on --cta-policy zero --out run.json") + small_point,
      version);
  const RunRecord record = record_of_software("run.json");
  EXPECT_NE(record.environment.gpu.find(std::string("NCCL ") + GetParam()), std::string::npos)
      << record.environment.gpu;
}

}  // namespace
}  // namespace commfuse::test
