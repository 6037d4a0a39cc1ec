// SPDX-License-Identifier: Apache-2.0
// Tests that a sweep writes the same bytes on one thread, on many threads, in shards, in MPI processes, and after it is
// killed and resumed many times.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>

#include "tests/cli/mpirun.h"
#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

/// 240 points of several rows; some cannot run, and some have samples.
const std::string body =
    "schema: commfuse.sweep/1\ntitle: all ways\nset: {model: llama-3.1-8b, samples: 16}\naxes:\n"
    "  - jitter: [none, default]\n  - strategy.name: [serial, \"sliced,commfuse\"]\n  - ranks: [2, 3, 4, 8, 16]\n"
    "  - seq: 1K..12K+1K\noutputs: [csv, json, map]\n";

class SweepScale : public testing::Test {
 protected:
  SweepScale() { std::ofstream("a.yaml") << body; }

  static std::string sweep(const std::string& out, const std::string& more = "") {
    return "commfuse-sim sweep a.yaml --progress none --out " + out + " " + more;
  }
  /// Compares a sweep's output, and the files that it writes for people, with those of a sweep on one thread.
  static void expect_same(const std::string& folder, const Outcome& outcome) {
    const Outcome one_thread = run_program(sweep("one", "-j 1 -o csv"));
    ASSERT_EQ(one_thread.code, 3) << one_thread.err;
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_EQ(outcome.out, one_thread.out);
    for (const char* name : {"results.csv", "results.json", "map.csv", "crossovers.csv", "map.json", "settings.yaml"}) {
      EXPECT_FALSE(contents_of(std::string("one/") + name).empty()) << name;
      EXPECT_EQ(contents_of(folder + "/" + name), contents_of(std::string("one/") + name)) << name;
    }
  }

  const OwnFolder folder_;
};

TEST_F(SweepScale, ManyThreadsWriteTheSameBytesAsOneThread) {
  expect_same("many", run_program(sweep("many", "-j 8 -o csv")));
}

TEST_F(SweepScale, SevenMergedShardsWriteTheSameBytesAsOneProcess) {
  for (int part = 7; part >= 1; --part) {
    const Outcome shard = run_program(sweep("all", "--shard " + std::to_string(part) + "/7"));
    EXPECT_EQ(shard.code, 3) << shard.err;
    EXPECT_NE(shard.out.find("when all shards are complete: commfuse-sim merge all\n"), std::string::npos) << shard.out;
  }
  expect_same("all", run_program("commfuse-sim merge all -o csv"));
}

TEST_F(SweepScale, FourMpiProcessesWriteTheSameBytesAsOneThread) {
  if (!has_mpi()) {
    GTEST_SKIP() << "this build has no MPI, or mpirun is not installed";
  }
  expect_same("mpi", run_program(mpirun(4, "-q") + sweep("mpi", "-o csv")));
}

TEST_F(SweepScale, ThreadsInMpiProcessesWriteTheSameBytesAsOneThread) {
  if (!has_mpi()) {
    GTEST_SKIP() << "this build has no MPI, or mpirun is not installed";
  }
  expect_same("both", run_program(mpirun(2, "-q --bind-to none") + sweep("both", "--threads 8 -o csv")));
}

// The sweep is killed in the middle, then resumed by a different number of processes and threads.
TEST_F(SweepScale, KilledMpiProcessesWithThreadsResumeToTheSameBytes) {
  if (!has_mpi()) {
    GTEST_SKIP() << "this build has no MPI, or mpirun is not installed";
  }
  // The first child of mpirun is killed as soon as some points are stored: a store without points has 32 KiB.
  run_program("sh -c '" + mpirun(2, "-q --bind-to none") + sweep("killed", "--threads 2 --samples 8192") +
              " & pid=$!; until [ $(stat -c %s killed/results.sqlite 2>/dev/null || echo 0) -gt 40000 ] || "
              "! kill -0 $pid 2>/dev/null; do sleep 0.01; done; kill -KILL $(pgrep -P $pid | head -n 1); wait $pid'");
  const Outcome resumed = run_program(mpirun(3, "-q --bind-to none") + sweep("killed", "-j 2 --samples 8192 -o csv"));
  const Outcome serial = run_program(sweep("serial", "-j 1 --samples 8192 -o csv"));
  EXPECT_EQ(resumed.code, 3) << resumed.err;
  EXPECT_EQ(resumed.out, serial.out);
  EXPECT_EQ(contents_of("killed/results.json"), contents_of("serial/results.json"));
}

