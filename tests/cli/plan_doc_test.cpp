// SPDX-License-Identifier: Apache-2.0
// docs/plan.md names every key with its doc and default, its example is a plan that is answered, its commands run, and
// what it shows of them is what they print.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "model/config/plan_field.h"
#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

const std::string page = contents_of(COMMFUSE_SOURCE_DIR "/docs/plan.md");

/// The lines inside the blocks of a kind.
std::vector<std::string> blocks_of(const std::string& kind) {
  std::vector<std::string> blocks;
  std::istringstream lines(page);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = !inside && line == "```" + kind;
      if (inside) {
        blocks.emplace_back();
      }
    } else if (inside) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

TEST(PlanPage, NamesEveryKeyWithItsDocAndDefault) {
  for (const PlanField& field : plan_fields()) {
    const std::string_view preset = field.required ? "must be there" : field.preset.empty() ? "open" : field.preset;
    EXPECT_NE(page.find(fmt::format("| `{}` | {} | {} |\n", field.key, field.doc, preset)), std::string::npos)
        << field.key;
  }
}

TEST(PlanPage, ItsExampleIsAPlanThatIsAnswered) {
  const std::vector<std::string> examples = blocks_of("yaml");
  ASSERT_EQ(examples.size(), 1U);
  const fs::path file = fs::temp_directory_path() / fmt::format("commfuse-plan-page-{}.yaml", getpid());
  std::ofstream(file) << examples[0];
  const Outcome outcome = run_program("commfuse-sim plan " + file.string());
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.out.rfind("Ours, by spring\n", 0), 0U);
  fs::remove(file);
}

TEST(PlanPage, ItsCommandsPrintWhatItShows) {
  std::size_t shown = 0;
  for (const std::string& block : blocks_of("console")) {
    std::istringstream lines(block);
    std::string printed;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("$ ")) {
        const Outcome outcome = run_program("sh -c 'cd " COMMFUSE_SOURCE_DIR " && " + line.substr(2) + "'");
        EXPECT_EQ(outcome.code, 0) << line << "\n" << outcome.err;
        printed = outcome.out;
      } else if (!line.empty() && line != "[...]") {
        const std::size_t at = printed.find(line + "\n");
        EXPECT_NE(at, std::string::npos) << line;
        printed.erase(0, at == std::string::npos ? 0 : at + line.size() + 1);  // and in this order
        ++shown;
      }
    }
  }
  EXPECT_GT(shown, 15U);
}

}  // namespace
}  // namespace commfuse::test
