// SPDX-License-Identifier: Apache-2.0
// Tests commfuse-sim sweep as a person uses it: what it writes, what it leaves unchanged, its exit codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "sim/sweep/database.h"
#include "tests/cli/program.h"
#include "tests/texts.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class SweepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("commfuse-cli-sweep-" + std::to_string(getpid()) + "-" +
                                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string file(const std::string& body) const {
    std::ofstream(path("a.yaml")) << "schema: commfuse.sweep/1\n" << body;
    return path("a.yaml");
  }
  [[nodiscard]] Outcome sweep(const std::string& body, const std::string& arguments = "") const {
    return run_program("commfuse-sim sweep " + file(body) + " --out " + path("out") + " " + arguments);
  }
  /// Returns everything in a folder, including hidden files.
  [[nodiscard]] std::vector<std::string> names_in(const std::string& name) const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(path(name))) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  [[nodiscard]] std::string written(const std::string& name) const { return contents_of(path("out/" + name)); }

 private:
  fs::path folder_;
};

using Names = std::vector<std::string>;
const std::string small_sweep = "axes:\n  - ranks: [2, 4]\n  - seq: 1K..2K\n";

TEST_F(SweepTest, WritesResultsReportAndSettingsAndPrintsTheTableOfRun) {
  const Outcome outcome = sweep(small_sweep);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(names_in("out"), (Names{"crossovers.csv", "map.csv", "map.json", "report.html", "results.csv",
                                    "results.json", "results.sqlite", "settings.yaml"}));
  const Outcome run = run_program("commfuse-sim run --axis ranks=2,4 --axis seq=1K..2K");
  EXPECT_EQ(outcome.out, run.out);
  EXPECT_EQ(written("results.csv"), run_program("commfuse-sim run --axis ranks=2,4 --axis seq=1K..2K -o csv").out);
  const std::regex verdict(",\"verdict\":(\"[a-z]*\"|null)");  // Only `run` has this column.
  EXPECT_EQ(
      written("results.json"),
      std::regex_replace(run_program("commfuse-sim run --axis ranks=2,4 --axis seq=1K..2K -o json").out, verdict, ""));
  EXPECT_NE(written("report.html").find("<svg"), std::string::npos);
}

TEST_F(SweepTest, ALargeSweepNamesTheCommandForItsReport) {
  const Outcome outcome = sweep(
      "set: {strategy: {name: serial}, uncertainty: off}\naxes:\n  - ranks: [2, 4, 8]\n  - seq: 1K..512K+64\n"
      "outputs: [report, map]\n");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string command = "commfuse-sim report " + path("out") + " --out " + path("out/report.html");
  EXPECT_EQ(outcome.err, "no report.html: 24531 rows exceed the limit of 20000; write it with " + command +
                             "\nno map: 24531 rows exceed the limit of 20000; narrow the sweep\n");
  EXPECT_EQ(outcome.out.rfind("24531 points, 24531 rows in ", 0), 0U) << outcome.out;
  EXPECT_EQ(names_in("out"), (Names{"results.sqlite", "settings.yaml"}));
  ASSERT_EQ(run_program(command).code, 0);
  EXPECT_NE(written("report.html").find("id=\"block-rows\""), std::string::npos);
}

TEST_F(SweepTest, CommandsThatASweepNamesQuoteItsFolder) {
  const std::string folder = path("my results");
  const Outcome outcome = run_program(
      "commfuse-sim sweep " +
      file("set: {strategy: {name: serial}, uncertainty: off}\naxes:\n  - ranks: [2, 4, 8]\n  - seq: 1K..512K+64\n"
           "outputs: [report]\n") +
      " --out '" + folder + "'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "no report.html: 24531 rows exceed the limit of 20000; write it with commfuse-sim report '" +
                             folder + "' --out '" + folder + "/report.html'\n");
  EXPECT_NE(outcome.out.find("\nshow them: commfuse-sim results '" + folder + "/results.sqlite' --where "),
            std::string::npos)
      << outcome.out;
}

TEST_F(SweepTest, AShardOfOnePointNamesTheCommandThatMergesIt) {
  const std::string folder = path("my results");
  const Outcome outcome =
      run_program("commfuse-sim sweep " + file("axes:\n  - seq: [1K, 2K]\n") + " --shard 1/2 --out '" + folder + "'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "shard 1-of-2: 1 point in " + folder +
                             "/shard-1-of-2.sqlite; when all shards are complete: commfuse-sim merge '" + folder +
                             "'\n");
}