TEST_F(SweepScale, MpiProcessesReportAMistakeOnce) {
  if (!has_mpi()) {
    GTEST_SKIP() << "this build has no MPI, or mpirun is not installed";
  }
  const Outcome outcome = run_program(mpirun(3, "-q") + "commfuse-sim sweep absent.yaml --out mpi");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "absent.yaml: cannot be read (No such file or directory); check the path\n");
}

TEST_F(SweepScale, TwentyKillsAndResumesWriteTheSameBytesAsOneRun) {
  std::mt19937 random(1);  // Draws the moment of each kill, from right after the start to the end.
  for (unsigned kill = 0; kill < 20; ++kill) {
    const std::string after = std::to_string(0.02 + 0.001 * static_cast<double>(random() % (10 * kill + 10)));
    run_program("timeout -s KILL " + after + " " + sweep("killed", "-j 2"));
  }
  std::set<int> stored;
  const Outcome listing = run_program("commfuse-sim results killed --columns point -o json");
  for (const auto& row : nlohmann::json::parse(listing.code == 0 ? listing.out : "[]")) {
    stored.insert(row.at("point").get<int>());
  }
  const Outcome last = run_program("commfuse-sim sweep a.yaml --out killed --progress json -o csv");
  const auto progress = nlohmann::json::parse(last.err.substr(last.err.rfind('{')));
  EXPECT_EQ(progress.at("total").get<std::size_t>() + stored.size(), 240U) << "no point is simulated twice";
  expect_same("killed", last);
}

TEST_F(SweepScale, ShardsOfWholeModelsMergeToTheSameBytes) {
  std::ofstream("b.yaml") << "schema: commfuse.sweep/1\nset: {model: llama-3.1-8b, scope: step, ranks: 2}\naxes:\n"
                             "  - batch: [8, 16]\n  - seq: [2K, 1000]\noutputs: [csv, json]\n";
  const std::string command = "commfuse-sim sweep b.yaml --progress none ";
  const Outcome whole = run_program(command + "--out whole -o csv");
  ASSERT_EQ(whole.err.find("interrupted"), std::string::npos);
  for (const char* part : {"1/2", "2/2"}) {
    run_program(command + "--out parts --shard " + part);
  }
  const Outcome merged = run_program("commfuse-sim merge parts -o csv");
  EXPECT_EQ(merged.out, whole.out);
  EXPECT_FALSE(whole.out.empty());
  EXPECT_EQ(merged.code, whole.code);
  EXPECT_EQ(contents_of("parts/results.json"), contents_of("whole/results.json"));
}

TEST_F(SweepScale, MergeNamesTheMissingShards) {
  run_program(sweep("all", "--shard 2/3"));
  const Outcome outcome = run_program("commfuse-sim merge all");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "2 of 3 shards are missing or not complete; run them, then merge again:\n"
            "  commfuse-sim sweep all/settings.yaml --out all --shard 1/3\n"
            "  commfuse-sim sweep all/settings.yaml --out all --shard 3/3\n");
  EXPECT_FALSE(fs::exists("all/results.sqlite"));
  EXPECT_EQ(run_program("commfuse-sim merge none").err,
            "none contains no shards; run some with commfuse-sim sweep FILE --out none --shard 1/N\n");
  EXPECT_EQ(run_program("commfuse-sim merge 'no shards'").err,
            "no shards contains no shards; run some with commfuse-sim sweep FILE --out 'no shards' --shard 1/N\n");
}

TEST_F(SweepScale, MergeTakesFoldersOfShardsAndRefusesWholeSweeps) {
  for (const char* part : {"1/2", "2/2"}) {
    run_program(sweep("part" + std::string(part, 1), "--jitter none --axis seq=1K,2K --shard " + std::string(part)));
  }
  const Outcome files = run_program("commfuse-sim merge files part1/shard-1-of-2.sqlite part2/shard-2-of-2.sqlite");
  const Outcome folders = run_program("commfuse-sim merge folders part1 part2/shard-2-of-2.sqlite");
  EXPECT_EQ(folders.code, files.code) << folders.err;
  EXPECT_EQ(contents_of("folders/results.csv"), contents_of("files/results.csv"));
  EXPECT_EQ(run_program("commfuse-sim merge new files folders").err,
            "files contains no shards, but the results of a whole sweep; merge joins the shards of one sweep, which "
            "commfuse-sim sweep FILE --out FOLDER --shard i/N writes\n");
  fs::create_directory("empty");
  EXPECT_EQ(run_program("commfuse-sim merge new part1 empty").err,
            "empty contains no shards; run some with commfuse-sim sweep FILE --out empty --shard 1/N\n");
}

