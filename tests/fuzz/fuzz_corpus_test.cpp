// SPDX-License-Identifier: Apache-2.0
// What fuzzers found, and what they start from, once through every reader: corpus/TARGET/*. And hostile files that are
// too large to keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace commfuse::fuzz {
namespace {

namespace fs = std::filesystem;

class FuzzCorpus : public ::testing::TestWithParam<Target> {
 protected:
  void SetUp() override { setenv("COMMFUSE_CONFIG_DIR", COMMFUSE_SOURCE_DIR "/configs", 1); }
  void TearDown() override { unsetenv("COMMFUSE_CONFIG_DIR"); }
};

TEST_P(FuzzCorpus, IsReadOrRefused) {
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::directory_iterator(fs::path(COMMFUSE_SOURCE_DIR "/tests/fuzz/corpus") / GetParam().name)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  EXPECT_FALSE(files.empty());
  for (const fs::path& file : files) {
    SCOPED_TRACE(file.filename().string());
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    EXPECT_NO_THROW(GetParam().read(bytes));
    EXPECT_NO_THROW(GetParam().read(std::string_view(bytes).substr(0, bytes.size() / 2)));
  }
}

/// Nested deeper than a stack is high.
TEST_P(FuzzCorpus, DeepNestsAreRead) {
  for (const std::string_view one : {"[", "{\"a\":", "- ", "<a>", "((", "a: {b: "}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) {
      deep += one;
    }
    EXPECT_NO_THROW(GetParam().read(deep)) << one;
  }
}

/// Nine lists of nine names of the list before: 3e9 values where every name is followed.
TEST_P(FuzzCorpus, NamesOfNamesDoNotMultiply) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 8; ++j) {
      laughs += ", " + before;
    }
    laughs += "]\n";
  }
  EXPECT_NO_THROW(GetParam().read(laughs));
}

INSTANTIATE_TEST_SUITE_P(Readers, FuzzCorpus, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace commfuse::fuzz
