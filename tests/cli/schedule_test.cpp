// SPDX-License-Identifier: Apache-2.0
// Tests commfuse-sim schedule list, show and check.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "model/strategies/scope.h"
#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

/// A file that is removed after the test.
class Schedule {
 public:
  explicit Schedule(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("commfuse-schedule-" + std::to_string(getpid()) + ".yaml")) {
    std::ofstream(path_) << text;
  }
  ~Schedule() { std::filesystem::remove(path_); }
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string shown(const std::string& arguments) {
  return run_program("commfuse-sim schedule show --scope qkv --strategy commfuse --ranks 4 " + arguments).out;
}

TEST(CommfuseSimSchedule, ListDescribesEachStrategyAndItsExposedTime) {
  const Outcome outcome = run_program("commfuse-sim schedule list");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("sliced\n  k slices"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("  leaves exposed: the whole collective\n"), std::string::npos);
  EXPECT_NE(outcome.out.find("  schedules: ring; ring, add on aux; direct; "), std::string::npos);
  EXPECT_NE(outcome.out.find("  applies to: qkv, out_proj, "), std::string::npos);
  EXPECT_NE(outcome.out.find("  peak memory: "), std::string::npos);
}

TEST(CommfuseSimSchedule, WiresOfEightBitsArePricedByTheirBytes) {
  const auto makespan = [](const std::string& wire) {
    const Schedule schedule(
        run_program("commfuse-sim schedule show --scope qkv --strategy serial --ranks 4 -o yaml --wire " + wire).out);
    const std::string row = run_program(
                                "commfuse-sim run --hardware h100-sxm --model llama-3.1-8b --seq 64K -o json "
                                "--schedule " +
                                schedule.path())
                                .out;
    const std::string key = "\"makespan_us\":";
    const std::size_t at = row.find(key);
    return at == std::string::npos ? 0.0 : std::stod(row.substr(at + key.size()));
  };
  const double wide = makespan("dtype");
  const double narrow = makespan("fp8");
  EXPECT_GT(narrow, 0.0);
  EXPECT_LT(narrow, 0.95 * wide);
  const Outcome unknown = run_program("commfuse-sim schedule show --wire fp4");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("--wire: unknown dtype 'fp4'"), std::string::npos) << unknown.err;
}

TEST(CommfuseSimSchedule, ShowDrawsTheStepsOfThePaper) {
  const std::string steps = shown("--form ring");
  EXPECT_NE(steps.find("step"), std::string::npos) << steps;
  EXPECT_NE(shown("--form ring -o yaml").find("schema: commfuse.schedule/1\n"), std::string::npos);
}

TEST(CommfuseSimSchedule, ShowPrintsOneScheduleOrAllOnRequest) {
  const auto count = [](const std::string& text) {
    std::size_t occurrences = 0;
    for (std::size_t at = text.find("qkv, 4 ranks\n"); at != std::string::npos;
         at = text.find("qkv, 4 ranks\n", at + 1)) {
      ++occurrences;
    }
    return occurrences;
  };
  EXPECT_EQ(count(shown("")), 1U);
  EXPECT_NE(shown("--directions halves --lanes 2").find("commfuse (ring both ways, halves, 2 lanes) qkv, 4 ranks\n"),
            std::string::npos);
  EXPECT_GT(count(shown("--variants all")), 5U);
  const Outcome refused = run_program("commfuse-sim schedule show --strategy commfuse --inner 3 --ranks 8");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "an inner ring of 3 does not divide 8 ranks; choose 2 or 4\n");
}

TEST(CommfuseSimSchedule, SeveralSchedulesInYamlAreDocuments) {
  const std::string show = "commfuse-sim schedule show --scope qkv --ranks 2 -o yaml --strategy ";
  const std::string serial = run_program(show + "serial").out;
  const std::string sliced = run_program(show + "sliced").out;
  EXPECT_EQ(run_program(show + "serial,sliced").out, serial + "---\n" + sliced);
}

