// SPDX-License-Identifier: Apache-2.0
// Tests that, without a GPU, every command that needs a GPU reports this in one sentence and exits with 69. Also tests
// first_run.sh with fake programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "tests/cli/program.h"
#include "tests/cli/validate_program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

// Machines with a GPU skip this test, because the commands would run on it.
TEST(ValidateGpu, WithoutAGpuEveryCommandNamesWhatIsMissingAndExitsWith69) {
  if (has_gpu()) {
    GTEST_SKIP() << "this machine has a GPU";
  }
  for (const char* command :
       {"check --executor cuda-virtual", "run --executor cuda-virtual", "compare --executor cuda-virtual",
        "bench --executor cuda-virtual --quick", "links --executor cuda-virtual", "probe",
        "calibrate --executor cuda-virtual --base h200-sxm --out never.yaml"}) {
    const Outcome outcome = run_program(std::string("commfuse-validate ") + command);
    EXPECT_EQ(outcome.code, 69) << command << outcome.err;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_TRUE(outcome.err.starts_with("no usable GPU: ")) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    const std::string words = command;
    const std::string verb = words.substr(0, words.find(' '));
    const Outcome help = run_program("commfuse-validate " + verb + " --help-all");
    EXPECT_NE(help.out.find("69 no GPU is available"), std::string::npos) << verb;
  }
  EXPECT_FALSE(std::filesystem::exists("never.yaml"));
}

TEST(ValidateGpu, FlagsOfAGpuAreRefusedElsewhere) {
  for (const char* command : {"run --device 1", "bench --view all-ranks", "check --device 0", "compare --nvls off"}) {
    const Outcome outcome = run_program(std::string("commfuse-validate ") + command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_NE(outcome.err.find("needs a GPU; add --executor cuda-virtual, cuda-peer or nccl"), std::string::npos)
        << outcome.err;
  }
}

TEST(ValidateGpu, FlagsThatMakeNoSenseAreNamedBeforeAnythingIsLoaded) {
  const auto refusal = [](const std::string& flags) {
    const Outcome outcome = run_program("commfuse-validate run --executor cuda-virtual " + flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    return outcome.err;
  };
  EXPECT_NE(refusal("--issue later").find("--issue"), std::string::npos);
  EXPECT_NE(refusal("--link bounce --link-bandwidth '1 GB/s'").find("remove --link-bandwidth"), std::string::npos);
  EXPECT_NE(refusal("--device x").find("--device: 'x' is not a whole number"), std::string::npos);
  EXPECT_EQ(refusal("--partition 0"),
            "--partition: '0' is not a whole number from 1 to 1024; write one, as in --partition 1\n");
  EXPECT_EQ(refusal("--attention-by flash"),
            "--attention-by: unknown kernel 'flash'; known kernels: auto, cudnn, cublaslt\n");
  EXPECT_NE(refusal("--compute emulated").find("GPU executors always compute"), std::string::npos);
  EXPECT_EQ(run_program("commfuse-validate probe --stage lunch").code, 2);
}

TEST(ValidateGpu, AStageOfProbeRunsOnceAndAllStandsAlone) {
  const Outcome twice = run_program("commfuse-validate probe --dry-run --quick --stage launch,launch");
  EXPECT_EQ(twice.code, 0);
  EXPECT_EQ(twice.err.find("already in"), std::string::npos) << twice.err;
  const Outcome beside_all = run_program("commfuse-validate probe --stage launch,all");
  EXPECT_EQ(beside_all.code, 2);
  EXPECT_EQ(beside_all.err, "--stage: 'all' cannot be combined with other values; write --stage all\n");
}

// An executor names the flags that it does not use.
TEST(ValidateGpu, FlagsThatAnExecutorDoesNotUseAreNamed) {
  const auto refusal = [](const std::string& command) {
    const Outcome outcome = run_program("commfuse-validate " + command);
    EXPECT_EQ(outcome.code, 2) << command;
    return outcome.err;
  };
  for (const char* flag :
       {"--nvls off", "--cta-policy zero", "--nccl-ctas 8", "--nccl-p2p-channels 8", "--nccl-register on"}) {
    const std::string name(flag, std::string_view(flag).find(' '));
    for (const char* executor : {"cuda-peer", "cuda-virtual"}) {
      EXPECT_EQ(refusal(std::string("links --executor ") + executor + " " + flag),
                name + " configures NCCL, which " + executor + " does not use; add --executor nccl, or remove " + name +
                    "\n");
    }
  }
  for (const char* flag : {"--view all-ranks", "--link bounce", "--link-ctas 8"}) {
    const std::string name(flag, std::string_view(flag).find(' '));
    for (const char* executor : {"cuda-peer", "nccl"}) {
      EXPECT_EQ(refusal(std::string("run --executor ") + executor + " " + flag),
                name + " is for virtual ranks on one GPU; add --executor cuda-virtual, or remove " + name + "\n");
    }
  }
}

TEST(ValidateGpu, ARecordOfLinksRefusesFlagsOfMeasurements) {
  for (const char* flag :
       {"--copies all", "--executor cpu", "--ranks 2", "--bytes '8 KiB'", "--both-ways", "--collectives '8 KiB'",
        "--iterations 3", "--out other.json", "--link-latency 1us", "--device 0"}) {
    const std::string name(flag, std::min(std::string_view(flag).find(' '), std::string_view(flag).size()));
    const Outcome outcome = run_program(std::string("commfuse-validate links never.json ") + flag);
    EXPECT_EQ(outcome.code, 2) << flag;
    EXPECT_EQ(outcome.err,
              name + " applies to a measurement, but a record was given; remove " + name + ", or the record\n");
  }
}

TEST(ValidateGpu, RanksOnGpusNeedALauncher) {
  const Outcome outcome = run_program("commfuse-validate check --executor nccl");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "each rank is a process, but only one was started; start more, as in mpirun -np 8 or torchrun\n");
}

TEST(FirstRun, WithoutAGpuExitsImmediatelyWith69AndOneSentence) {
  if (has_gpu()) {
    GTEST_SKIP() << "this machine has a GPU";
  }
  const std::filesystem::path bundle = std::filesystem::temp_directory_path() / "commfuse-first-run-test";
  std::filesystem::remove_all(bundle);
  const Outcome outcome =
      run_program("FIRST_RUN_PROGRAMS=" COMMFUSE_BIN_DIR " " COMMFUSE_SOURCE_DIR "/validate/cuda/first_run.sh run " +
                  bundle.string());
  EXPECT_EQ(outcome.code, 69) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("first_run: no usable GPU: ")) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(bundle));
}

