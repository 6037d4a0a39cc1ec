// SPDX-License-Identifier: Apache-2.0
// docs/accuracy.md is what `commfuse-sim score` says. The tables that a bare clone has are always checked, the whole
// page where the folder of public measurements lies beside the project. COMMFUSE_RENEW_GOLDEN=1 writes the page anew.
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/doc_page.h"
#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

const fs::path page = COMMFUSE_SOURCE_DIR "/docs/accuracy.md";
const fs::path data = COMMFUSE_SOURCE_DIR "/../shared/data";

TEST(AccuracyDoc, HoldsTheScoresOfTheTablesThatTheProjectBringsAlong) {
  const std::string text = contents_of(page);
  const Outcome scored = run_program("commfuse-sim score -o markdown");
  ASSERT_EQ(scored.code, 0) << scored.err;
  const std::size_t tables = scored.out.find("## Table by table");
  ASSERT_NE(tables, std::string::npos);
  int rows = 0;
  for (const std::string& line : lines_of(scored.out.substr(tables))) {
    EXPECT_NE(text.find(line + "\n"), std::string::npos) << line;
    rows += line.rfind("| `", 0) == 0 ? 1 : 0;
  }
  EXPECT_GE(rows, 6);
}

TEST(AccuracyDoc, IsTheWholePageWhereTheMeasurementsLieBeside) {
  if (!fs::is_directory(data)) {
    GTEST_SKIP() << "the tables are not beside the project: " << data;
  }
  const Outcome scored = run_program("commfuse-sim score -o markdown --data " + data.string() +
                                     " --data " COMMFUSE_SOURCE_DIR "/configs/published");
  ASSERT_EQ(scored.code, 0) << scored.err;
  if (renews()) {
    std::ofstream(page) << scored.out;
  }
  EXPECT_EQ(contents_of(page), scored.out);
}

}  // namespace
}  // namespace commfuse::test