TEST_F(SweepScale, MergeNamesCommandsThatAShellCanRun) {
  run_program(sweep("'my parts'", "--shard 1/2"));
  const std::string command = "  commfuse-sim sweep 'my parts/settings.yaml' --out 'my parts' --shard 2/2\n";
  EXPECT_EQ(run_program("commfuse-sim merge 'my parts'").err,
            "1 of 2 shards is missing or not complete; run it, then merge again:\n" + command);
  EXPECT_EQ(run_program("commfuse-sim merge all 'my parts/shard-1-of-2.sqlite'").err,
            "1 of 2 shards is missing or not complete; run it, then merge all shards:\n" + command);
  fs::create_directory("moved");
  fs::copy_file("my parts/shard-1-of-2.sqlite", "moved/shard-1-of-2.sqlite");
  EXPECT_EQ(run_program("commfuse-sim merge moved").err,
            "1 of 2 shards is missing or not complete; run it, then merge again:\n"
            "  commfuse-sim sweep FILE --out FOLDER --shard 2/2\n");
}

TEST_F(SweepScale, MergeRefusesRepeatedShardsAndShardsOfOtherSweeps) {
  for (const char* part : {"1/2", "2/2"}) {
    run_program(sweep("all", std::string("--shard ") + part));
  }
  fs::copy_file("all/shard-1-of-2.sqlite", "all/shard-1-of-2.copy.sqlite");
  EXPECT_EQ(run_program("commfuse-sim merge all").err,
            "shard 1-of-2 appears twice, as all/shard-1-of-2.copy.sqlite and as all/shard-1-of-2.sqlite; remove one\n");
  fs::remove("all/shard-1-of-2.copy.sqlite");
  run_program(sweep("other", "--shard 1/2 --batch 2"));
  EXPECT_EQ(
      run_program("commfuse-sim merge new other/shard-1-of-2.sqlite all/shard-2-of-2.sqlite").err,
      "all/shard-2-of-2.sqlite and other/shard-1-of-2.sqlite belong to different sweeps; merge shards of one sweep\n");
  run_program(sweep("thirds", "--shard 1/3"));
  EXPECT_EQ(run_program("commfuse-sim merge new thirds/shard-1-of-3.sqlite all/shard-2-of-2.sqlite").err,
            "all/shard-2-of-2.sqlite is one of 2 shards and thirds/shard-1-of-3.sqlite one of 3; merge shards of the "
            "same count\n");
}

TEST_F(SweepScale, MergeKeepsForeignFilesAndNamesTheRemedy) {
  for (const char* part : {"1/2", "2/2"}) {
    ASSERT_EQ(
        run_program("commfuse-sim sweep a.yaml --out all --progress none --jitter none --shard " + std::string(part))
            .code,
        3);
  }
  const auto refused = [](const std::string& folder, const std::string& sentence) {
    const Outcome outcome =
        run_program("commfuse-sim merge " + folder + " all/shard-1-of-2.sqlite " + "all/shard-2-of-2.sqlite");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, sentence);
  };
  const std::string remedy = "; merge into a new folder, and name the shards after it\n";
  fs::create_directory("notes");
  std::ofstream("notes/diary.txt") << "years of work";
  refused("notes", "FOLDER: 'notes' contains other files" + remedy);
  fs::create_directory("other");
  std::ofstream("other/settings.yaml") << "of another";
  refused("other", "FOLDER: 'other' holds the results of another sweep" + remedy);
  std::ofstream("all/results.sqlite") << "years of work";
  refused("all", "all/results.sqlite is not a commfuse result store; choose another file or folder\n");
  EXPECT_EQ(contents_of("all/results.sqlite"), "years of work");
}

