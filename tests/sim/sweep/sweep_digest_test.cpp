// SPDX-License-Identifier: Apache-2.0
// Tests that a store resumes only if no file that its sweep names has changed.
#include "sim/sweep/sweep_digest.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/own_folder.h"
#include "tests/shipped.h"
#include "tests/sim/grid_of.h"

namespace commfuse {
namespace {

std::string digest_with(const std::vector<std::string>& sets) { return digest_of("a sweep", test::grid_of(sets)); }

std::string digest_by(const std::string& framework) {
  return framework.empty() ? digest_with({"scope=step"}) : digest_with({"scope=step", "framework=" + framework});
}

TEST(SweepDigest, FollowsTheFileOfAFramework) {
  const OwnFolder folder;
  const auto written = [](const std::string& text) {
    std::ofstream("mine.yaml") << text;
    return digest_by("./mine.yaml");
  };
  EXPECT_EQ(digest_by("none"), digest_by(""));
  EXPECT_NE(digest_by("fsdp"), digest_by("none"));
  const std::string first = written("a: 1\n");
  EXPECT_EQ(written("a: 1\n"), first);
  EXPECT_NE(written("a: 2\n"), first);
}

TEST(SweepDigest, AModelGivenByItsShapeHasNoFile) {
  EXPECT_EQ(digest_with({"model=8192x28672"}), digest_with({"model=4096x14336"}));
}

TEST(SweepDigest, FollowsTheImplementationThatAFrameworkNames) {
  const OwnFolder folder;
  std::ofstream("mine.yaml") << "implementation: ./loom.yaml\n";
  std::ofstream("loom.yaml") << "a: 1\n";
  const std::string first = digest_by("./mine.yaml");
  std::ofstream("loom.yaml") << "a: 2\n";
  EXPECT_NE(digest_by("./mine.yaml"), first);
}

/// Returns whether the digest changes with a file of the catalogue.
bool follows(const std::string& file_of_catalogue, const std::function<std::string()>& digest) {
  std::filesystem::copy(test::configs_folder, "configs", std::filesystem::copy_options::recursive);
  const char* const given = std::getenv("COMMFUSE_CONFIG_DIR");
  const std::optional<std::string> before = given == nullptr ? std::nullopt : std::optional<std::string>(given);
  setenv("COMMFUSE_CONFIG_DIR", "configs", 1);
  const std::string first = digest();
  std::ofstream("configs/" + file_of_catalogue, std::ios::app) << "# changed\n";
  const std::string second = digest();
  before ? setenv("COMMFUSE_CONFIG_DIR", before->c_str(), 1) : unsetenv("COMMFUSE_CONFIG_DIR");
  return first != second;
}

TEST(SweepDigest, FollowsTheFrameworkThatAFrameworkExtends) {
  const OwnFolder folder;
  std::ofstream("mine.yaml") << "extends: megatron-lm\n";
  EXPECT_TRUE(follows("frameworks/megatron-lm.yaml", [] { return digest_by("./mine.yaml"); }));
}

TEST(SweepDigest, FollowsTheTableOfTheCatalogueThatAFileNames) {
  const OwnFolder folder;
  std::ofstream("mine.yaml") << "kernel_choice: {as: a100-sxm-80/bf16}\n";
  EXPECT_TRUE(follows("hardware/a100-sxm-80.yaml", [] { return digest_with({"hardware=./mine.yaml"}); }));
}

TEST(SweepDigest, FollowsTheTableThatAFileNamesWithADtype) {
  const OwnFolder folder;
  std::ofstream("mine.yaml") << "accelerator: {matrix_units: {bf16: {kernel_choice: {as: ./table.yaml/bf16}}}}\n";
  const auto written = [](const std::string& text) {
    std::ofstream("table.yaml") << text;
    return digest_with({"hardware=./mine.yaml"});
  };
  const std::string first = written("a: 1\n");
  EXPECT_EQ(written("a: 1\n"), first);
  EXPECT_NE(written("a: 2\n"), first);
}

TEST(SweepDigest, FollowsImplementationsToCompare) {
  const OwnFolder folder;
  const auto written = [](const std::string& text) {
    std::ofstream("loom.yaml") << text;
    return digest_with({"as=te,./loom.yaml"});
  };
  const std::string first = written("a: 1\n");
  EXPECT_EQ(written("a: 1\n"), first);
  EXPECT_NE(written("a: 2\n"), first);
  EXPECT_NE(digest_with({"as=all"}), digest_with({}));
  EXPECT_EQ(digest_with({"as=none"}), digest_with({}));
}

TEST(SweepDigest, FollowsFilesThatExchangeTheirNames) {
  const OwnFolder folder;
  const auto written = [](const std::string& first, const std::string& second) {
    std::ofstream("first.yaml") << first;
    std::ofstream("second.yaml") << second;
    return digest_with({"as=./first.yaml,./second.yaml"});
  };
  EXPECT_NE(written("a: 1\n", "a: 2\n"), written("a: 2\n", "a: 1\n"));
  EXPECT_EQ(written("a: 1\n", "a: 2\n"), written("a: 1\n", "a: 2\n"));
}

TEST(SweepDigest, FollowsAModelFileLongerThanOtherConfigs) {
  const OwnFolder folder;
  const auto written = [](const std::string& text) {
    std::ofstream("config.json") << std::string(std::size_t{2} << 20U, ' ') << text;
    return digest_with({"model=./config.json"});
  };
  const std::string first = written("{}");
  EXPECT_EQ(written("{}"), first);
  EXPECT_NE(written("[]"), first);
}

TEST(SweepDigest, FollowsTheStrategiesThatAllSelects) {
  EXPECT_NE(digest_with({"strategy.name=all"}), digest_with({"strategy.name=serial"}));
  EXPECT_EQ(digest_with({"strategy.name=serial"}),
            digest_with({"strategy.name=sliced"}));  // only the sweep's text distinguishes them
}

}  // namespace
}  // namespace commfuse
