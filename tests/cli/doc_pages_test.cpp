// SPDX-License-Identifier: Apache-2.0
// Follows every page of the documentation to the letter: files are written, commands are run, and their output must be
// what the page shows. docs/testing.md describes how. To renew the output, run this and read the change:
//   COMMFUSE_RENEW_GOLDEN=1 commfuse-test-cli --gtest_filter='*DocPages*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/doc_page.h"
#include "tests/cli/mpirun.h"
#include "tests/cli/program.h"
#include "tests/cli/validate_program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

const fs::path commands_golden = project_folder / "tests/cli/golden/doc_commands.txt";

/// Returns the pages that people read, and the examples of --help.
std::vector<std::string> pages() {
  std::vector<std::string> with_examples = doc_pages();
  with_examples.emplace_back("tests/cli/help_examples.md");
  return with_examples;
}

DocPage page_at(const std::string& path) { return read_page(contents_of(project_folder / path)); }

/// Returns whether a test has this name: a test of a program, or a test that CMake adds.
bool is_test(const std::string& name) {
  const std::size_t dot = name.find('.');
  const std::string macro = "(" + name.substr(0, dot) + ", " + name.substr(std::min(dot, name.size() - 1) + 1) + ")";
  if (contents_of(project_folder / "tests/CMakeLists.txt").find("add_test(NAME " + name + "\n") != std::string::npos) {
    return true;
  }
  const fs::recursive_directory_iterator files(project_folder / "tests");
  return std::any_of(begin(files), end(files), [&](const fs::directory_entry& file) {
    return file.path().extension() == ".cpp" && contents_of(file.path()).find(macro) != std::string::npos;
  });
}

/// Returns whether this is a valid reason not to run a command. `run by TEST` is valid too.
bool is_reason(const std::string& reason) {
  constexpr std::array reasons{
      "needs a GPU",
      "needs a cluster",
      "needs a profile",
      "builds the project",
      "slow",
      "changes the machine",
      "needs programs that nobody packages",
      "needs the collection",
  };
  return std::ranges::find(reasons, reason) != reasons.end() ||
         (reason.starts_with("run by ") && is_test(reason.substr(7)));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool is_installed(const std::string& program) {
  return program == "mpirun" ? has_mpi() : run_program("bash -c 'command -v " + program + "'").code == 0;
}

/// Runs the command as a user's shell would, with both streams in one.
Outcome typed(const std::string& command) {
  std::ofstream(".typed.sh") << "exec 2>&1\nexport " << mpirun_environment << "\n" << command << "\n";
  return run_program("bash .typed.sh");
}

void write(const DocStep& step) {
  const fs::path path = step.file;
  const fs::path project_file = project_folder / path;
  if (path.has_parent_path()) {
    fs::create_directories(path.parent_path());
  }
  if (fs::exists(project_file) && path.string().starts_with("configs/")) {
    EXPECT_EQ(text_of(step.lines), contents_of(project_file)) << path << " is a file of the project";
  }
  std::ofstream(path) << text_of(step.lines);
}

/// Runs a step, and returns what the page should show.
DocStep followed(DocStep step) {
  if (!step.file.empty()) {
    if (renews() && step.file.starts_with("configs/")) {
      step.lines = lines_of(contents_of(project_folder / step.file));
    }
    write(step);
    return step;
  }
  if (!step.skip.empty()) {
    return step;
  }
  if (!step.needs.empty() && !is_installed(step.needs)) {
    fmt::print("skipped, because {} is missing: {}\n", step.needs, step.command);
    return step;
  }
  const Outcome outcome = typed(step.command);
  const std::vector<int> expected = step.gpu && !has_gpu() ? std::vector{69} : step.exits;
  EXPECT_NE(std::ranges::find(expected, outcome.code), expected.end()) << "$ " << step.command << "\n" << outcome.out;
  const Lines real = lines_of(outcome.out);
  if (step.lines.empty()) {
    return step;
  }
  if (renews() && !missing_line(step.lines, real, step.measured).empty()) {
    step.lines = renewed(step.lines, real);
  }
  EXPECT_EQ(missing_line(step.lines, real, step.measured), "") << "$ " << step.command << "\n" << outcome.out;
  return step;
}

/// Compares the drawings on the page with the drawings that its commands wrote.
void compare_images(const std::string& path) {
  for (const auto& entry : fs::directory_iterator(".")) {
    const std::string name = entry.path().filename();
    if (entry.path().extension() == ".svg" &&
        contents_of(project_folder / path).find("images/" + name) != std::string::npos) {
      const fs::path project_file = project_folder / "docs/images" / name;
      if (renews()) {
        fs::copy_file(entry.path(), project_file, fs::copy_options::overwrite_existing);
      }
      EXPECT_EQ(contents_of(entry.path()), contents_of(project_file)) << project_file;
    }
  }
}

class DocPages : public ::testing::TestWithParam<std::string> {};

TEST_P(DocPages, CanBeFollowedToTheLetter) {
  const OwnFolder folder;
  fs::copy(project_folder / "configs", "configs", fs::copy_options::recursive);
  const DocPage page = page_at(GetParam());
  EXPECT_EQ(text_of(page.mistakes), "");
  std::vector<DocStep> steps;
  for (const DocStep& step : page.steps) {
    SCOPED_TRACE(fmt::format("{}:{}", GetParam(), step.begin));
    steps.push_back(followed(step));
  }
  compare_images(GetParam());
  if (renews()) {
    std::ofstream(project_folder / GetParam(), std::ios::binary) << with_steps(page, steps);
  }
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.rfind('.'));
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Documentation, DocPages, ::testing::ValuesIn(pages()), name_of);

/// Returns one line for each page, and one for every command that does not run. There is no total over pages, because
/// it would be stale after every merge.
std::string account() {
  std::string text = "# Commands of the documentation: how many are run, and which are not. docs/testing.md\n";
  for (const std::string& path : pages()) {
    int run = 0;
    std::string skipped;
    for (const DocStep& step : page_at(path).steps) {
      if (!step.skip.empty()) {
        skipped += fmt::format("  {}: {}\n", step.skip, first_line(step.command));
      } else if (step.file.empty()) {
        ++run;
      }
    }
    text += skipped.empty() && run == 0 ? "" : fmt::format("{}: {} run\n{}", path, run, skipped);
  }
  return text;
}

TEST(DocPagesAccount, EveryCommandThatIsNotRunIsListedWithItsReason) {
  if (renews()) {
    std::ofstream(commands_golden) << account();
  }
  EXPECT_EQ(contents_of(commands_golden), account());
  for (const std::string& path : pages()) {
    for (const DocStep& step : page_at(path).steps) {
      EXPECT_TRUE(step.skip.empty() || is_reason(step.skip)) << path << ": " << step.skip;
    }
  }
}

}  // namespace
}  // namespace commfuse::test
