// SPDX-License-Identifier: Apache-2.0
// docs/accuracy.md is what `commfuse-sim score` says. The tables that a bare clone has are always checked, and the last
// section, which needs none; the whole page where the folder of public measurements lies beside the project.
// COMMFUSE_RENEW_GOLDEN=1 writes the page anew.
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/doc_page.h"
#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

const fs::path page = COMMFUSE_SOURCE_DIR "/docs/accuracy.md";
const fs::path data = COMMFUSE_SOURCE_DIR "/../shared/data";

/// The last section of the page, which another command writes; empty where the page has none yet.
std::string section_of_engines() {
  const std::string text = contents_of(page);
  const std::size_t begin = text.find("\n## Static against dynamic\n");
  return begin == std::string::npos ? std::string{} : text.substr(begin);
}

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
    const std::string last = section_of_engines();
    std::ofstream(page) << scored.out << last;
  }
  EXPECT_EQ(contents_of(page), scored.out + section_of_engines());
}

// The bars of static against dynamic are met, as the command ends with 4 where they are not. It needs no measurements.
TEST(AccuracyDoc, EndsWithStaticAgainstDynamicOnEveryMachine) {
  const Outcome compared = run_program("commfuse-sim score --dynamic -o markdown");
  ASSERT_EQ(compared.code, 0) << compared.out << compared.err;
  if (renews()) {
    const std::string text = contents_of(page);
    const std::size_t old = section_of_engines().size();
    std::ofstream(page) << text.substr(0, text.size() - old) << compared.out;
  }
  EXPECT_EQ(section_of_engines(), compared.out);
  EXPECT_NE(compared.out.find("| h100-sxm | 4, 8 |"), std::string::npos);
  EXPECT_NE(compared.out.find("| dgx-h100-x2 | 4, 8, 16 |"), std::string::npos);
}

}  // namespace
}  // namespace commfuse::test
