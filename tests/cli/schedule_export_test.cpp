// SPDX-License-Identifier: Apache-2.0
// Tests commfuse-sim schedule export: every format, to stdout and to files, from settings and from files.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* ring =
    "--strategy commfuse --form ring --directions one --group 1 --inner 1 --sub-slices 1 --scope qkv --ranks 4";

/// A folder that is removed after the test.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("commfuse-export-" + std::to_string(getpid()))) {
    fs::create_directory(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  fs::path path_;
};

Outcome exported(const std::string& arguments) { return run_program("commfuse-sim schedule export " + arguments); }

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST(ScheduleExport, SaysThatAScheduleStatesNoExperts) {
  const std::string experts = "--strategy serial --scope gate_up --ranks 4 --model ";
  const std::string note = "note: a schedule states no experts: its GEMM has a single weight, not the 32 of ";
  for (const std::string command : {"export ", "show "}) {
    const Outcome outcome = run_program("commfuse-sim schedule " + command + experts + "8192x8192-e32-top4");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, note + "8192x8192-e32-top4\n");
    EXPECT_EQ(run_program("commfuse-sim schedule " + command + experts + "8192x8192").err, "");
  }
  EXPECT_EQ(exported(experts + "8192x8192-e32-top4 -o goal").err,
            "note: durations count the 32 experts of 8192x8192-e32-top4; operations and tensor sizes do not\n");
}

TEST(ScheduleExport, YamlIsTheCanonicalText) {
  const Outcome outcome = exported(ring);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, run_program(std::string("commfuse-sim schedule show -o yaml ") + ring).out);
}

TEST(ScheduleExport, JsonIsReadBackAsASchedule) {
  const Folder folder;
  EXPECT_EQ(exported(std::string("-o json --out ") + (folder / "ring.json") + " " + ring).code, 0);
  const Outcome back = exported(folder / "ring.json");
  EXPECT_EQ(back.code, 0) << back.err;
  EXPECT_EQ(back.out, exported(ring).out);
  EXPECT_EQ(run_program("commfuse-sim schedule check " + (folder / "ring.json")).code, 0);
}

TEST(ScheduleExport, DotDrawsTheRequestedRanks) {
  const Outcome every_rank = exported(std::string("-o dot ") + ring);
  EXPECT_EQ(every_rank.code, 0) << every_rank.err;
  EXPECT_EQ(every_rank.out.rfind("digraph schedule {\n", 0), 0U);
  EXPECT_EQ(count_of(every_rank.out, "subgraph cluster_"), 4U);
  EXPECT_EQ(count_of(exported(std::string("-o dot --ranks-shown 1,3 ") + ring).out, "subgraph cluster_"), 2U);
  const Outcome many = exported("-o dot --strategy serial --ranks 16");
  EXPECT_EQ(many.code, 2);
  EXPECT_EQ(many.err, "16 ranks are too many for one picture; choose some with --ranks-shown 0..7\n");
  EXPECT_EQ(exported("-o dot --strategy serial --ranks 16 --ranks-shown 8..15").code, 0);
  EXPECT_EQ(exported("-o dot --strategy serial --ranks 4 --ranks-shown 4").code, 2);
}

TEST(ScheduleExport, GoalIsPricedAtThePoint) {
  const Outcome goal = exported(std::string("-o goal --seq 8K ") + ring);
  EXPECT_EQ(goal.code, 0) << goal.err;
  EXPECT_EQ(count_of(goal.out, "\nnum_ranks 4\n"), 1U);
  // A shard of 8192 / 4 tokens of 8192 elements in bf16, over 3 steps.
  EXPECT_EQ(count_of(goal.out, ": send 33554432b to "), 4U * 3);
  EXPECT_EQ(count_of(goal.out, ": recv 33554432b from "), 4U * 3);
  const Outcome longer = exported(std::string("-o goal --seq 16K ") + ring);
  EXPECT_EQ(count_of(longer.out, ": send 67108864b to "), 4U * 3);
  const Outcome by_data = exported(std::string("-o goal --message-order data --seq 8K ") + ring);
  EXPECT_EQ(by_data.code, 0);
  EXPECT_LT(count_of(by_data.out, " requires "), count_of(goal.out, " requires "));
}

TEST(ScheduleExport, AFileIsWrittenWholeOrNotAtAll) {
  const Folder folder;
  const std::string path = folder / "ring.goal";
  EXPECT_EQ(exported("-o goal --out " + path + " " + ring).code, 0);
  EXPECT_EQ(contents_of(path), exported(std::string("-o goal ") + ring).out);
  const Outcome nowhere = exported("-o goal --out " + (folder / "no/ring.goal") + " " + ring);
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("create it or choose another path"), std::string::npos) << nowhere.err;
  EXPECT_EQ(folder.names(), std::vector<std::string>{"ring.goal"});
}

TEST(ScheduleExport, ChakraIsOneFilePerRank) {
  const Folder folder;
  const Outcome outcome = exported("-o chakra --time-scale 1000 --out " + (folder / "ring") + " " + ring);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "wrote " + (folder / "ring") + ".0.et to " + (folder / "ring") + ".3.et\n");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"ring.0.et", "ring.1.et", "ring.2.et", "ring.3.et"}));
  EXPECT_GT(fs::file_size(folder / "ring.3.et"), 500U);
  EXPECT_EQ(exported(std::string("-o chakra ") + ring).err,
            "chakra writes one file per rank; name them with --out, as in --out traces/mine\n");
}