TEST(CommfuseSimSchedule, EveryGeneratedScheduleIsProved) {
  const Outcome outcome = run_program("commfuse-sim schedule check --strategy all --ranks 1..8");
  EXPECT_EQ(outcome.code, 0);
  std::size_t schedules = 0;
  for (const Scope scope : all_scopes) {
    for (std::int32_t ranks = 1; ranks <= 8; ++ranks) {
      for (const Strategy& strategy : strategies()) {
        schedules += schedules_to_prove(strategy, kinds_of(scope), ranks).size();
      }
    }
  }
  EXPECT_GT(schedules, 2000U);
  EXPECT_EQ(outcome.out,
            std::to_string(schedules) + " schedules proved: matched, free of deadlock and hazards, contents exact\n");
}

TEST(CommfuseSimSchedule, AWordGivenTwiceIsProvedOnce) {
  const std::string check = "commfuse-sim schedule check --ranks 2 --scope mlp";
  EXPECT_EQ(run_program(check + ",mlp --strategy serial,serial").out,
            "1 schedule proved: matched, free of deadlock and hazards, contents exact\n");
  EXPECT_EQ(run_program(check + " --strategy all,serial").out, run_program(check + " --strategy all").out);
}

TEST(CommfuseSimSchedule, AFileIsProvedLikeAGeneratedOne) {
  const Schedule good(shown("--form direct -o yaml"));
  const Outcome outcome = run_program("commfuse-sim schedule check " + good.path());
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "1 schedule proved: matched, free of deadlock and hazards, contents exact\n");
}

TEST(CommfuseSimSchedule, AWrongFileFailsWithItsFindingsAndExitsWith4) {
  std::string text = shown("--form direct -o yaml");
  const std::size_t shift = text.find("shift: 3");
  ASSERT_NE(shift, std::string::npos) << text;
  const Schedule wrong(text.replace(shift, 8, "shift: 2"));
  const Outcome outcome = run_program("commfuse-sim schedule check " + wrong.path());
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.out.rfind(wrong.path() + ": rank 0 ends with qkv[2,0] in row 1 of qkv instead of qkv[1,0]\n", 0),
            0U)
      << outcome.out;
  EXPECT_NE(outcome.out.find("\n1 failed\n"), std::string::npos) << outcome.out;
}

TEST(CommfuseSimSchedule, RefusesSchedulesTooLargeForTheMachineAndExitsWith2) {
  const std::string fewer = "; choose fewer ranks\n";
  for (const auto& [arguments, sentence] :
       {std::pair("check --strategy sliced --ranks 512 --scope attention",
                  "sliced (k=1, by query) attention on 512 ranks is too large to prove: more than 134217728 blocks"),
        std::pair("show --strategy commfuse --ranks 1024",
                  "commfuse (ring) mlp on 1024 ranks goes through more than 67108864 blocks, too many to show step by "
                  "step"),
        std::pair("mutate --ranks 1024",
                  "serial qkv on 1024 ranks goes through more than 16777216 blocks, too many to mutate")}) {
    const Outcome outcome = run_program(std::string("commfuse-sim schedule ") + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.err, sentence + fewer);
  }
}

TEST(CommfuseSimSchedule, UserErrorsExitWith2) {
  const Schedule unreadable("schema: commfuse.schedule/1\nname: [\n");
  const Outcome broken = run_program("commfuse-sim schedule check " + unreadable.path());
  EXPECT_EQ(broken.code, 2);
  EXPECT_EQ(broken.err.rfind(unreadable.path() + ":", 0), 0U) << broken.err;
  const Outcome absent = run_program("commfuse-sim schedule check no-such.yaml");
  EXPECT_EQ(absent.code, 2);
  EXPECT_EQ(absent.err, "no-such.yaml: this file cannot be read; give the path of a schedule in YAML\n");
  EXPECT_EQ(run_program("commfuse-sim schedule check --strategy serail").err,
            "--strategy: unknown strategy 'serail'; did you mean 'serial'?\n");
  EXPECT_EQ(run_program("commfuse-sim schedule shwo").err, "unknown command 'shwo'; did you mean 'show'?\n");
}

}  // namespace
}  // namespace commfuse::test
