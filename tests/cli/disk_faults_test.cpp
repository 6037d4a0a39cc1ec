// SPDX-License-Identifier: Apache-2.0
// Tests disks that are slow, disappear or are read-only: no row is lost or wrong, and readable data is read.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

class DiskFaults : public testing::Test {
 protected:
  DiskFaults() {
    std::ofstream("a.yaml") << "schema: commfuse.sweep/1\ntitle: t\nset: {model: llama-3.1-8b}\n"
                               "axes:\n  - ranks: [2, 4, 8]\n  - seq: [2K, 4K, 8K, 16K]\noutputs: [csv]\n";
  }
  static std::string sweep(const std::string& out, const std::string& more = "") {
    return "commfuse-sim sweep a.yaml --progress none -o csv --out " + out + " " + more;
  }
  static Outcome on_slow_disk(const std::string& disk, const std::string& command) {
    return run_program("env LD_PRELOAD=" COMMFUSE_SLOW_DISK " " + disk + " " + command);
  }
  /// Runs with `folder` on a read-only file system.
  static Outcome read_only(const std::string& folder, const std::string& command) {
    return run_program("unshare -rm sh -c 'mount --bind " + folder + " " + folder + " && mount -o remount,ro,bind " +
                       folder + " && " + command + "'");
  }
  static void skip_under_sanitizers() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers have to be the first library";
#endif
  }

  const OwnFolder folder_;
};

TEST_F(DiskFaults, ASlowDiskGetsTheSameBytes) {
  skip_under_sanitizers();
  if (IsSkipped()) {
    return;
  }
  const Outcome slow = on_slow_disk("SLOW_DISK_US=5000", sweep("slow"));
  EXPECT_EQ(slow.code, 0) << slow.err;
  const Outcome usual = run_program(sweep("usual"));
  EXPECT_EQ(slow.out, usual.out);
  EXPECT_EQ(contents_of("slow/results.csv"), contents_of("usual/results.csv"));
}

TEST_F(DiskFaults, ALostDiskIsReportedAndTheSweepContinuesAfterwards) {
  skip_under_sanitizers();
  if (IsSkipped()) {
    return;
  }
  const Outcome usual = run_program(sweep("usual"));
  for (const std::string after : {"0", "1", "2", "3", "4", "5"}) {
    SCOPED_TRACE(after);
    const Outcome gone = on_slow_disk("SLOW_DISK_FAILS_AFTER=" + after, sweep("out"));
    EXPECT_TRUE(gone.code != 0 || after != "0") << "the disk was available all the time";
    if (gone.code != 0) {
      EXPECT_EQ(gone.code, 1) << gone.out;
      EXPECT_EQ(gone.err.find("out/"), 0U) << gone.err;
    }
    const Outcome later = run_program(sweep("out"));
    EXPECT_EQ(later.code, 0) << later.err;
    EXPECT_EQ(later.out, usual.out);
    EXPECT_EQ(contents_of("out/results.csv"), contents_of("usual/results.csv"));
    fs::remove_all("out");
  }
}

TEST_F(DiskFaults, AReadOnlyFileSystemIsReadAndNotWritten) {
  fs::create_directory("empty");
  if (read_only("empty", "true").code != 0) {
    GTEST_SKIP() << "unshare -rm cannot mount here";
  }
  const Outcome refused = read_only("empty", sweep("empty/out"));
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_NE(refused.err.find("--out: 'empty/out' cannot be "), std::string::npos) << refused.err;

  ASSERT_EQ(run_program(sweep("out")).code, 0);
  const std::string before = contents_of("out/results.sqlite");
  for (const std::string command : {"commfuse-sim results out -o csv", "commfuse-sim best out",
                                    "commfuse-sim report out --out page.html", "commfuse-sim diff out out"}) {
    const Outcome usual = run_program(command);
    const Outcome outcome = read_only("out", command);
    EXPECT_EQ(outcome.code, 0) << command << '\n' << outcome.err;
    EXPECT_EQ(outcome.out, usual.out) << command;
  }
  const Outcome again = read_only("out", sweep("out", "--force"));
  EXPECT_EQ(again.code, 2) << again.err;
  EXPECT_NE(again.err.find("out"), std::string::npos) << again.err;
  EXPECT_EQ(contents_of("out/results.sqlite"), before);
}

}  // namespace
}  // namespace commfuse::test