TEST(ScheduleExport, AScheduleFromAFileIsPricedLikeAGeneratedOne) {
  const Outcome goal = exported("doubling -o goal --seq 8K");
  EXPECT_EQ(goal.code, 0) << goal.err;
  EXPECT_EQ(count_of(goal.out, ": send 33554432b to "), 4U);  // Each rank sends one shard, then two.
  EXPECT_EQ(count_of(goal.out, ": send 67108864b to "), 4U);
  EXPECT_EQ(exported("doubling -o goal --ranks 8").err,
            "doubling.yaml fixes ranks at 4, but --ranks requests 8; set ranks to 4 or remove the setting\n");
  EXPECT_EQ(exported("doubling -o goal --strategy serial").err,
            "a strategy chooses among generated schedules; remove it, or the file\n");
  EXPECT_EQ(exported("doubling --seq 8K").err,
            "--seq: has no effect when a file is exported in a format without times; remove --seq\n");
  EXPECT_EQ(exported("doubling doubling").err, "a single schedule is required; name one file\n");
}

TEST(ScheduleExport, AWrongFileIsNotExported) {
  const Folder folder;
  std::string text = exported(std::string("--form direct ") + "--strategy commfuse --scope qkv --ranks 4").out;
  const std::size_t shift = text.find("shift: 3");
  ASSERT_NE(shift, std::string::npos) << text;
  std::ofstream(folder / "wrong.yaml") << text.replace(shift, 8, "shift: 2");
  for (const std::string format : {"yaml", "dot", "goal"}) {
    const Outcome outcome = exported((folder / "wrong.yaml") + " -o " + format);
    EXPECT_EQ(outcome.code, 4) << format;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("instead of qkv[1,0]"), std::string::npos) << outcome.err;
  }
}

TEST(ScheduleExport, ExportsAndNamesTheFastestOfSeveralSchedules) {
  const Outcome outcome = exported("--strategy sliced --seq 8K --scope mlp --ranks 8");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err,
            "using the fastest schedule at this point: sliced (k=4)\n");  // The README's demo shows this line.
  EXPECT_NE(outcome.out.find("name: \"sliced (k=4) mlp\"\n"), std::string::npos) << outcome.out.substr(0, 200);
  const Outcome variants = exported("--strategy sliced --variants all");
  EXPECT_EQ(variants.code, 2);
  EXPECT_NE(variants.err.find("or remove --variants to take the fastest\n"), std::string::npos) << variants.err;
  const Outcome several = exported("--strategy serial,sliced");
  EXPECT_EQ(several.code, 2);
  EXPECT_EQ(
      several.err,
      "a single schedule is required, but these settings choose serial, sliced; choose a strategy with --strategy\n");
}

TEST(ScheduleExport, TheShortHelpNamesEveryFormat) {
  const Outcome outcome = exported("--help");
  EXPECT_NE(outcome.out.find(" yaml, json, dot (Graphviz), goal, chakra\n"), std::string::npos) << outcome.out;
}

TEST(ScheduleExport, UserErrorsExitWith2) {
  EXPECT_EQ(exported("-o dto").err, "--format: unknown format 'dto'; did you mean 'dot'?\n");
  EXPECT_EQ(exported("--ranks-shown 1").err, "--ranks-shown: applies only to -o dot; remove --ranks-shown\n");
  EXPECT_EQ(exported("-o dot --message-order data").err,
            "--message-order: applies only to -o goal and -o chakra; remove --message-order\n");
  EXPECT_EQ(exported("-o goal --time-scale 10").err, "--time-scale: applies only to -o chakra; remove --time-scale\n");
  EXPECT_EQ(exported("-o chakra --out x --time-scale 0").err,
            "--time-scale: '0' is not a whole number from 1 to 1000000; write one, such as 1000\n");
  EXPECT_EQ(exported("-o goal --message-order dat").err,
            "--message-order: unknown order 'dat'; did you mean 'data'?\n");
  EXPECT_EQ(exported("-o goal --strategy serial --size experts=4").err,
            "--size: the model defines all sizes of a generated schedule; remove --size, or name a file\n");
  EXPECT_EQ(exported("-o goal --strategy serial --ranks 16").err,
            "16 ranks do not fit h100-sxm, which has 8 GPUs; choose ranks up to 8\n");
  EXPECT_EQ(exported("no-such.yaml").code, 2);
}

TEST(ScheduleExport, AFileWithoutTimesRefusesEverySetting) {
  for (const char* flag : {"--ranks", "--set", "--config", "--size"}) {
    const Outcome outcome =
        exported(std::string(COMMFUSE_SOURCE_DIR "/configs/schedules/doubling.yaml ") + flag + " 8");
    EXPECT_EQ(outcome.code, 2) << flag;
    EXPECT_EQ(
        outcome.err,
        std::string(flag) + ": has no effect when a file is exported in a format without times; remove " + flag + "\n");
  }
}

}  // namespace
}  // namespace commfuse::test
