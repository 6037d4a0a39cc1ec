// SPDX-License-Identifier: Apache-2.0
// Tests that docs/schedules.md shows the real messages about mistakes. After an intended change, renew the page and
// read the diff:
//   COMMFUSE_RENEW_GOLDEN=1 commfuse-test-cli --gtest_filter='SchedulesPage.*'
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/cli/doc_page.h"
#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

const std::string page_path = COMMFUSE_SOURCE_DIR "/docs/schedules.md";
const std::string file_path = COMMFUSE_SOURCE_DIR "/configs/schedules/doubling.yaml";

/// Returns the texts in backquotes in a row of a table.
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

/// Returns the first line of `schedule check` for doubling.yaml with one change.
std::string message_of(const std::string& right, const std::string& wrong) {
  std::string text = contents_of(file_path);
  const std::size_t at = text.find(right);
  EXPECT_NE(at, std::string::npos) << right;
  std::ofstream("doubling.yaml") << (at == std::string::npos ? text : text.replace(at, right.size(), wrong));
  const Outcome outcome = run_program("commfuse-sim schedule check doubling.yaml");
  const std::string output = outcome.out + outcome.err;
  return output.substr(0, output.find('\n'));
}

/// Returns the page with the last cell of every row of its table of mistakes replaced by the real message.
std::string with_messages(const std::string& page) {
  std::string text;
  bool inside = false;
  for (const std::string& line : lines_of(page)) {
    inside = inside ? line.rfind('|', 0) == 0 : line.rfind("| instead of", 0) == 0;
    const std::vector<std::string> cells = inside ? cells_of(line) : std::vector<std::string>{};
    text += cells.size() < 2 ? line
                             : "| `" + cells[0] + "` | `" + cells[1] + "` | `" + message_of(cells[0], cells[1]) + "` |";
    text += "\n";
  }
  return text;
}

void expect_same(const std::filesystem::path& path, const std::string& text) {
  if (renews()) {
    std::ofstream(path, std::ios::binary) << text;
  }
  EXPECT_EQ(contents_of(path), text);
}

TEST(SchedulesPage, ShowsTheMessagesOfMistakes) {
  const OwnFolder folder;
  const std::string page = with_messages(contents_of(page_path));
  expect_same(page_path, page);
  EXPECT_EQ(page.find("proved: matched"), page.rfind("proved: matched"))
      << "a row's change passes `schedule check`, so it is not a mistake";
}

TEST(SchedulesPage, TheExampleHasAtMost27LinesBesidesComments) {
  int lines = 0;
  for (const std::string& line : lines_of(contents_of(file_path))) {
    lines += line.rfind('#', 0) == 0 ? 0 : 1;
  }
  EXPECT_LE(lines, 27);
}

}  // namespace
}  // namespace commfuse::test
