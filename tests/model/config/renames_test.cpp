// SPDX-License-Identifier: Apache-2.0
// Tests that a former name is accepted for one minor release with one warning, and then refused with the new name.
#include "model/config/renames.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "model/build_info.h"
#include "model/config/command_line.h"
#include "model/config/resolver.h"
#include "model/config_error.h"
#include "tests/own_folder.h"

namespace commfuse {
namespace {

/// Made-up former names of two settings and a flag, whose current names date from 0.3.
constexpr std::array made_up_renames{Rename{"tokens", "seq", 0, 3}, Rename{"strategy.pieces", "strategy.slices", 0, 3},
                                     Rename{"--tokens", "--seq", 0, 3}};
const Renames in_its_release(made_up_renames, "0.3.2");
const Renames in_the_next_release(made_up_renames, "0.4.0");

std::string value_of(const Settings& settings, std::string_view key) { return settings.at(*find_field(key)).text; }

std::string mistakes_of(Resolver& resolver) {
  try {
    resolver.finish();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Renames, AFormerKeyIsAcceptedInItsReleaseWithOneWarning) {
  const OwnFolder folder;
  std::ofstream("a.yaml") << "tokens: 8K\nstrategy: {pieces: 4}\n";
  Resolver resolver(in_its_release);
  resolver.read_file("a.yaml");
  resolver.read_file("a.yaml");  // Reading the same place again does not repeat the warning.
  testing::internal::CaptureStderr();
  const Settings settings = resolver.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "a.yaml:1:1: tokens is now called seq; the former name stops working in 0.4\n"
            "a.yaml:2:12: strategy.pieces is now called strategy.slices; the former name stops working in 0.4\n");
  EXPECT_EQ(value_of(settings, "seq"), "8K");
  EXPECT_EQ(value_of(settings, "strategy.slices"), "4");
}

TEST(Renames, FormerVariablesAndKeysOfSetAreAcceptedToo) {
  Resolver resolver(in_its_release);
  resolver.read_environment(std::vector<std::string>{"COMMFUSE_STRATEGY_PIECES=2"});
  resolver.read_set("tokens=2K");
  EXPECT_EQ(resolver.warnings(),
            (std::vector<std::string>{
                "COMMFUSE_STRATEGY_PIECES is now called COMMFUSE_STRATEGY_SLICES; the former name stops working in 0.4",
                "--set tokens=2K: tokens is now called seq; the former name stops working in 0.4"}));
  EXPECT_EQ(value_of(resolver.settings(), "strategy.slices"), "2");
  EXPECT_EQ(value_of(resolver.settings(), "seq"), "2K");
}

TEST(Renames, TheNextMinorReleaseRefusesFormerNamesWithTheNewOnes) {
  const OwnFolder folder;
  std::ofstream("a.yaml") << "tokens: 8K\n";
  Resolver resolver(in_the_next_release);
  resolver.read_file("a.yaml");
  resolver.read_environment(std::vector<std::string>{"COMMFUSE_TOKENS=2K"});
  resolver.read_set("tokens=2K");
  EXPECT_EQ(mistakes_of(resolver),
            "a.yaml:1:1: tokens was renamed to seq in 0.3; write seq\n"
            "COMMFUSE_TOKENS was renamed to COMMFUSE_SEQ in 0.3; write COMMFUSE_SEQ\n"
            "--set tokens=2K: tokens was renamed to seq in 0.3; write seq");
  EXPECT_TRUE(resolver.warnings().empty());
}

/// A program with the flags --seq and --axis.
struct RenamingProgram {
  LastWords run(const std::vector<const char*>& words, const Renames& renames) {
    CLI::App app("a program", "program");
    app.add_option("--seq", seq);
    app.add_option("--axis", axis);
    return run_quietly(app, static_cast<int>(words.size()), words.data(), status, renames);
  }
  std::string seq;
  std::string axis;
  int status = 0;
};

TEST(Renames, AFormerFlagIsAcceptedInItsReleaseWithOneWarning) {
  for (const auto& words : {std::vector<const char*>{"program", "--tokens", "4K"}, {"program", "--tokens=4K"}}) {
    RenamingProgram program;
    const LastWords last = program.run(words, in_its_release);
    EXPECT_EQ(last.code, 0) << last.sentence;
    EXPECT_EQ(program.seq, "4K");
    EXPECT_EQ(last.warnings,
              std::vector<std::string>{"--tokens is now called --seq; the former name stops working in 0.4"});
  }
  RenamingProgram next;
  const LastWords refused = next.run({"program", "--tokens", "4K"}, in_the_next_release);
  EXPECT_EQ(refused.code, exit_code::user_mistake);
  EXPECT_EQ(refused.sentence, "--tokens was renamed to --seq in 0.3; write --seq");
}

TEST(Renames, AnAxisVariesTheSettingOfTheNewName) {
  for (const auto& words :
       {std::vector<const char*>{"program", "--axis", "tokens=1K,2K"}, {"program", "--axis=tokens=1K,2K"}}) {
    RenamingProgram program;
    const LastWords last = program.run(words, in_its_release);
    EXPECT_EQ(program.axis, "seq=1K,2K") << last.sentence;
    EXPECT_EQ(last.warnings,
              std::vector<std::string>{"tokens is now called seq; the former name stops working in 0.4"});
  }
}

TEST(Renames, CurrentNamesRaiseNoWarning) {
  RenamingProgram program;
  EXPECT_TRUE(program.run({"program", "--seq", "4K", "--axis", "ranks=2,4"}, in_its_release).warnings.empty());
  EXPECT_FALSE(in_its_release.key("seq"));
  EXPECT_FALSE(in_its_release.flag("--seq"));
  EXPECT_FALSE(in_its_release.flag("tokens"));
  EXPECT_FALSE(in_its_release.variable("COMMFUSE_SEQ"));
}

// No entry in the program's table refers to a name that does not exist, hides a name that does, or outlives its
// release.
TEST(Renames, TheTableOfTheProgramIsConsistent) {
  for (const Rename& rename : program_renames().table()) {
    const bool is_flag = rename.before.starts_with("--");
    if (!is_flag) {
      EXPECT_EQ(find_field(rename.before), nullptr) << rename.before;
      EXPECT_NE(find_field(rename.now), nullptr) << rename.now;
    }
    const auto former = is_flag ? program_renames().flag(rename.before) : program_renames().key(rename.before);
    ASSERT_TRUE(former);
    EXPECT_TRUE(former->is_accepted) << rename.before
                                     << " has had its release; remove it from model/config/renames.cpp";
  }
}

}  // namespace
}  // namespace commfuse