TEST_F(SweepScale, RefusesToResumeAfterAnInputFileHasChanged) {
  fs::copy_file(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-8b.yaml", "mine.yaml");
  const std::string mine = sweep("out", "--model ./mine.yaml --axis jitter=default --axis seq=1K,2K -o csv");
  ASSERT_EQ(run_program(mine).code, 3);
  std::string text = contents_of("mine.yaml");
  const std::size_t place = text.find("14336");
  ASSERT_NE(place, std::string::npos);
  std::ofstream("mine.yaml") << text.replace(place, 5, "28672");
  const Outcome refused = run_program(mine);
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(
      refused.err,
      "out/results.sqlite holds results of other input: a model, machine or other file of the sweep has changed, or "
      "its 'all' now selects other names; choose another folder, or add --force to replace them\n");
  EXPECT_EQ(run_program(mine + " --force").code, 3);
}

TEST_F(SweepScale, DetectsTwoProcessesOnOneStore) {
  // The second process starts while the first is stopped and has the store open.
  const Outcome outcome = run_program(
      "sh -c '" + sweep("out", "-j 1 --samples 4096") +
      " > first.txt & pid=$!; until [ -s out/results.sqlite ]; do sleep 0.01; done; kill -STOP $pid; " +
      sweep("out", "--samples 4096") + "; code=$?; kill -CONT $pid; kill -TERM $pid; wait $pid; exit $code'");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find(
                "out/results.sqlite is in use by another process; wait until it ends, or choose another folder\n"),
            std::string::npos)
      << outcome.err;
}

TEST_F(SweepScale, AFullDiskIsReportedAndTheSweepContinuesAfterwards) {
  // Files cannot grow beyond 64 KiB: writes fail as on a full disk.
  const Outcome full = run_program("sh -c 'trap \"\" XFSZ; ulimit -f 128; exec " + sweep("out", "-j 1") + "'");
  EXPECT_EQ(full.code, 1) << full.out;
  EXPECT_NE(full.err.find("out/results.sqlite could not be written: "), std::string::npos) << full.err;
  EXPECT_NE(full.err.find("free some space and run the same command again"), std::string::npos) << full.err;
  expect_same("out", run_program(sweep("out", "-o csv")));
}

TEST_F(SweepScale, AFolderThatCannotBeWrittenIsRefused) {
  const Outcome outcome = run_program(sweep("/proc/self/out"));
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_NE(outcome.err.find("--out: '/proc/self/out' cannot be "), std::string::npos) << outcome.err;
}

TEST_F(SweepScale, ReportsADamagedStoreAndKeepsAForeignOne) {
  ASSERT_EQ(run_program(sweep("out")).code, 3);
  std::string bytes = contents_of("out/results.sqlite");
  std::ofstream("out/results.sqlite", std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  for (const std::string& command : {sweep("out"), sweep("out", "--force"), std::string("commfuse-sim results out"),
                                     std::string("commfuse-sim report out --out page.html")}) {
    const Outcome damaged = run_program(command);
    EXPECT_EQ(damaged.code, 2) << command;
    EXPECT_EQ(damaged.err.find("out/results.sqlite is damaged ("), 0U) << damaged.err;
  }
  EXPECT_EQ(contents_of("out/results.sqlite"), bytes.substr(0, bytes.size() / 2));
  std::ofstream("out/results.sqlite", std::ios::binary) << "years of work, and no database at all";
  const Outcome foreign = run_program(sweep("out", "--force"));
  EXPECT_NE(foreign.code, 0);
  EXPECT_EQ(foreign.err, "out/results.sqlite is not a commfuse result store; choose another file or folder\n");
  EXPECT_EQ(contents_of("out/results.sqlite"), "years of work, and no database at all");
}

TEST_F(SweepScale, ADryRunOfAShardWithoutPointsEstimatesNothing) {
  std::ofstream("b.yaml") << "schema: commfuse.sweep/1\nset: {model: llama-3.1-8b, strategy: {name: serial}}\naxes:\n"
                             "  - seq: [4K, 8K, 16K]\n";
  EXPECT_EQ(run_program("commfuse-sim sweep b.yaml --dry-run -j 1 --shard 5/5").out,
            "points  0 of 3, shard 5-of-5\n"
            "rows    about 0; in a sample of 0, 0 could not be run\n"
            "time    about 0.0 s on 1 thread\n"
            "disk    about 0 KB\n");
}

TEST_F(SweepScale, ADryRunEstimatesTheWorkAndWritesNothing) {
  const Outcome outcome = run_program(sweep("out", "--dry-run -j 1"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("points  240\nrows    about "), 0U) << outcome.out;
  EXPECT_NE(outcome.out.find("\ntime    about "), std::string::npos);
  EXPECT_NE(outcome.out.find("\ndisk    about "), std::string::npos);
  EXPECT_FALSE(fs::exists("out"));
  const Outcome second_process =
      run_program("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 " + sweep("out", "--dry-run -j 1"));
  EXPECT_EQ(second_process.code, 0) << second_process.err;
  EXPECT_EQ(second_process.out + second_process.err, "");
}

}  // namespace
}  // namespace commfuse::test