/// Runs first_run.sh with fake programs: a validator that recognizes a GPU, writes the requested files and measures
/// nothing, a simulator whose `calibrate` does the same, and tests that pass.
class FirstRunByFakes : public testing::Test {
 protected:
  static constexpr const char* doctor =
      "[ $1 = doctor ] && echo 'cuda       yes: NVIDIA H100 80GB HBM3 (132 multiprocessors, 85 GB), driver' && exit\n";
  static constexpr const char* doctor_of_two_gpus =
      "[ $1 = doctor ] && echo 'cuda       yes: NVIDIA H100 80GB HBM3 (132 multiprocessors, 85 GB), driver; NVIDIA "
      "H100 "
      "80GB HBM3 (132 multiprocessors, 85 GB), driver' && exit\n";
  static constexpr const char* dry_run =
      "case \" $* \" in *' --dry-run '*)\n"
      "  echo $* >>\"$FIRST_RUN_PROGRAMS/../dry_runs\"\n"
      "  echo 'dry run: 1,000 launches, 2.5 s on the device, 1.5 s on the host'; exit ;;\n"
      "esac\n";
  static constexpr const char* answer =
      "for word; do [ \"$before\" = --out ] && echo \"$*\" >>\"$word\"; before=$word; done; echo \"ran $*\"\n";

  FirstRunByFakes() {
    validator("");
    program("commfuse-sim",
            "if [ $1 = calibrate ]; then\n"
            "  for word; do [ \"$before\" = --out ] && [ -e \"$word\" ] && exit 2; before=$word; done\n"
            "  exec commfuse-validate \"$@\"\n"
            "fi\n"
            "exec " COMMFUSE_BIN_DIR "/commfuse-sim \"$@\"");
    program("commfuse-test-validate", "echo \"tests $*\"");
  }
  static void program(const std::string& name, const std::string& body) {
    std::filesystem::create_directory("fakes");
    std::ofstream("fakes/" + name) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions("fakes/" + name, std::filesystem::perms::owner_all);
  }
  /// Makes a validator. `body` runs before the usual answer, and may exit.
  static void validator(const std::string& body) {
    program("commfuse-validate", std::string(doctor) + dry_run + body + "\n" + answer);
  }
  static Outcome script(const std::string& arguments, const std::string& variables = "") {
    return run_program(
        "PATH=\"$PWD/fakes:$PATH\" FIRST_RUN_PROGRAMS=\"$PWD/fakes\" FIRST_RUN_PATIENCE=20 FIRST_RUN_LIMIT=3500 " +
        variables + " " COMMFUSE_SOURCE_DIR "/validate/cuda/first_run.sh " + arguments);
  }
  static Outcome first_run(const std::string& verb, const std::string& variables = "") {
    return script(verb + " \"$PWD/bundle\"", variables);
  }
  static bool prints(const Outcome& outcome, const std::string& words) {
    return outcome.err.find(words) != std::string::npos;
  }
  static std::ptrdiff_t files_in(const std::filesystem::path& folder) {
    return std::distance(std::filesystem::recursive_directory_iterator(folder), {});
  }
  const OwnFolder folder_;
};