TEST_F(SweepTest, OneThreadAndTwoWriteTheSameBytes) {
  const std::string body =
      "axes:\n  - ranks: [2, 3, 8, 16]\n  - zip: {seq: [1K, 1001, 8K], batch: [4, 1, 1]}\nset: {strategy: {variants: "
      "all}}\n";
  ASSERT_EQ(sweep(body, "-j 1").code, 3);
  const Names names = names_in("out");
  ASSERT_EQ(run_program("commfuse-sim sweep " + file(body) + " --out " + path("two") + " -j 2").code, 3);
  EXPECT_EQ(names_in("two"), names);
  for (const std::string& name : names) {
    if (name != "results.sqlite") {  // The store also records when it was filled.
      EXPECT_EQ(contents_of(path("two/" + name)), written(name)) << name;
    }
  }
}

TEST_F(SweepTest, AnImpossiblePointIsARowWithItsReasonAndExitsWith3) {
  const Outcome outcome =
      sweep("axes:\n  - ranks: [8, 16]\n  - seq: [1001, 4K]\nset: {strategy: {name: serial}}\n", "-o json");
  ASSERT_EQ(outcome.code, 3) << outcome.err;
  const json rows = json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 4U);
  const std::string no_fit = "16 ranks do not fit h100-sxm, which has 8 GPUs; choose ranks up to 8";
  EXPECT_EQ(
      rows[0].at("reason"),
      "1001 tokens (batch x sequence) cannot be split over 8 ranks; choose a multiple of 8, such as 1000 or 1008");
  EXPECT_EQ(rows[1].at("status"), "ok");
  EXPECT_TRUE(rows[1].at("reason").is_null());
  EXPECT_TRUE(rows[1].at("makespan_us").is_number());
  EXPECT_EQ(rows[2].at("reason"), no_fit);
  EXPECT_EQ(rows[3].at("reason"), no_fit);
  EXPECT_EQ(rows[3].at("status"), "infeasible");
  EXPECT_EQ(rows[3].at("seq"), 4096);
  EXPECT_EQ(rows[3].at("strategy"), "serial");
  for (const char* key : {"makespan_us", "compute_us", "exposed_us", "ideal_us", "mfu", "buffer_bytes", "critical_rank",
                          "schedule_sha256", "evaluator"}) {
    EXPECT_TRUE(rows[3].at(key).is_null()) << key;
  }
}

TEST_F(SweepTest, TheTableListsThePointsThatWereNotRun) {
  const Outcome outcome = sweep("axes:\n  - ranks: [8, 16]\nset: {strategy: {name: serial}}\n");
  ASSERT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.out.find("\n1 row could not be run:\n"
                             "  1x 16 ranks do not fit h100-sxm, which has 8 GPUs; choose ranks up to 8\n"),
            std::string::npos)
      << outcome.out;
}

TEST_F(SweepTest, EveryMapListsThePointsThatWereNotRun) {
  const std::string layers = "set: {as: flux, strategy: {name: serial}}\naxes:\n  - seq: [1001, 4K, 8K]\n";
  const std::string models = "set: {scope: prefill, model: llama-3.1-8b, batch: 1}\naxes:\n  - seq: [1001, 4K, 8K]\n";
  for (const auto& [text, reason] :
       {std::pair(layers, "1001 tokens (batch x sequence) cannot be split over 8 ranks"),
        std::pair(models, "the number of tokens of a pass 1001 is not a multiple of tensor parallelism 8")}) {
    const Outcome outcome = sweep(text, "-o map --force");
    ASSERT_EQ(outcome.code, 3) << outcome.err;
    const std::size_t list = outcome.out.find(" could not be run:\n");
    ASSERT_NE(list, std::string::npos) << outcome.out;
    EXPECT_NE(in_one_line(outcome.out.substr(list)).find(reason), std::string::npos) << outcome.out;
  }
}

TEST_F(SweepTest, NoRunnablePointIsStillAResult) {
  const Outcome outcome = sweep("set: {ranks: 16, strategy: {name: [serial, sliced, commfuse]}}\n");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_EQ(outcome.out.find("3 rows could not be run:\n"), 0U) << outcome.out;
}

TEST_F(SweepTest, ClashingSettingsAreARowToo) {
  const Outcome outcome =
      sweep("set: {strategy: {slices: 4}}\naxes:\n  - strategy.name: [serial, sliced]\n", "-o json");
  ASSERT_EQ(outcome.code, 3) << outcome.err;
  const json rows = json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("reason"),
            "strategy.slices is 4, but strategy serial does not use it; remove it or add a strategy that does");
  EXPECT_EQ(rows[1].at("status"), "ok");
}

