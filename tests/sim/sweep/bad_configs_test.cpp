// SPDX-License-Identifier: Apache-2.0
// Every file in tests/config/bad states its messages in its first lines, word for word: `# expect: message`, one line
// per mistake. {path} is the file; {models}, {hardware}, {jitter}, {implementations}, {frameworks}, {settings} and
// {numbers} are the known names. The first word of the file's name chooses the reader: run, sweep, plan, model,
// hardware or jitter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/plan_file.h"
#include "model/config_error.h"
#include "sim/sweep/sweep_file.h"
#include "tests/known.h"

namespace commfuse {
namespace {

namespace fs = std::filesystem;

const fs::path folder = COMMFUSE_SOURCE_DIR "/tests/config/bad";

void read_run(const std::string& path) {
  Resolver resolver;
  resolver.read_file(path);
  resolver.finish();
}

void read_whole_sweep(const std::string& path) {
  Resolver resolver;
  Sweep sweep = read_sweep(path, resolver);
  sweep.grid.axes = merged_axes(std::move(sweep.grid.axes), {}, resolver);
  sweep.grid.settings = resolver.finish();
  library_of(sweep.grid);
  points_of(sweep.grid);
}

std::string mistakes_in(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::string kind = name.substr(0, name.find('-'));
  const std::string short_path = "./" + name;
  try {
    if (kind == "run") {
      read_run(short_path);
    } else if (kind == "sweep") {
      read_whole_sweep(short_path);
    } else if (kind == "plan") {
      load_plan(short_path);
    } else if (kind == "model") {
      load_model(short_path);
    } else if (kind == "hardware") {
      load_machine(short_path);
    } else if (kind == "jitter") {
      load_jitter(short_path);
    } else {
      return "no loader for this name";
    }
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string expected_of(const fs::path& path) {
  const std::string begin = "# expect: ";
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line) && line.rfind(begin, 0) == 0;) {
    lines.push_back(line.substr(begin.size()));
  }
  std::string text = fmt::format("{}", fmt::join(lines, "\n"));
  replace_all(text, "{path}", "./" + path.filename().string());
  replace_all(text, "{settings}", test::known_settings());
  replace_all(text, "{numbers}", test::known_numbers());
  replace_all(text, "{models}", fmt::format("{}", fmt::join(known_names(Catalogue::models), ", ")));
  replace_all(text, "{implementations}", fmt::format("{}", fmt::join(known_names(Catalogue::implementations), ", ")));
  replace_all(text, "{frameworks}", fmt::format("{}", fmt::join(known_names(Catalogue::frameworks), ", ")));
  replace_all(text, "{jitter}", fmt::format("{}", fmt::join(known_names(Catalogue::jitter), ", ")));
  replace_all(text, "{hardware}", fmt::format("{}", fmt::join(known_names(Catalogue::hardware), ", ")));
  return text;
}

TEST(BadConfigs, EachHasItsExactMessage) {
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  std::map<std::string, int> kinds;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) {
      continue;  // Folders hold files that tested files name.
    }
    const std::string name = entry.path().filename().string();
    ++kinds[name.substr(0, name.find('-'))];
    EXPECT_NE(expected_of(entry.path()), "") << name;
    EXPECT_EQ(mistakes_in(entry.path()), expected_of(entry.path())) << name;
  }
  fs::current_path(before);
  EXPECT_GE(kinds["run"], 40);
  EXPECT_GE(kinds["sweep"], 40);
  EXPECT_GE(kinds["model"], 10);
  EXPECT_GE(kinds["hardware"], 10);
  EXPECT_GE(kinds["jitter"], 10);
  EXPECT_GE(kinds["plan"], 20);
  EXPECT_EQ(kinds.size(), 6U);
}

TEST(BadConfigs, CoverEveryField) {
  std::string names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    names += entry.path().filename().string() + "\n";
  }
  for (const Field& field : run_fields()) {
    std::string key(field.key);
    std::replace_if(
        key.begin(), key.end(), [](char c) { return c == '.' || c == '_'; }, '-');
    EXPECT_NE(names.find("run-" + key + "-"), std::string::npos) << field.key;
  }
}

}  // namespace
}  // namespace commfuse
