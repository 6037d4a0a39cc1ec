// SPDX-License-Identifier: Apache-2.0
// README shows what the demo really prints.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

TEST(Readme, ShowsLinesThatTheDemoPrints) {
  const std::string readme = contents_of(COMMFUSE_SOURCE_DIR "/README.md");
  const std::size_t start = readme.find("The demo's own output");
  const std::size_t end = readme.find("Read a block like this");
  ASSERT_NE(start, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const Outcome demo = run_program(
      "commfuse-sim run --model llama-3.1-70b --hardware h100-sxm --scope mlp --axis ranks=2,4,8 --axis seq=1K..128K");
  ASSERT_EQ(demo.code, 0) << demo.err;
  std::istringstream lines(readme.substr(start, end - start));
  int shown = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("    ", 0) == 0 && line != "    [...]") {
      EXPECT_NE(demo.out.find(line.substr(4) + "\n"), std::string::npos) << line;
      ++shown;
    }
  }
  EXPECT_GT(shown, 10);
}

}  // namespace
}  // namespace commfuse::test
