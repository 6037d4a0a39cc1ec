// SPDX-License-Identifier: Apache-2.0
// Tests that docs/accuracy.md is the output of `commfuse-sim score`. The tables of a bare clone and the section on
// static and dynamic interference, which needs no measurements, are always checked; the rest of the page is checked if
// the folder of public measurements is next to the project. COMMFUSE_RENEW_GOLDEN=1 rewrites the page.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/doc_page.h"
#include "tests/cli/program.h"
#include "tests/texts.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

const fs::path accuracy_page = COMMFUSE_SOURCE_DIR "/docs/accuracy.md";
const fs::path data = COMMFUSE_SOURCE_DIR "/../shared/data";

constexpr const char* engines = "\n## Static against dynamic\n";
constexpr const char* verdicts = "\n## Verdicts\n";

/// Returns the part of the page from `from` to `to` (null: the end); empty if the page does not contain `from`.
std::string section(const char* from, const char* to = nullptr) {
  const std::string text = contents_of(accuracy_page);
  const std::size_t begin = text.find(from);
  const std::size_t end = to == nullptr ? std::string::npos : text.find(to);
  return begin == std::string::npos ? std::string{} : text.substr(begin, end == std::string::npos ? end : end - begin);
}

// Each of the last two sections of the page is the output of one command.
std::string section_of_engines() { return section(engines, verdicts); }
std::string section_of_verdicts() { return section(verdicts); }

TEST(AccuracyDoc, HasTheScoresOfTheShippedTables) {
  const std::string text = contents_of(accuracy_page);
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
    GTEST_SKIP() << "the measured tables are not in this repository; folder not found: " << data;
  }
  const Outcome scored = run_program("commfuse-sim score -o markdown --data " + data.string() +
                                     " --data " COMMFUSE_SOURCE_DIR "/configs/published");
  ASSERT_EQ(scored.code, 0) << scored.err;
  if (renews()) {
    const std::string last = section_of_engines() + section_of_verdicts();
    std::ofstream(accuracy_page) << scored.out << last;
  }
  EXPECT_EQ(contents_of(accuracy_page), scored.out + section_of_engines() + section_of_verdicts());
}

// The command exits with 4 unless static and dynamic interference meet their gates. It needs no measurements.
TEST(AccuracyDoc, ComparesStaticWithDynamicInterferenceOnEveryMachine) {
  const Outcome compared = run_program("commfuse-sim score --dynamic -o markdown");
  ASSERT_EQ(compared.code, 0) << compared.out << compared.err;
  if (renews()) {
    const std::string last = section_of_verdicts();
    const std::string text = contents_of(accuracy_page);
    const std::string first = text.substr(0, text.find(engines));
    std::ofstream(accuracy_page) << first << compared.out << last;
  }
  EXPECT_EQ(section_of_engines(), compared.out);
  EXPECT_NE(compared.out.find("| h100-sxm | 4, 8 |"), std::string::npos);
  EXPECT_NE(compared.out.find("| dgx-h100-x2 | 4, 8, 16 |"), std::string::npos);
}

// The command exits with 4 unless the verdicts meet their gates.
TEST(AccuracyDoc, EndsWithVerdictsIfTheMeasurementsExist) {
  if (!fs::is_directory(data)) {
    GTEST_SKIP() << "the measured tables are not in this repository; folder not found: " << data;
  }
  const Outcome scored =
      run_program("commfuse-sim score --verdicts -o markdown --data " + (data / "measured").string());
  ASSERT_EQ(scored.code, 0) << scored.out << scored.err;
  if (renews()) {
    const std::string text = contents_of(accuracy_page);
    std::ofstream(accuracy_page) << text.substr(0, text.find(verdicts)) << scored.out;
  }
  EXPECT_EQ(section_of_verdicts(), scored.out);
}

// Each row of the table has a command below it, in the same order.
TEST(AccuracyDoc, StatesTheRecordOfEachMachineAsScored) {
  const std::string text = contents_of(COMMFUSE_SOURCE_DIR "/docs/implementations.md");
  const std::string part = text.substr(text.find("## How far to trust this"));
  std::vector<std::string> rows;
  std::vector<std::string> commands;
  for (const std::string& line : lines_of(part)) {
    if (line.rfind("## What is known", 0) == 0) {
      break;
    }
    if (line.rfind("| ", 0) == 0 && line.find("machines") == std::string::npos) {
      rows.push_back(line);
    } else if (line.rfind("$ commfuse-sim score", 0) == 0) {
      commands.push_back(line.substr(2));
    }
  }
  ASSERT_EQ(rows.size(), commands.size());
  ASSERT_GE(rows.size(), 6U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> cells;
    std::istringstream row(rows[i]);
    for (std::string cell; std::getline(row, cell, '|');) {
      cells.push_back(in_one_line(cell));
    }
    ASSERT_EQ(cells.size(), 7U) << rows[i];
    const std::string answer = in_one_line(run_program(commands[i]).out);
    const auto expect = [&](const std::string& words) {
      EXPECT_NE(answer.find(words), std::string::npos) << rows[i] << "\n" << words << "\n" << answer;
    };
    expect(cells[2] + " wins");
    expect(cells[3] == "no pair" ? "loses in 0" : cells[3] + " loss");
    expect(cells[4] + " came true");
    const std::size_t slash = cells[5].find(" / ");
    ASSERT_NE(slash, std::string::npos) << rows[i];
    expect("overlapped kernels: median " + cells[5].substr(0, slash) + "%, p90 " + cells[5].substr(slash + 3));
    expect("serial pairs: median " + cells[6]);
  }
}

}  // namespace
}  // namespace commfuse::test
