// SPDX-License-Identifier: Apache-2.0
// Tests the numbers in the prose of README.md's first screen; DocPages runs its commands.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>

#include "tests/contents_of.h"

namespace commfuse::test {
namespace {

/// Returns the text with line breaks and indents replaced by single spaces.
std::string on_one_line(const std::string& text) { return std::regex_replace(text, std::regex("\\s+"), " "); }

TEST(Readme, FirstParagraphQuotesTheFirstAnswer) {
  const std::string page = contents_of(COMMFUSE_SOURCE_DIR "/README.md");
  const std::size_t begin = page.find("\n\n") + 2;
  const std::string paragraph = on_one_line(page.substr(begin, page.find("\n\n", begin) - begin));
  const std::size_t command = page.find("\n$ commfuse-sim run --scope down --seq 32K --as all -o verdict\n") + 1;
  const std::size_t answer_begin = page.find('\n', command);
  const std::string answer = on_one_line(page.substr(answer_begin, page.find("\n```", answer_begin) - answer_begin));
  const std::regex number(R"((-?\d+ to -?\d+%)|(\d+(\.\d+)?%))");
  std::size_t quoted = 0;
  for (auto match = std::sregex_iterator(paragraph.begin(), paragraph.end(), number); match != std::sregex_iterator{};
       ++match, ++quoted) {
    EXPECT_NE(answer.find(match->str()), std::string::npos) << match->str() << " is not in: " << answer;
  }
  EXPECT_EQ(quoted, 4U) << paragraph;  // the saving, 90%, its interval, what ideal kernels would add
}

TEST(Readme, FirstScreenHasAPictureTwoCommandsAndThreeQuestions) {
  const std::string page = contents_of(COMMFUSE_SOURCE_DIR "/README.md");
  const std::string screen = page.substr(0, page.find("\n## "));
  EXPECT_LE(std::count(screen.begin(), screen.end(), '\n'), 64);
  const auto count = [&](const std::string& text) {
    std::size_t times = 0;
    for (std::size_t at = screen.find(text); at != std::string::npos; at = screen.find(text, at + 1)) {
      ++times;
    }
    return times;
  };
  EXPECT_EQ(count("!["), 1U);
  EXPECT_EQ(count("$ ./dev "), 2U);
  EXPECT_EQ(count("?**"), 3U);
}

}  // namespace
}  // namespace commfuse::test
