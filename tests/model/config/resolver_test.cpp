// SPDX-License-Identifier: Apache-2.0
#include "model/config/resolver.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "model/config/choices.h"
#include "model/config_error.h"
#include "tests/golden_file.h"
#include "tests/known.h"
#include "tests/own_folder.h"

namespace commfuse {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

/// Runs each test in a separate empty folder, so that messages name just `a.yaml`.
class ResolverTest : public ::testing::Test {
 protected:
  static void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

 private:
  OwnFolder folder_;
};

/// Returns a string such as "8K from --seq".
std::string value_and_origin(const Settings& settings, std::string_view key) {
  const Setting& setting = settings.at(*find_field(key));
  return setting.text + " from " + (setting.origin.where.empty() ? "default" : setting.origin.where);
}

std::string mistakes(Resolver& resolver) {
  try {
    resolver.finish();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_F(ResolverTest, DefaultsThenFilesThenEnvironmentThenSetThenFlag) {
  write("a.yaml", "seq: 1K\nbatch: 2\nranks: 2\ndtype: fp16\n");
  write("b.yaml", "seq: 2K\nbatch: 3\nranks: 4\nstrategy: {slices: 2, name: [sliced, serial]}\n");
  Resolver resolver;
  EXPECT_EQ(value_and_origin(resolver.settings(), "seq"), "4K from default");
  resolver.read_file("a.yaml");
  resolver.read_file("b.yaml");
  EXPECT_EQ(value_and_origin(resolver.settings(), "seq"), "2K from b.yaml:1:6");
  resolver.read_environment(Texts{"COMMFUSE_SEQ=3K", "COMMFUSE_BATCH=5", "HOME=/", "COMMFUSE_RANKS="});
  EXPECT_EQ(value_and_origin(resolver.settings(), "seq"), "3K from COMMFUSE_SEQ");
  resolver.read_set("seq=5K");
  resolver.read_set("strategy.slices=8");
  EXPECT_EQ(value_and_origin(resolver.settings(), "seq"), "5K from --set seq=5K");
  resolver.read_flag(*find_field("seq"), "6K");
  const Settings settings = resolver.finish();
  EXPECT_EQ(value_and_origin(settings, "seq"), "6K from --seq");
  EXPECT_EQ(value_and_origin(settings, "batch"), "5 from COMMFUSE_BATCH");
  EXPECT_EQ(value_and_origin(settings, "ranks"), "4 from b.yaml:3:8");
  EXPECT_EQ(value_and_origin(settings, "dtype"), "fp16 from a.yaml:4:8");
  EXPECT_EQ(value_and_origin(settings, "strategy.slices"), "8 from --set strategy.slices=8");
  EXPECT_EQ(value_and_origin(settings, "strategy.name"), "sliced,serial from b.yaml:4:29");
  EXPECT_EQ(value_and_origin(settings, "model"), "llama-3.1-70b from default");
  EXPECT_FALSE(settings.has("strategy.form"));
  EXPECT_EQ(settings.count("seq"), 6144);
}

TEST_F(ResolverTest, EveryMistakeIsReportedWithItsPlaceEvenIfOverridden) {
  write("a.yaml", "seq: many\nrnks: 2\n");
  Resolver resolver;
  resolver.read_file("a.yaml");
  resolver.read_file("absent.yaml");
  resolver.read_environment(Texts{"COMMFUSE_SEQ=x", "COMMFUSE_SHEQ=8K", "COMMFUSE_CONFIG_DIR=/tmp"});
  resolver.read_set("seq=y");
  resolver.read_set("sqe=8K");
  resolver.read_set("seq");
  resolver.read_set("strategy=sliced");
  resolver.read_set("colour=red");
  resolver.read_flag(*find_field("seq"), "z");
  EXPECT_EQ(mistakes(resolver),
            "a.yaml:1:6: 'many' is not a whole number; write one, such as 4K\n"
            "a.yaml:2:1: unknown setting 'rnks'; did you mean 'ranks'?\n"
            "absent.yaml: cannot be read (No such file or directory); check the path\n"
            "COMMFUSE_SEQ: 'x' is not a whole number; write one, such as 4K\n"
            "unknown environment variable 'COMMFUSE_SHEQ'; did you mean 'COMMFUSE_SEQ'?\n"
            "--set seq=y: 'y' is not a whole number; write one, such as 4K\n"
            "--set sqe=8K: unknown setting 'sqe'; did you mean 'seq'?\n"
            "--set seq: '=' is missing; write a setting and its value, as in --set seq=8K\n"
            "--set strategy=sliced: 'strategy' is a group of settings; name one, as in strategy.name\n"
            "--set colour=red: unknown setting 'colour'; known settings: " +
                test::known_settings() +
                "\n"
                "--seq: 'z' is not a whole number; write one, such as 4K");
}

TEST_F(ResolverTest, AnUnknownVariableIsRefusedWithASuggestion) {
  Resolver resolver;
  resolver.read_environment(
      Texts{"COMMFUSE_STRATEGY=sliced", "COMMFUSE_SLICES=4", "COMMFUSE_DATA_PARALLEL=2", "COMMFUSE_PIPELINE=2"});
  EXPECT_EQ(mistakes(resolver),
            "unknown environment variable 'COMMFUSE_STRATEGY'; did you mean 'COMMFUSE_STRATEGY_NAME'?\n"
            "unknown environment variable 'COMMFUSE_SLICES'; did you mean 'COMMFUSE_STRATEGY_SLICES'?\n"
            "unknown environment variable 'COMMFUSE_DATA_PARALLEL'; did you mean 'COMMFUSE_PARALLEL_DATA'?\n"
            "unknown environment variable 'COMMFUSE_PIPELINE'; did you mean 'COMMFUSE_PARALLEL_PIPELINE'?");
}

TEST_F(ResolverTest, PathsInAFileStartAtItsFolder) {
  fs::create_directories("sub/deeper");
  fs::copy_file(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml", "sub/mine.yaml");
  write("sub/deeper/a.yaml", "model: ../mine.yaml\n");
  write("sub/b.yaml", "model: mine.yaml\n");
  write("sub/c.yaml", "model: llama-3.1-70b\n");
  Resolver resolver;
  resolver.read_file("sub/deeper/a.yaml");
  EXPECT_EQ(resolver.finish().text("model"), "sub/mine.yaml");
  resolver.read_file("sub/b.yaml");
  EXPECT_EQ(resolver.finish().text("model"), "sub/mine.yaml");
  resolver.read_file("sub/c.yaml");
  EXPECT_EQ(resolver.finish().text("model"), "llama-3.1-70b");
  fs::current_path("sub");
  resolver.read_file("./b.yaml");
  EXPECT_EQ(resolver.finish().text("model"), "./mine.yaml");
}

TEST_F(ResolverTest, AnIdOfHuggingFaceInAFileIsAPathOnlyIfItExists) {
  fs::create_directories("sub/acme/tiny");
  write("sub/a.yaml", "model: meta-llama/Llama-3.1-70B\n");
  write("sub/b.yaml", "model: acme/tiny\n");
  write("sub/c.yaml", "model: acme/absent\n");
  Resolver resolver;
  resolver.read_file("sub/a.yaml");
  EXPECT_EQ(resolver.finish().text("model"), "llama-3.1-70b");
  write("sub/acme/tiny/config.json", "{}");
  resolver.read_file("sub/b.yaml");
  EXPECT_EQ(resolver.finish().text("model"), "./sub/acme/tiny/config.json");
  resolver.read_file("sub/c.yaml");
  EXPECT_EQ(mistakes(resolver).find("sub/c.yaml:1:8: 'acme/absent' is not a file here"), 0U) << mistakes(resolver);
}

TEST_F(ResolverTest, EachPathInAListStartsAtTheFolderOfTheFile) {
  fs::create_directories("sub/deeper");
  fs::copy_file(COMMFUSE_SOURCE_DIR "/configs/implementations/flux.yaml", "sub/mine.yaml");
  write("sub/deeper/a.yaml", "as: ../mine.yaml\n");
  write("sub/b.yaml", "as: \"te,./mine.yaml\"\n");
  write("sub/c.yaml", "as: all\n");
  Resolver resolver;
  resolver.read_file("sub/deeper/a.yaml");
  EXPECT_EQ(resolver.finish().text("as"), "sub/mine.yaml");
  resolver.read_file("sub/b.yaml");
  EXPECT_EQ(resolver.finish().text("as"), "te,sub/mine.yaml");
  resolver.read_file("sub/c.yaml");
  EXPECT_EQ(resolver.finish().text("as"), "all");
}

TEST_F(ResolverTest, TheOutputOfShowReadsBackTheSame) {
  Resolver first;
  first.read_set("strategy.slices=2");
  first.read_set("strategy.name=sliced,serial");
  first.read_set("seq=8K");
  const std::string text = to_yaml(first.finish(), false);
  write("shown.yaml", text);
  write("with-origins.yaml", to_yaml(first.finish(), true));
  for (const char* path : {"shown.yaml", "with-origins.yaml"}) {
    Resolver second;
    second.read_file(path);
    EXPECT_EQ(to_yaml(second.finish(), false), text);
  }
  const std::string with_origins = to_yaml(first.finish(), true);
  EXPECT_EQ(with_origins, test::golden_file("model/config/shown.yaml", with_origins));
}

TEST_F(ResolverTest, SamplesDefaultTo1WithoutJitterAnd1000WithIt) {
  Resolver resolver;
  EXPECT_EQ(samples_of(choices_of(resolver.finish())), 1);
  resolver.read_set("jitter=default");
  EXPECT_EQ(samples_of(choices_of(resolver.finish())), 1000);
  resolver.read_set("samples=10K");
  EXPECT_EQ(samples_of(choices_of(resolver.finish())), 10240);
}

TEST_F(ResolverTest, ScalarsThatYamlCouldMisreadAreQuoted) {
  EXPECT_EQ(yaml_scalar("llama-3.1-70b"), "llama-3.1-70b");
  EXPECT_EQ(yaml_scalar("./a/b.yaml"), "./a/b.yaml");
  EXPECT_EQ(yaml_scalar(""), "\"\"");
  EXPECT_EQ(yaml_scalar("-x"), "\"-x\"");
  EXPECT_EQ(yaml_scalar("*x"), "\"*x\"");
  EXPECT_EQ(yaml_scalar("a b"), "\"a b\"");
  EXPECT_EQ(yaml_scalar("a: \"b\\\n"), "\"a: \\\"b\\\\\\x0a\"");
}

// A file of up to 1 MiB can hold almost a hundred thousand unknown keys.
TEST_F(ResolverTest, ManyMistakesAreSummarized) {
  std::string text;
  for (int i = 0; i < 95'000; ++i) {
    text += "k" + std::to_string(i) + ": 1\n";
  }
  write("a.yaml", text);
  Resolver resolver;
  resolver.read_file("a.yaml");
  const std::string message = mistakes(resolver);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 100);
  EXPECT_NE(message.find("\na.yaml: 94900 more mistakes; first correct those listed above"), std::string::npos);
}

}  // namespace
}  // namespace commfuse