TEST_F(SweepTest, EachModelHasItsTable) {
  const Outcome outcome = sweep("axes:\n  - model: [llama-3.1-8b, llama-3.1-70b]\n");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("llama-3.1-8b mlp on h100-sxm"), std::string::npos);
  EXPECT_NE(outcome.out.find("\nllama-3.1-70b mlp on h100-sxm"), std::string::npos);
}

TEST_F(SweepTest, AModelMayBeGivenByItsShape) {
  const Outcome outcome =
      sweep("set: {seq: 2K}\naxes:\n  - model: [8192x28672, 4096x14336]\n", "--strategy serial -o csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            run_program("commfuse-sim run --axis model=8192x28672,4096x14336 --seq 2K --strategy serial -o "
                        "csv")
                .out);
}

TEST_F(SweepTest, AMistakeWritesNothing) {
  const Outcome outcome = sweep("set: {seq: 4 KB}\n");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, path("a.yaml") + ":2:12: '4 KB' is not a whole number; write one, such as 4K\n");
  EXPECT_FALSE(fs::exists(path("out")));
  const Outcome excluded = sweep("constraints: [seq > 1M]\n");
  EXPECT_EQ(excluded.code, 2);
  EXPECT_EQ(excluded.err, path("a.yaml") + ": no point meets the constraints; loosen one or widen an axis\n");
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(SweepTest, AFolderOfAnotherSweepIsNotChangedUnlessForced) {
  ASSERT_EQ(sweep(small_sweep).code, 0);
  const std::string before = written("results.csv");
  EXPECT_EQ(sweep(small_sweep).code, 0);  // An identical sweep is accepted.
  const Outcome other = sweep(small_sweep, "--seq 4K");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("holds the results of another sweep; choose another folder, or add --force to replace them"),
            std::string::npos)
      << other.err;
  EXPECT_EQ(written("results.csv"), before);
  ASSERT_EQ(sweep(small_sweep + "outputs: [csv]\n", "--seq 4K --force").code, 0);
  EXPECT_NE(written("results.csv"), before);
  // Nothing of the older sweep remains.
  EXPECT_EQ(names_in("out"), (Names{"results.csv", "results.sqlite", "settings.yaml"}));
}

TEST_F(SweepTest, AFolderWithOtherFilesIsNotChangedUnlessForced) {
  fs::create_directories(path("out"));
  std::ofstream(path("out/thesis.tex")) << "years of work";
  const Outcome outcome = sweep(small_sweep);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("contains other files; choose another folder, or add --force to write among them"),
            std::string::npos);
  EXPECT_EQ(names_in("out"), Names{"thesis.tex"});
  EXPECT_EQ(sweep(small_sweep, "--force").code, 0);
  EXPECT_EQ(written("thesis.tex"), "years of work");
}

TEST_F(SweepTest, ForceIsRefusedWhileAnotherProcessHasTheStore) {
  ASSERT_EQ(sweep(small_sweep).code, 0);
  const std::string settings = written("settings.yaml");
  const std::string store = written("results.sqlite");
  const Database other(path("out/results.sqlite"), Database::Access::take);
  const Outcome outcome = sweep(small_sweep, "--seq 4K --force");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, path("out/results.sqlite") +
                             " is in use by another process; wait until it ends, or choose another folder\n");
  EXPECT_EQ(written("settings.yaml"), settings);
  EXPECT_EQ(written("results.sqlite"), store);
}

TEST_F(SweepTest, ForceKeepsFilesThatBelongToNoSweep) {
  for (const char* name :
       {"settings.yaml", "results.sqlite", "shard-notes.sqlite", "results.csv", "report.html", "map.json"}) {
    fs::create_directories(path("out"));
    const std::string notes = path("out/") + name;
    if (notes.ends_with("sqlite")) {
      Database(notes, Database::Access::write).run("CREATE TABLE notes(text TEXT)");
    } else {
      std::ofstream(notes) << "years of work";
    }
    const std::string before = contents_of(notes);
    const Outcome outcome = sweep(small_sweep, "--force");
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_NE(outcome.err.find(name), std::string::npos) << outcome.err;
    EXPECT_EQ(contents_of(notes), before) << name;
    EXPECT_EQ(names_in("out"), Names{name});
    fs::remove_all(path("out"));
  }
}

