// SPDX-License-Identifier: Apache-2.0
// Tests that the things to which pages refer exist: links have a target, flags and commands between backquotes exist,
// and help_examples.md has every example of --help.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "tests/cli/doc_page.h"
#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

/// Returns the lines of a page that are outside blocks.
Lines prose_of(const fs::path& path) {
  Lines prose;
  bool inside = false;
  for (const std::string& line : lines_of(contents_of(path))) {
    inside = line.starts_with("```") ? !inside : inside;
    if (!inside && !line.starts_with("    ")) {
      prose.push_back(line);
    }
  }
  return prose;
}

/// Returns the first group of every match of `pattern`.
Lines matches(const std::string& text, const std::regex& pattern) {
  Lines phrases;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    phrases.push_back((*at)[1]);
  }
  return phrases;
}

/// Returns the anchors that GitHub makes of the headings of a page.
std::set<std::string> anchors_of(const fs::path& path) {
  std::set<std::string> anchors;
  for (const std::string& line : prose_of(path)) {
    if (line.starts_with('#')) {
      std::string anchor;
      for (const char c : line.substr(line.find(' ') + 1)) {
        const auto byte = static_cast<unsigned char>(c);
        anchor += c == ' ' ? "-" : std::isalnum(byte) != 0 || c == '-' || c == '_' ? std::string(1, c) : "";
      }
      std::ranges::transform(anchor, anchor.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      anchors.insert(anchor);
    }
  }
  return anchors;
}

TEST(DocWords, EveryLinkLeadsToAFileAndAHeading) {
  int links = 0;
  for (const std::string& page : doc_pages()) {
    for (const std::string& link : matches(text_of(prose_of(project_folder / page)), std::regex(R"(\]\(([^)]+)\))"))) {
      if (link.starts_with("http")) {
        continue;
      }
      const std::size_t hash = link.find('#');
      const fs::path target =
          hash == 0 ? project_folder / page : (project_folder / page).parent_path() / link.substr(0, hash);
      EXPECT_TRUE(fs::exists(target)) << page << ": " << link;
      EXPECT_TRUE(hash == std::string::npos || anchors_of(target).contains(link.substr(hash + 1)))
          << page << ": " << link;
      ++links;
    }
  }
  EXPECT_GT(links, 50);
}

/// The words of the programs' own reference: commands such as `commfuse-sim run`, flags such as `--seq`.
struct Known {
  std::set<std::string> commands;
  std::set<std::string> flags;
};

Known known() {
  Known known;
  for (const std::string program : {"commfuse-sim", "commfuse-validate"}) {
    const std::string text = run_program(program + " pages markdown").out;
    for (const std::string& command : matches(text, std::regex("\n#+ `([^`]+)`"))) {
      known.commands.insert(command);
    }
    for (const std::string& line : lines_of(text)) {
      if (line.starts_with("- `")) {
        const Lines flags = matches(line.substr(0, line.find("`:")), std::regex("(--[a-z][a-z0-9-]*)"));
        known.flags.insert(flags.begin(), flags.end());
      }
    }
  }
  return known;
}

/// Returns the code in the prose of a page, and the commands of the steps that its test skips.
Lines unchecked_code(const std::string& page) {
  Lines code = matches(text_of(prose_of(project_folder / page)), std::regex("`([^`]+)`"));
  for (const DocStep& step : read_page(contents_of(project_folder / page)).steps) {
    if (!step.skip.empty()) {
      code.push_back(step.command);
    }
  }
  std::erase_if(code, [](const std::string& c) { return !c.starts_with("--") && !c.starts_with("commfuse-"); });
  return code;
}

TEST(DocWords, CommandsAndFlagsThatNoTestRunsExist) {
  const std::set<std::string> flags_of_other_programs{"--oversubscribe",
                                                      "--mca",
                                                      "--mpi",
                                                      "--comm-group-configuration",
                                                      "--rendezvous-protocol",
                                                      "--cp-comm-type",
                                                      "--tp-comm-overlap",
                                                      "--tp-comm-overlap-cfg",
                                                      "--disable-tp-comm-overlap-ag",
                                                      "--disable-tp-comm-overlap-rs",
                                                      "--benchmark",
                                                      "--bind-to",
                                                      "--coverage"};
  const Known programs = known();
  std::size_t words = 0;
  for (const std::string& page : doc_pages()) {
    for (const std::string& code : unchecked_code(page)) {
      for (const std::string& flag : matches(code, std::regex("(--[a-z][a-z0-9-]*)"))) {
        EXPECT_TRUE(programs.flags.contains(flag) || flags_of_other_programs.contains(flag)) << page << ": " << code;
      }
      for (const std::string& command : matches(code, std::regex("^(commfuse-(?:sim|validate) [a-z]+)"))) {
        EXPECT_TRUE(programs.commands.contains(command)) << page << ": " << code;
      }
      ++words;
    }
  }
  EXPECT_GT(words, 50U);
}

TEST(HelpExamples, AreAllTestedByTheirPage) {
  std::set<std::string> tested;
  for (const DocStep& step : read_page(contents_of(project_folder / "tests/cli/help_examples.md")).steps) {
    tested.insert(std::regex_replace(step.command, std::regex(R"(\\\n\s*)"), ""));
  }
  int examples = 0;
  for (const std::string program : {"commfuse-sim", "commfuse-validate"}) {
    const std::string text = run_program(program + " pages markdown").out;
    for (const std::string& block : matches(text, std::regex(R"(Examples:\n((?:  .*\n)+))"))) {
      for (const std::string& line : lines_of(block)) {
        EXPECT_LE(line.size(), 80U) << line;
      }
      const std::string joined = std::regex_replace(block, std::regex(R"(\\\n\s*)"), "");
      for (const std::string& line : lines_of(joined)) {
        EXPECT_TRUE(line.starts_with("  #") || tested.contains(line.substr(2))) << line;
        ++examples;
      }
    }
  }
  EXPECT_GT(examples, 80);
}

}  // namespace
}  // namespace commfuse::test