TEST_F(FirstRunByFakes, AllStagesFinishAndWriteAtMostEightFiles) {
  program("compute-sanitizer", "shift 4; exec \"$@\"");
  program("commfuse-validate", std::string(doctor_of_two_gpus) + dry_run + answer);
  const Outcome outcome = first_run("run");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::size_t ended = 0;
  for (std::size_t at = 0; (at = outcome.err.find(": exit ", at)) != std::string::npos; ++at, ++ended) {
    EXPECT_EQ(outcome.err.substr(at, 9), ": exit 0 ") << outcome.err;
    EXPECT_NE(outcome.err.find(" s, budget ", at), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(ended, 18U) << outcome.err;
  EXPECT_TRUE(prints(outcome, "18 stages done, 0 failed, 0 cannot run here, 0 left for the next call")) << outcome.err;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("bundle")) {
    EXPECT_TRUE(entry.is_regular_file()) << entry.path();
  }
  EXPECT_LE(files_in("bundle"), 8);
  EXPECT_EQ(std::ranges::count(contents_of("bundle/predictions.jsonl"), '\n'), 15);  // Three shapes at five paces.
  EXPECT_NE(contents_of("bundle/log.txt").find("tests --gtest_filter=Cuda*\n"), std::string::npos);
}

TEST_F(FirstRunByFakes, SeveralGpusRunAProcessEach) {
  const std::string note =
      "echo \"$RANK of $WORLD_SIZE, visible: $CUDA_VISIBLE_DEVICES: $*\" >>\"$FIRST_RUN_PROGRAMS/../calls\"\n";
  program("commfuse-validate", std::string(doctor_of_two_gpus) + dry_run + note + answer);
  const Outcome outcome = first_run("run", "CUDA_VISIBLE_DEVICES=3,5 FIRST_RUN_STAGES='launch gpus'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string calls = contents_of("calls");
  EXPECT_NE(calls.find(" of , visible: 3: probe --stage launch "), std::string::npos) << calls;
  EXPECT_NE(calls.find(" of , visible: 3,5: links --copies all --both-ways "), std::string::npos) << calls;
  for (const std::string rank : {"0", "1"}) {
    for (const std::string executor : {"nccl", "cuda-peer"}) {
      for (const std::string command : {"check", "links", "run"}) {
        const std::string call = rank + " of 2, visible: 3,5: " + command + " --executor " + executor + " ";
        EXPECT_NE(calls.find(call), std::string::npos) << call << calls;
      }
    }
  }
  EXPECT_EQ(run_program("tar -tzf bundle/records.tgz records/gpus/copies.json records/gpus/predictions-down.json "
                        "records/gpus/links-nccl.json records/gpus/gate_up-cuda-peer.json")
                .code,
            0);
}

TEST_F(FirstRunByFakes, APartThatFailsOnSeveralGpusFailsItsStage) {
  // Exit code 4 of links names a slow link, which is a finding.
  program("commfuse-validate",
          std::string(doctor_of_two_gpus) + dry_run +
              "case \"$RANK $*\" in '1 run --executor nccl'*) exit 1 ;; *links*) exit 4 ;; esac\n" + answer);
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES=gpus");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(prints(outcome, "gpus: exit 1 after ")) << outcome.err;
  EXPECT_TRUE(prints(outcome, ": failed: gate_up with nccl,down with nccl\n")) << outcome.err;
}

TEST_F(FirstRunByFakes, ADivisibleStageThatIsStoppedIsLeftForTheNextCall) {
  // `timeout` exits with 124 if the stage ends when asked to, with 137 if it must be killed.
  for (const char* code : {"124", "137"}) {
    program("timeout", std::string("[ -n \"$FIRST_RUN_BUDGET\" ] && exit ") + code + "; exec /usr/bin/timeout \"$@\"");
    const Outcome outcome = first_run("run", "FIRST_RUN_STAGES=middle");
    EXPECT_TRUE(prints(outcome, std::string("middle: exit ") + code + " after ")) << outcome.err;
    EXPECT_TRUE(prints(outcome, ": stopped; the next call continues it\n")) << outcome.err;
    EXPECT_TRUE(prints(outcome, "0 failed")) << outcome.err;
    std::filesystem::remove_all("bundle");
  }
}

TEST_F(FirstRunByFakes, OneGpuLeavesOutTheStageOfSeveral) {
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES=gpus");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(prints(outcome, "budget 180 s: there is one GPU, and this stage needs several\n")) << outcome.err;
}

/// A fake nvidia-smi logs a line and waits.
TEST_F(FirstRunByFakes, ClocksAreLoggedUntilTheCallEnds) {
  program(
      "nvidia-smi",
      "case $* in *--loop=5*) echo \"$$\" >\"$FIRST_RUN_PROGRAMS/../watcher\"; echo '0, 1980 MHz'; exec sleep 60 ;; "
      "esac");
  EXPECT_EQ(first_run("run", "FIRST_RUN_STAGES=predictions").code, 0);
  EXPECT_EQ(run_program("tar -xzOf bundle/records.tgz records/clocks.csv").out, "0, 1980 MHz\n");
  EXPECT_NE(run_program("kill -0 $(cat watcher)").code, 0) << "nvidia-smi still runs";
}

TEST_F(FirstRunByFakes, PredictionsAreOneObjectPerLine) {
  EXPECT_EQ(first_run("run", "FIRST_RUN_STAGES=predictions").code, 0);
  std::istringstream predictions(contents_of("bundle/predictions.jsonl"));
  for (std::string line; std::getline(predictions, line);) {
    EXPECT_TRUE(line.starts_with("{\"scope\":")) << line;
    EXPECT_TRUE(line.ends_with("]}")) << line;
  }
}

TEST_F(FirstRunByFakes, TheGpuChoosesTheHardwareFile) {
  const auto hardware_of = [](const std::string& gpu) {
    std::filesystem::remove_all("bundle");
    program("commfuse-validate", "echo 'cuda       yes: " + gpu + " (132 multiprocessors, 85 GB), driver'");
    const Outcome outcome = first_run("run", "FIRST_RUN_STAGES=environment");
    const std::string log = contents_of("bundle/log.txt");
    const std::size_t at = log.find("hardware: ");
    return at == std::string::npos ? outcome.err : log.substr(at + 10, log.find('\n', at) - at - 10);
  };
  EXPECT_EQ(hardware_of("NVIDIA H100 80GB HBM3"), "h100-sxm");
  EXPECT_EQ(hardware_of("NVIDIA H100 PCIe"), "h100-pcie");
  EXPECT_EQ(hardware_of("NVIDIA H100 NVL"), "h100-nvl");
  EXPECT_EQ(hardware_of("NVIDIA H200"), "h200-sxm");
  EXPECT_EQ(hardware_of("NVIDIA H20"), "h20-sxm");
  EXPECT_EQ(hardware_of("NVIDIA GH200 480GB"), "gh200");
  EXPECT_EQ(hardware_of("NVIDIA T4"),
            "first_run: unknown GPU 'NVIDIA T4'; name the hardware file to start from, as in "
            "FIRST_RUN_HARDWARE=h100-sxm\n");
  EXPECT_EQ(hardware_of("NVIDIA H200 MIG 1g.18gb"),  // an eighth of an H200
            "first_run: unknown GPU 'NVIDIA H200 MIG 1g.18gb'; name the hardware file to start from, as in "
            "FIRST_RUN_HARDWARE=h100-sxm\n");
}

TEST_F(FirstRunByFakes, LibrariesAreFoundWithPython) {
  if (run_program("python3 -c ''").code != 0) {
    GTEST_SKIP() << "python3 is not installed";
  }
  std::filesystem::create_directories("site/nvidia/nccl/lib");
  EXPECT_EQ(first_run("run", "FIRST_RUN_STAGES=environment PYTHONPATH=\"$PWD/site\"").code, 0);
  const std::string log = contents_of("bundle/log.txt");
  EXPECT_NE(log.find("site/nvidia/nccl/lib"), std::string::npos) << log;
}

TEST_F(FirstRunByFakes, AFusedAttentionThatDiffersFromOursFailsItsStage) {
  const auto stage_after = [](const std::string& difference) {
    std::filesystem::remove_all("bundle");
    validator("for word; do [ \"$before\" = --out ] && echo 'fused,fused_difference,keys=4096,share,1," + difference +
              ",0,0' >>\"$word\"; before=$word; done; exit 0");
    return first_run("run", "FIRST_RUN_STAGES=fused");
  };
  EXPECT_TRUE(prints(stage_after("0.0031"), "fused: exit 0"));
  const Outcome outcome = stage_after("0.0111");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(prints(outcome, "fused: exit 1")) << outcome.err;
  EXPECT_TRUE(prints(outcome, ": cuDNN is too far from ours: fused,")) << outcome.err;
}

TEST_F(FirstRunByFakes, AStageThatDoesNotFitWaitsForTheNextCall) {
  const std::string stages = "FIRST_RUN_STAGES='environment checks'";
  const Outcome first = first_run("run", stages + " FIRST_RUN_LIMIT=100");
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(prints(first, "environment: exit 0")) << first.err;
  EXPECT_TRUE(prints(first, "checks: left for the next call: its budget is 120 s and ")) << first.err;
  EXPECT_FALSE(std::filesystem::exists("bundle/checks.csv"));
  const Outcome second = first_run("run", stages);
  EXPECT_TRUE(prints(second, "environment: already done")) << second.err;
  EXPECT_TRUE(prints(second, "checks: exit 0")) << second.err;
}

TEST_F(FirstRunByFakes, AFailedStageIsTriedAgainAfterUntriedStages) {
  validator("case \" $* \" in *' launch '*) echo 'no such kernel'; exit 1 ;; esac");
  const Outcome first = first_run("run", "FIRST_RUN_STAGES='launch'");
  EXPECT_EQ(first.code, 1);
  EXPECT_TRUE(prints(first, " s, budget 20 s: no such kernel")) << first.err;
  validator("");
  const Outcome second = first_run("run", "FIRST_RUN_STAGES='launch links'");
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_LT(second.err.find("links: exit 0"), second.err.find("launch: exit 0")) << second.err;
}

TEST_F(FirstRunByFakes, AHangingStageIsStoppedAndItsOutputStays) {
  std::ofstream("first_run_budgets.txt") << "launch 1 0.1 0.1 1\n";
  validator("for word; do [ \"$before\" = --out ] && echo row >\"$word\"; before=$word; done; sleep 600");
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES=launch FIRST_RUN_PATIENCE=1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(prints(outcome, "launch: exit 124 after ")) << outcome.err;
  EXPECT_TRUE(prints(outcome, " s, budget 5 s: stopped")) << outcome.err;
  EXPECT_EQ(contents_of("bundle/probes.csv"), "row\n");
}

TEST_F(FirstRunByFakes, FailedTestsRunOnceMoreSeparately) {
  program(
      "commfuse-test-validate",
      "case $1 in *'Cuda*') echo '[  FAILED  ] CudaMoves.A (1 ms)'; echo '[  FAILED  ] CudaMoves.B (1 ms)'; exit 1 ;; "
      "*B) echo 'wrong bits'; exit 1 ;; esac");
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES=tests");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(prints(outcome, "budget 60 s: 2 tests failed")) << outcome.err;
  EXPECT_NE(contents_of("bundle/log.txt").find("CudaMoves.A passes on its own\nwrong bits\n"), std::string::npos);
}

TEST_F(FirstRunByFakes, TestsThatEndEarlyAreNotZeroFailedTests) {
  program("commfuse-test-validate", "echo '[ RUN      ] CudaMoves.A'; exit 139");
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES=tests");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(prints(outcome, "budget 60 s: the tests ended with exit 139 in CudaMoves.A")) << outcome.err;
}

TEST_F(FirstRunByFakes, OpsThatCouldNotBeMeasuredDoNotStopTheStage) {
  program("commfuse-validate", std::string(doctor) + answer + "[ $1 != bench ] || exit 3");
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES='middle calibration'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists("bundle/records.tgz")) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists("bundle/h100-sxm-measured.yaml")) << outcome.err;
}

