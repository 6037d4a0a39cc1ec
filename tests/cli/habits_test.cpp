// SPDX-License-Identifier: Apache-2.0
// Tests commands that people type from habit: each line works, or its answer names the right command.
// tests/cli/golden/habits.txt has the commands, and the first line of each answer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <utility>

#include "model/config/catalogue.h"
#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Returns the text with a placeholder for each list that grows with a catalogue.
std::string without_catalogues(std::string text) {
  for (const auto& [catalogue, name] :
       {std::pair{Catalogue::hardware, "(every machine)"}, {Catalogue::models, "(every model)"}}) {
    const std::string names = fmt::format("{}", fmt::join(known_names(catalogue), ", "));
    if (const std::size_t at = text.find(names); at != std::string::npos) {
      text.replace(at, names.size(), name);
    }
  }
  return text;
}

/// Returns the comments, the empty lines and the lines that begin with "$ ", each of the latter followed by the exit
/// code and the first line of the command's output.
std::string answered(const std::string& golden) {
  std::istringstream lines(golden);
  std::string answers;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#") || line.empty()) {
      answers += line + "\n";
    } else if (line.starts_with("$ ")) {
      const Outcome outcome = run_program(line.substr(2));
      const std::string output =
          std::regex_replace(outcome.code == 0 ? outcome.out : outcome.err,
                             std::regex(R"(^commfuse-sim [0-9.]+ \([^)]*\))"), "commfuse-sim VERSION (REVISION)");
      answers += line + "\n" + std::to_string(outcome.code) + "  " +
                 without_catalogues(output.substr(0, output.find('\n'))) + "\n";
    }
  }
  return answers;
}

TEST(Habits, AreAnsweredAsInTheTable) {
  const std::string path = COMMFUSE_SOURCE_DIR "/tests/cli/golden/habits.txt";
  const std::string golden = contents_of(path);
  ASSERT_FALSE(golden.empty());
  const std::string answers = answered(golden);
  if (std::getenv("COMMFUSE_RENEW_GOLDEN") != nullptr) {
    std::ofstream(path) << answers;
  }
  EXPECT_EQ(contents_of(path), answers);
}

}  // namespace
}  // namespace commfuse::test
