// SPDX-License-Identifier: Apache-2.0
// docs/schedules.md shows the file, and what the programs print of it. After a wanted change, read the new page:
//   COMMFUSE_RENEW_GOLDEN=1 commfuse-test-cli --gtest_filter='SchedulesPage.*'
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <vector>

#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

const std::string page_path = COMMFUSE_SOURCE_DIR "/docs/schedules.md";
const std::string file_path = COMMFUSE_SOURCE_DIR "/configs/schedules/doubling.yaml";
const std::string figure_path = COMMFUSE_SOURCE_DIR "/docs/images/doubling.svg";

bool renews() { return std::getenv("COMMFUSE_RENEW_GOLDEN") != nullptr; }  // NOLINT(concurrency-mt-unsafe): one thread

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

/// A folder to work in, gone with the test.
class Folder {
 public:
  Folder() { fs::create_directories(path_); }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }
  /// `command` in this folder; all it says.
  [[nodiscard]] std::string said(const std::string& command) const {
    const Outcome outcome = run_program("sh -c 'cd " + path_.string() + " && " + command + "'");
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 2 || outcome.code == 4) << command << "\n" << outcome.err;
    std::string all = outcome.out + outcome.err;
    while (all.size() > 1 && all.ends_with("\n\n")) {
      all.pop_back();
    }
    return all;
  }

 private:
  fs::path path_ = fs::temp_directory_path() / ("commfuse-page-" + std::to_string(getpid()));
};

/// The page with the insides of its blocks made anew: the file, and what the commands print.
std::string with_blocks(const std::string& page, const Folder& folder) {
  std::string made;
  std::string kind;
  for (const std::string& line : lines_of(page)) {
    if (line.rfind("```", 0) == 0) {
      kind = kind.empty() ? line.substr(3) : "";
      made += line + "\n" + (kind == "yaml" ? contents_of(file_path) : "");
    } else if (kind.empty()) {
      made += line + "\n";
    } else if (kind == "console" && line.rfind("$ ", 0) == 0) {
      made += line + "\n" + folder.said(line.substr(2));
    }
  }
  return made;
}

/// The cells of a row of a table that stand between backquotes.
std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  for (std::size_t at = row.find('`'); at != std::string::npos;) {
    const std::size_t end = row.find('`', at + 1);
    if (end == std::string::npos) {
      break;
    }
    cells.push_back(row.substr(at + 1, end - at - 1));
    at = row.find('`', end + 1);
  }
  return cells;
}

/// What `schedule check` first says of doubling.yaml with one change.
std::string message_of(const std::string& right, const std::string& wrong, const Folder& folder) {
  std::string text = contents_of(file_path);
  const std::size_t at = text.find(right);
  EXPECT_NE(at, std::string::npos) << right;
  std::ofstream(folder.path() / "doubling.yaml")
      << (at == std::string::npos ? text : text.replace(at, right.size(), wrong));
  const std::string said = folder.said("commfuse-sim schedule check doubling.yaml");
  return said.substr(0, said.find('\n'));
}

/// The page with the last cell of every row of its table of mistakes made anew.
std::string with_messages(const std::string& page, const Folder& folder) {
  std::string made;
  bool inside = false;
  for (const std::string& line : lines_of(page)) {
    inside = inside ? line.rfind('|', 0) == 0 : line.rfind("| instead of", 0) == 0;
    const std::vector<std::string> cells = inside ? cells_of(line) : std::vector<std::string>{};
    made += cells.size() < 2
                ? line
                : "| `" + cells[0] + "` | `" + cells[1] + "` | `" + message_of(cells[0], cells[1], folder) + "` |";
    made += "\n";
  }
  return made;
}

void expect_same(const fs::path& path, const std::string& made) {
  if (renews()) {
    std::ofstream(path, std::ios::binary) << made;
  }
  EXPECT_EQ(contents_of(path), made);
}

TEST(SchedulesPage, ShowsTheFileAndWhatTheProgramsPrint) {
  const Folder folder;
  expect_same(page_path, with_blocks(contents_of(page_path), folder));
  expect_same(figure_path, contents_of(folder.path() / "doubling.svg"));
}

TEST(SchedulesPage, ShowsTheMessagesOfMistakes) {
  const Folder folder;
  const std::string page = with_messages(contents_of(page_path), folder);
  expect_same(page_path, page);
  EXPECT_EQ(page.find("proved: matched"), page.rfind("proved: matched")) << "a change that is no mistake";
}

TEST(SchedulesPage, TheExampleHasAboutTwentyLinesWithoutItsComments) {
  int lines = 0;
  for (const std::string& line : lines_of(contents_of(file_path))) {
    lines += line.rfind('#', 0) == 0 ? 0 : 1;
  }
  EXPECT_LE(lines, 27);
}

}  // namespace
}  // namespace commfuse::test
