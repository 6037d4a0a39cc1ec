// SPDX-License-Identifier: Apache-2.0
// Tests that this build reads the files of releases (listed in tests/upgrade/*/commands.tsv, which record.sh writes),
// and that its commands answer with at least the keys and columns of those releases.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "model/build_info.h"
#include "tests/cli/program.h"
#include "tests/cli/rows.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path upgrade_folder = COMMFUSE_SOURCE_DIR "/tests/upgrade";

/// A line of commands.tsv.
struct Recorded {
  /// "wrote": the file contains what the command printed; "left": the command wrote the file; "read": the command only
  /// reads files.
  std::string how;
  int code = 0;
  std::string file;
  std::string command;
};

std::vector<Recorded> recorded_in(const fs::path& folder) {
  std::vector<Recorded> lines;
  std::ifstream in(folder / "commands.tsv");
  for (std::string line; std::getline(in, line);) {
    std::istringstream cells(line);
    Recorded& recorded = lines.emplace_back();
    std::string code;
    std::getline(cells, recorded.how, '\t');
    std::getline(cells, code, '\t');
    std::getline(cells, recorded.file, '\t');
    std::getline(cells, recorded.command);
    recorded.code = std::stoi(code);
  }
  return lines;
}

std::vector<std::string> recorded_releases() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(upgrade_folder)) {
    if (fs::exists(entry.path() / "commands.tsv")) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

/// Returns the document of a JSON file, or an array of the documents of a JSON Lines file.
json documents_of(const std::string& text) {
  if (json::accept(text)) {
    return json::parse(text);
  }
  json documents = json::array();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    documents.push_back(json::parse(line));
  }
  return documents;
}

/// Finds keys of `before` that `now` lacks, in nested objects and in every element of an array.
void lost_keys(const json& before, const json& now, const std::string& place, std::set<std::string>& lost) {
  if (before.is_object() && now.is_object()) {
    for (const auto& [name, value] : before.items()) {
      const std::string below = fmt::format("{}.{}", place, name);
      now.contains(name) ? lost_keys(value, now.at(name), below, lost) : static_cast<void>(lost.insert(below));
    }
  } else if (before.is_array() && now.is_array() && !now.empty()) {
    json merged = now.front();  // Elements may have additional keys, as rows with a reason do.
    for (const json& element : now) {
      if (element.is_object() && merged.is_object()) {
        merged.update(element);
      }
    }
    for (const json& element : before) {
      lost_keys(element, merged, place + "[]", lost);
    }
  }
}

/// Returns the schemas of the rows, or of the document.
std::set<std::string> schemas_of(const json& document) {
  std::set<std::string> schemas;
  for (const json& row : document.is_array() ? document : json::array({document})) {
    if (row.is_object() && row.contains("schema")) {
      schemas.insert(row.at("schema").get<std::string>());
    }
  }
  return schemas;
}

/// Runs tests in a copy of a release's folder.
class UpgradeRelease : public testing::TestWithParam<std::string> {
 protected:
  static void copy(const fs::path& from) { fs::copy(from, ".", fs::copy_options::recursive); }

  static void expect_kept(const Recorded& recorded, const std::string& before, const std::string& now) {
    const std::string extension = fs::path(recorded.file).extension().string();
    if (extension == ".json" || extension == ".jsonl") {
      const json was = documents_of(before);
      const json is = documents_of(now);
      std::set<std::string> lost;
      lost_keys(was, is, "", lost);
      EXPECT_EQ(lost, std::set<std::string>{}) << recorded.command;
      EXPECT_EQ(schemas_of(is), schemas_of(was)) << recorded.command;
    } else if (extension == ".csv") {
      const std::set<std::string> was = column_names_of(before);
      const std::set<std::string> is = column_names_of(now);
      EXPECT_TRUE(std::ranges::includes(is, was)) << recorded.command;
    } else if (recorded.file.starts_with("schedules/")) {
      EXPECT_EQ(now, before) << recorded.command;  // Canonical text and digests never change.
    }
  }

  /// Runs the commands that wrote the files again, in a copy of the release's folder.
  static void expect_commands_keep_their_answers() {
    for (const Recorded& recorded : recorded_in(".")) {
      if (recorded.how == "wrote") {
        const Outcome outcome = run_program(recorded.command);
        EXPECT_EQ(outcome.code, recorded.code) << recorded.command << "\n" << outcome.err;
        expect_kept(recorded, contents_of(recorded.file), outcome.out);
      }
    }
  }

  static void expect_files_are_read() {
    std::size_t readers = 0;
    for (const Recorded& recorded : recorded_in(".")) {
      if (recorded.how == "read") {
        const Outcome outcome = run_program(recorded.command);
        EXPECT_EQ(outcome.code, recorded.code) << recorded.command << "\n" << outcome.err;
        fs::remove("page.html");
        ++readers;
      }
    }
    EXPECT_GT(readers, 20U);
  }

  const OwnFolder folder_;
};

TEST_P(UpgradeRelease, FilesAreRead) {
  copy(upgrade_folder / GetParam());
  expect_files_are_read();
}

TEST_P(UpgradeRelease, CommandsKeepKeysAndColumns) {
  copy(upgrade_folder / GetParam());
  expect_commands_keep_their_answers();
}

TEST_P(UpgradeRelease, FoldersAreWholeAndSmall) {
  const fs::path folder = upgrade_folder / GetParam();
  std::set<std::string> listed;
  for (const Recorded& recorded : recorded_in(folder)) {
    if (recorded.how != "read") {
      EXPECT_TRUE(fs::exists(folder / recorded.file)) << recorded.file;
      listed.insert(recorded.file);
    }
  }
  EXPECT_GT(listed.size(), 20U);
  std::uintmax_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    bytes += entry.is_regular_file() ? entry.file_size() : 0;
  }
  EXPECT_LT(bytes, 1024U * 1024U);
}

INSTANTIATE_TEST_SUITE_P(Recorded, UpgradeRelease, testing::ValuesIn(recorded_releases()), [](const auto& release) {
  std::string name = release.param;
  std::ranges::replace_if(
      name, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
});

// record.sh must be able to record this build as a release, and must never write a folder twice.
TEST(UpgradeRecord, RecordsThisBuild) {
  const OwnFolder folder;
  const std::string record = (upgrade_folder / "record.sh").string() + " " COMMFUSE_BIN_DIR " recorded";
  const Outcome outcome = run_program(record);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string version = json::parse(contents_of("recorded/answers/version.json")).at("version");
  EXPECT_EQ(version, build_info().version);
  EXPECT_GT(recorded_in("recorded").size(), 50U);
  EXPECT_EQ(run_program(record).code, 2);
}

TEST(UpgradeRecord, DetectsLostKeys) {
  std::set<std::string> lost;
  lost_keys(json::parse(R"([{"a": 1, "b": {"c": [{"d": 1}]}}])"),
            json::parse(R"([{"a": 1}, {"b": {"c": [{"e": 1}]}}])"), "", lost);
  EXPECT_EQ(lost, std::set<std::string>{"[].b.c[].d"});
}

}  // namespace
}  // namespace commfuse::test