TEST_F(FirstRunByFakes, AHardwareFileMayBeAPath) {
  std::filesystem::copy(COMMFUSE_SOURCE_DIR "/configs/hardware/h100-sxm.yaml", "My_H100.yaml");
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES=calibration FIRST_RUN_HARDWARE=\"$PWD/My_H100.yaml\"");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(contents_of("bundle/my-h100-measured.yaml").find("--name my-h100-measured"), std::string::npos);
}

TEST_F(FirstRunByFakes, AnUnknownStageIsRefused) {
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES='links product'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(prints(outcome, "unknown stage 'product' in FIRST_RUN_STAGES; stages: all environment ")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists("bundle"));
}

TEST_F(FirstRunByFakes, ALimitThatIsNotAWholeNumberIsRefused) {
  for (const std::string limit : {"10m", "0570", "-1", "9.5"}) {
    const Outcome outcome = first_run("run", "FIRST_RUN_LIMIT=" + limit);
    EXPECT_EQ(outcome.code, 2) << limit;
    EXPECT_EQ(outcome.err,
              "first_run: FIRST_RUN_LIMIT is '" + limit + "'; write a whole number, as in FIRST_RUN_LIMIT=2\n");
  }
  EXPECT_FALSE(std::filesystem::exists("bundle"));
}