TEST_F(SweepTest, ForceKeepsAForeignDatabaseNamedLikeAShard) {
  ASSERT_EQ(sweep(small_sweep + "outputs: [csv]\n").code, 0);
  Database(path("out/shard-notes.sqlite"), Database::Access::write).run("CREATE TABLE notes(text TEXT)");
  const Names names = names_in("out");
  const Outcome outcome = sweep(small_sweep, "--seq 4K --force");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, path("out/shard-notes.sqlite") +
                             " is a database, but not a commfuse result store; choose another file or folder\n");
  EXPECT_EQ(names_in("out"), names);
}

TEST_F(SweepTest, DoesNotChangeTheTargetOfALinkInItsFolder) {
  ASSERT_EQ(sweep(small_sweep).code, 0);
  std::ofstream(path("victim.sh")) << "echo mine";
  for (const char* name : {"out/results.csv", "out/settings.yaml"}) {
    const std::string before = contents_of(path(name));
    fs::rename(path(name), path("kept"));
    fs::create_symlink(std::string(name) == "out/results.csv" ? path("victim.sh") : path("kept"), path(name));
    ASSERT_EQ(sweep(small_sweep).code, 0) << name;
    EXPECT_FALSE(fs::is_symlink(path(name))) << name;
    EXPECT_EQ(contents_of(path(name)), before) << name;
  }
  EXPECT_EQ(contents_of(path("victim.sh")), "echo mine");
  fs::rename(path("out/results.sqlite"), path("kept"));
  fs::create_symlink(path("kept"), path("out/results.sqlite"));
  const Outcome outcome = sweep(small_sweep);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, path("out/results.sqlite") +
                             " is a symbolic link, but a sweep writes only to its own folder; remove the link\n");
}

TEST_F(SweepTest, RefusesSettingsThatAreNotARegularFile) {
  fs::create_directories(path("out"));
  const std::string sentence =
      "--out: " + path("out/settings.yaml") + " is not a regular file; remove it, or choose another folder\n";
  for (const char* command : {"ln -s /dev/zero", "mkfifo"}) {
    ASSERT_EQ(run_program(std::string(command) + " " + path("out/settings.yaml")).code, 0);
    for (const char* force : {"", "--force"}) {
      const Outcome outcome = sweep(small_sweep, force);
      EXPECT_EQ(outcome.code, 2);
      EXPECT_EQ(outcome.err, sentence);
    }
    fs::remove(path("out/settings.yaml"));
  }
}

TEST_F(SweepTest, ReportsAStoreThatIsRemovedMeanwhile) {
  const std::string body = "set: {uncertainty: off}\noutputs: [csv]\naxes:\n  - batch: 1..40+1\n  - seq: 1K..20K+1K\n";
  const std::string command = "commfuse-sim sweep " + file(body) + " --out " + path("out") + " -j 1";
  const std::string store = path("out/results.sqlite");
  const Outcome outcome = run_program("sh -c '" + command + " & pid=$!; until [ -s " + store +
                                      " ]; do sleep 0.01; done; rm " + store + "; wait $pid'");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find(store + " was replaced or removed while this sweep ran; run it again in another folder\n"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(names_in("out"), Names{"settings.yaml"});
}

TEST_F(SweepTest, AFolderWithOnlyUnfinishedSettingsIsAccepted) {
  fs::create_directories(path("out"));
  std::ofstream(path("out/.settings.yaml.123-0.part")) << "schema: ";
  const Outcome outcome = sweep(small_sweep);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(SweepTest, UnfinishedResultsOfAKilledProcessAreRemoved) {
  ASSERT_EQ(sweep(small_sweep).code, 0);
  constexpr int nobody = 4194304;  // It is above the largest process id of Linux.
  const std::string orphan = path("out/.results.csv." + std::to_string(nobody) + "-0.part");
  const std::string living = path("out/.results.csv." + std::to_string(::getpid()) + "-0.part");
  const std::string stranger = path("out/.notes.csv." + std::to_string(nobody) + "-0.part");
  for (const std::string& name : {orphan, living, stranger}) {
    std::ofstream(name) << "half";
  }
  const Outcome outcome = sweep(small_sweep);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(fs::exists(orphan));
  EXPECT_TRUE(fs::exists(living)) << "its process may still write it";
  EXPECT_TRUE(fs::exists(stranger)) << "no sweep writes such a file";
}

TEST_F(SweepTest, AFolderThatCannotBeMadeIsRefusedBeforeAnythingRuns) {
  std::ofstream(path("plain")) << "x";
  const Outcome outcome = run_program("commfuse-sim sweep " + file(small_sweep) + " --out " + path("plain") + "/out");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("cannot be created: " + path("plain") + " is not a folder; choose another"),
            std::string::npos)
      << outcome.err;
}

TEST_F(SweepTest, TheWrittenSettingsReproduceTheSweep) {
  ASSERT_EQ(sweep(small_sweep, "--scope qkv --axis batch=1,2").code, 0);
  const Outcome again =
      run_program("commfuse-sim sweep " + path("out/settings.yaml") + " --out " + path("again") + " -o csv");
  ASSERT_EQ(again.code, 0) << again.err;
  for (const std::string& name : names_in("out")) {
    if (name != "results.sqlite") {  // The store also records when it was filled.
      EXPECT_EQ(contents_of(path("again/" + name)), written(name)) << name;
    }
  }
}

/// Returns the last line of the progress. A slow program occasionally writes several.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n') + 1;
  const std::size_t before = text.rfind('\n', end == 0 ? 0 : end - 1);
  return text.substr(before == std::string::npos ? 0 : before + 1);
}

