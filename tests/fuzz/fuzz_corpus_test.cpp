// SPDX-License-Identifier: Apache-2.0
// Runs every reader on the seeds of fuzzers and the inputs that they found, corpus/TARGET/*, and on hostile files that
// are too large to store.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/targets.h"

namespace commfuse::fuzz {
namespace {

namespace fs = std::filesystem;

class FuzzCorpus : public ::testing::TestWithParam<Target> {};

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

/// The nesting is deeper than the stack.
TEST_P(FuzzCorpus, DeepNestsAreRead) {
  for (const std::string_view opening : {"[", "{\"a\":", "- ", "<a>", "((", "a: {b: "}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) {
      deep += opening;
    }
    EXPECT_NO_THROW(GetParam().read(deep)) << opening;
  }
}

std::string repeated(std::string_view text, int times) {
  std::string repetition;
  for (int i = 0; i < times; ++i) {
    repetition += text;
  }
  return repetition;
}

/// Nests that never close are refused before any reader descends into them; these close.
TEST_P(FuzzCorpus, DeepNestsThatAreClosedAreRead) {
  constexpr int deep = 40'000;
  const std::string begin = R"(<system version="1"><cpu numaid="0"><pci busid="a"><gpu dev="0" sm="90"/></pci>)";
  for (const auto& [open, close] :
       {std::pair{"<nic>", "</nic>"}, std::pair{"<pci>", "</pci>"}, std::pair{"<pci><nic>", "</nic></pci>"}}) {
    const std::string nest = begin + repeated(open, deep) + repeated(close, deep) + "</cpu></system>";
    EXPECT_NO_THROW(GetParam().read(nest)) << open;
  }
  EXPECT_NO_THROW(GetParam().read(repeated("[", deep) + repeated("]", deep)));
  EXPECT_NO_THROW(GetParam().read(repeated("{\"a\":", deep) + "1" + repeated("}", deep)));
}

/// A reader must not compare each key with all others: the time would grow with the square of their number.
TEST_P(FuzzCorpus, ManyKeysAndObjectsAreRead) {
  std::string json = "{\"k\": 1";
  std::string yaml = "schema: commfuse.plan/1\ngpus:\n";
  for (int i = 0; i < 10'000; ++i) {
    json += fmt::format(",\"k{}\": 1", i);
    yaml += fmt::format("  k{}: 1\n", i);
  }
  EXPECT_NO_THROW(GetParam().read(json + "}"));
  EXPECT_NO_THROW(GetParam().read(yaml));
  EXPECT_NO_THROW(GetParam().read("{\"a\": [" + repeated("{},", 40'000) + "{}]}"));
}

/// A list of nine values, and nine more lists, each of nine aliases of the previous list: 3e9 values if a reader
/// expands every alias.
TEST_P(FuzzCorpus, AliasesOfAliasesDoNotMultiply) {
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