TEST_F(FirstRunByFakes, PackDoesNotEmptyAFolderThatHoldsNoKit) {
  std::filesystem::create_directory("bundle");
  std::ofstream("bundle/results") << "x\n";
  const Outcome outcome = first_run("pack", "FIRST_RUN_BUILD=nowhere");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(prints(outcome, "bundle is not empty and holds no kit; give another folder")) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists("bundle/results"));
}

TEST_F(FirstRunByFakes, ASignalStopsTheStage) {
  validator(
      "[ $1 != probe ] || { here=\"$FIRST_RUN_PROGRAMS/..\"; trap 'echo >\"$here/stopped\"; exit 1' TERM; "
      "echo >\"$here/started\"; sleep 60 & wait; }");
  const Outcome outcome = run_program(
      "FIRST_RUN_PROGRAMS=\"$PWD/fakes\" FIRST_RUN_STAGES=launch " COMMFUSE_SOURCE_DIR
      "/validate/cuda/first_run.sh run \"$PWD/bundle\" & for i in $(seq 300); do [ ! -e started ] || break; sleep 0.1; "
      "done; kill $!; wait $!; code=$?; for i in $(seq 50); do [ ! -e stopped ] || break; sleep 0.1; done; exit $code");
  EXPECT_EQ(outcome.code, 143) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists("stopped")) << outcome.err;
}