TEST_F(SweepTest, ProgressGoesToStderrAsRequested) {
  const Outcome plain = sweep(small_sweep, "--progress plain");
  EXPECT_EQ(last_line(plain.err).find("4 of 4 points (100%), "), 0U) << plain.err;
  fs::remove_all(path("out"));
  const Outcome as_json = sweep(small_sweep, "--progress json");
  EXPECT_EQ(json::parse(last_line(as_json.err)).at("done"), 4);
  EXPECT_EQ(sweep(small_sweep, "--progress none").err, "");
  const Outcome wrong = sweep(small_sweep, "--progress fancy");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.err, "--progress: unknown format 'fancy'; known formats: auto, plain, json, none\n");
}

TEST_F(SweepTest, AnInterruptedSweepExitsWith143AndCanBeResumed) {
  const std::string body = "set: {uncertainty: off}\noutputs: [csv]\naxes:\n  - batch: 1..40+1\n  - seq: 1K..40K+1K\n";
  const std::string command = "commfuse-sim sweep " + file(body) + " --out " + path("out") + " -j 1 --progress plain";
  // The signal is sent as soon as something is stored.
  const Outcome outcome = run_program("sh -c '" + command + " & pid=$!; until [ -s " + path("out/results.sqlite") +
                                      " ]; do sleep 0.01; done; kill -TERM $pid; wait $pid'");
  EXPECT_EQ(outcome.code, 143) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  // A slow machine may have stored a single point.
  EXPECT_NE(outcome.err.find(" of 1600 points "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(" stored, and the same command resumes there\n"), std::string::npos) << outcome.err;
  EXPECT_EQ(names_in("out"), (Names{"results.sqlite", "settings.yaml"}));
  const Outcome rest = run_program(command + " -o csv");
  EXPECT_EQ(rest.code, 0) << rest.err;
  const Outcome whole = run_program("commfuse-sim sweep " + file(body) + " --out " + path("whole") + " -o csv");
  EXPECT_EQ(rest.out, whole.out);
  EXPECT_EQ(written("results.csv"), whole.out);
}

TEST_F(SweepTest, DoesNotSimulateStoredPointsAgain) {
  ASSERT_EQ(sweep(small_sweep).code, 0);
  const Outcome again = sweep(small_sweep, "--progress json");
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(json::parse(again.err).at("total"), 0);
}

TEST_F(SweepTest, TheDefaultFolderIsNamedAfterTheFile) {
  const Outcome outcome = run_program("sh -c 'cd " + path("") + " && commfuse-sim sweep " + file(small_sweep) + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(path("out/a/results.sqlite")));
}

TEST_F(SweepTest, ReportsAMissingSweepFile) {
  EXPECT_EQ(run_program("commfuse-sim sweep").err, "FILE is required; see commfuse-sim sweep --help\n");
  EXPECT_EQ(run_program("commfuse-sim sweep absent.yaml --out " + path("out")).err,
            "absent.yaml: cannot be read (No such file or directory); check the path\n");
}

TEST_F(SweepTest, TheExampleOfTheHelpRuns) {
  const Outcome outcome =
      run_program("commfuse-sim sweep " COMMFUSE_SOURCE_DIR "/configs/sweeps/llama-mlp.yaml --out " + path("out"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
}  // namespace commfuse::test