TEST_F(FirstRunByFakes, ACheckOutOfTimePassesAndAWrongCheckFails) {
  validator("case $1 in check) echo header; echo \"row $*\"; exit 3 ;; esac");
  EXPECT_TRUE(prints(first_run("run", "FIRST_RUN_STAGES=checks"), "checks: exit 0"));
  const std::string rows = contents_of("bundle/checks.csv");
  EXPECT_EQ(std::ranges::count(rows, '\n'), 4) << rows;  // A header, and 2, 4 and 8 ranks.
  EXPECT_NE(rows.find("--ranks 2 --limit 21 s -o csv"), std::string::npos) << rows;
  std::filesystem::remove_all("bundle");
  validator("case $1 in check) exit 4 ;; esac");
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES=checks");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(prints(outcome, "checks: exit 4")) << outcome.err;
}

TEST_F(FirstRunByFakes, AnEmptiedFolderOnAnotherMachineContinuesTheRun) {
  const std::string work = "FIRST_RUN_WORK=\"$PWD/work\" OUT=\"$PWD/out\" ";
  EXPECT_EQ(script("run", work + "FIRST_RUN_STAGES='environment middle'").code, 0);
  EXPECT_EQ(files_in("out"), 3) << "log.txt, comparisons.jsonl, records.tgz";
  std::filesystem::copy("out", "came_back", std::filesystem::copy_options::recursive);
  std::filesystem::remove_all("out");
  const Outcome same_machine = script("run", work + "FIRST_RUN_STAGES=environment");
  EXPECT_TRUE(prints(same_machine, "environment: already done")) << same_machine.err;
  EXPECT_TRUE(std::filesystem::exists("out/comparisons.jsonl"));
  std::filesystem::remove_all("out");
  std::filesystem::remove_all("work");
  const Outcome another = script("run \"$PWD/out\" \"$PWD/came_back\"", work + "FIRST_RUN_STAGES='middle calibration'");
  EXPECT_TRUE(prints(another, "middle: already done")) << another.err;
  EXPECT_TRUE(prints(another, "calibration: exit 0")) << another.err;
  const std::string comparisons = contents_of("out/comparisons.jsonl");
  EXPECT_NE(comparisons.find("\"fitted\":false"), std::string::npos) << comparisons;
  EXPECT_NE(comparisons.find("\"fitted\":true"), std::string::npos) << comparisons;
  std::ofstream("work/log.txt") << "gpu: NVIDIA H100 80GB HBM3\n";
  EXPECT_EQ(script("run", work + "FIRST_RUN_STAGES=middle").code, 0) << "runs again on the same files";
  EXPECT_NE(contents_of("out/comparisons.jsonl").find("\"fitted\":true"), std::string::npos);
  EXPECT_EQ(script("run", work + "FIRST_RUN_STAGES=calibration").code, 0) << "runs again on the same files";
}

TEST_F(FirstRunByFakes, DoesNotContinueWithResultsOfAnotherGpu) {
  EXPECT_EQ(first_run("run", "FIRST_RUN_STAGES=environment").code, 0);
  program("commfuse-validate", "echo 'cuda       yes: NVIDIA H200 (132 multiprocessors, 151 GB), driver'");
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES=environment");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(prints(outcome, "holds results of NVIDIA H100 80GB HBM3, but this is NVIDIA H200; give another folder"))
      << outcome.err;
}

TEST_F(FirstRunByFakes, EveryPaceHasTheCtasThatItsBandwidthNeeds) {
  validator("case $1 in run) echo \"$*\" >>\"$FIRST_RUN_PROGRAMS/../runs\" ;; esac");
  EXPECT_EQ(first_run("run", "FIRST_RUN_STAGES=middle").code, 0);
  std::istringstream runs(contents_of("runs"));
  int measured = 0;
  for (std::string line; std::getline(runs, line); ++measured) {
    const auto number_after = [&](const std::string& flag) {
      return std::stod(line.substr(line.find(flag) + flag.size()));
    };
    const double ctas = number_after("--link-ctas ");
    EXPECT_GE(ctas * 15, number_after("--link-bandwidth ")) << line;
    EXPECT_LE(ctas, 32) << line;
    EXPECT_EQ(number_after("--multiprocessors ") + ctas, 132) << line;
  }
  const std::string log = contents_of("bundle/log.txt");
  int omitted = 0;
  for (std::size_t at = 0; (at = log.find("needs more than 32 CTAs", at)) != std::string::npos; ++at) {
    ++omitted;
  }
  EXPECT_EQ(measured + omitted, 15) << log;
  EXPECT_GE(measured, 8) << log;
}

TEST_F(FirstRunByFakes, CopiesLeaveHalfOfASmallGpuToGemms) {
  program(
      "commfuse-validate",
      "[ $1 = doctor ] && echo 'cuda       yes: NVIDIA H100 80GB HBM3 MIG 1g.10gb (16 multiprocessors, 10 GB), driver' "
      "&& exit\ncase $1 in run) echo \"$*\" >>\"$FIRST_RUN_PROGRAMS/../runs\" ;; esac\n" +
          std::string(dry_run) + answer);
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES=middle FIRST_RUN_HARDWARE=h100-sxm");
  EXPECT_TRUE(prints(outcome, "middle: exit 0")) << outcome.err;
  std::istringstream runs(contents_of("runs"));
  int measured = 0;
  const std::string flag = "--multiprocessors ";
  for (std::string line; std::getline(runs, line); ++measured) {
    EXPECT_GE(std::stoi(line.substr(line.find(flag) + flag.size())), 8) << line;
  }
  EXPECT_GT(measured, 0);
  EXPECT_NE(contents_of("bundle/log.txt").find("needs more than 8 CTAs"), std::string::npos);
}

TEST_F(FirstRunByFakes, ALocaleWithADecimalCommaChangesNoNumber) {
  run_program("localedef -i de_DE -f UTF-8 ./de_DE.UTF-8");
  if (!std::filesystem::exists("de_DE.UTF-8/LC_NUMERIC")) {
    GTEST_SKIP() << "the sources of locales are not installed";
  }
  validator("case $1 in run) echo \"$*\" >>\"$FIRST_RUN_PROGRAMS/../runs\" ;; esac");
  EXPECT_EQ(first_run("run", "LOCPATH=\"$PWD\" LC_ALL=de_DE.UTF-8 FIRST_RUN_STAGES=middle").code, 0);
  std::istringstream runs(contents_of("runs"));
  int bandwidths = 0;
  for (std::string line; std::getline(runs, line); ++bandwidths) {
    const std::string rest = line.substr(line.find("--link-bandwidth "));
    EXPECT_LT(rest.find(" GB/s"), rest.find(',')) << line;
  }
  EXPECT_GT(bandwidths, 0);
}

TEST_F(FirstRunByFakes, ATooLargeFileIsCompressedOrOmittedAndNamed) {
  validator(
      "case $1 in bench) head -c 20000000 /dev/zero >\"$FIRST_RUN_PROGRAMS/../bundle/.work/bench.json\" ;;\n"
      "check) head -c 20000000 /dev/urandom ;; esac");
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES='calibration checks'");
  EXPECT_TRUE(std::filesystem::exists("bundle/bench.json.gz")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists("bundle/bench.json"));
  EXPECT_TRUE(prints(outcome, "omitted from the bundle: checks.csv, ")) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists("bundle/.work/checks.csv"));
}

TEST_F(FirstRunByFakes, OnAFullDiskTheStateAndTheOlderFilesStay) {
  EXPECT_EQ(first_run("run", "FIRST_RUN_STAGES=launch").code, 0);
  const std::string before = contents_of("bundle/probes.csv");
  program("cp", "case $* in *probes.csv) echo cut >\"$2\"; exit 1 ;; esac; exec /bin/cp \"$@\"");
  const Outcome outcome = first_run("run", "FIRST_RUN_STAGES=links FIRST_RUN_WORK=\"$PWD/work\"");
  EXPECT_TRUE(prints(outcome, "probes.csv cannot be copied to the bundle; it is in ")) << outcome.err;
  EXPECT_EQ(contents_of("bundle/probes.csv"), before);
  EXPECT_NE(contents_of("work/probes.csv").find("--stage links"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists("bundle/.new"));
}

TEST_F(FirstRunByFakes, ThePlanCountsEveryStageOnceAndFitsIntoTwoCalls) {
  const Outcome outcome = first_run("plan", "FIRST_RUN_QUICK=1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("launch            11 s         1000   2.500 s   1.500 s  launches"), std::string::npos)
      << outcome.out;
  const std::size_t sum = outcome.out.find("\ntotal");
  ASSERT_NE(sum, std::string::npos) << outcome.out;
  EXPECT_LE(std::stoi(outcome.out.substr(sum + 6)), 2 * 570);
  EXPECT_TRUE(prints(outcome, "the stages can run here")) << outcome.err;
  const std::string counted = contents_of("dry_runs");
  EXPECT_EQ(counted.find("--quick"), std::string::npos) << counted;
  EXPECT_EQ(first_run("plan").out, outcome.out);
  EXPECT_EQ(contents_of("dry_runs"), counted);
}

TEST_F(FirstRunByFakes, TheSanitizerRunsThreeToolsAndItsAbsenceIsReported) {
  if (run_program("command -v compute-sanitizer || command -v /usr/local/cuda/bin/compute-sanitizer").code != 0) {
    const Outcome missing = first_run("sanitize");
    EXPECT_EQ(missing.code, 69);
    EXPECT_EQ(missing.err, "first_run: no compute-sanitizer here; it comes with the CUDA Toolkit\n");
    const Outcome stage = first_run("run", "FIRST_RUN_STAGES=sanitize");
    EXPECT_EQ(stage.code, 0) << stage.err;
    EXPECT_TRUE(prints(stage, " s, budget 60 s: no compute-sanitizer here")) << stage.err;
  }
  program("compute-sanitizer", "echo \"kind $2\"; shift 4; exec \"$@\"");
  EXPECT_EQ(first_run("sanitize").code, 0);
  const std::string log = contents_of("bundle/log.txt");
  for (const char* kind : {"kind memcheck\n", "kind racecheck\n", "kind synccheck\n"}) {
    EXPECT_NE(log.find(std::string(kind) + "ran check --executor cuda-virtual"), std::string::npos) << log;
  }
  program("compute-sanitizer", "exit 1");
  EXPECT_EQ(first_run("sanitize").code, 1);
}

TEST_F(FirstRunByFakes, AnUnknownVerbIsRefused) {
  const Outcome outcome = first_run("start");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.find("usage: validate/cuda/first_run.sh"), 0U) << outcome.err;
}

}  // namespace
}  // namespace commfuse::test
