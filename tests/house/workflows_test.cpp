// SPDX-License-Identifier: Apache-2.0
// Checks that workflows and Dockerfiles refer only to files in the tree. Nothing here runs them, so this test reads
// them.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/contents_of.h"

namespace commfuse {
namespace {

namespace fs = std::filesystem;

const fs::path source = COMMFUSE_SOURCE_DIR;

std::vector<fs::path> workflows() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(source / ".github/workflows")) {
    files.push_back(entry.path());
  }
  return files;
}

/// Returns our scripts that a string runs: "./dev package", "tests/release/notes.sh", ".ci/run".
std::vector<std::string> scripts_in(const std::string& text) {
  static const std::regex script(R"re((?:^|[\s;&|(])((?:\./|tests/|\.ci/|cmake/)[\w./-]*\w))re");
  std::vector<std::string> scripts;
  for (std::sregex_iterator at(text.begin(), text.end(), script), end; at != end; ++at) {
    scripts.push_back((*at)[1].str());
  }
  return scripts;
}

std::vector<std::string> needs_of(const YAML::Node& job) {
  const YAML::Node needs = job["needs"];
  return !needs               ? std::vector<std::string>{}
         : needs.IsSequence() ? needs.as<std::vector<std::string>>()
                              : std::vector<std::string>{needs.as<std::string>()};
}

TEST(Workflows, StepsRunScriptsOfTheTreeAndPinActions) {
  std::size_t steps = 0;
  static const std::regex pinned(R"re([\w-]+/[\w-]+@v\d+)re");
  for (const fs::path& path : workflows()) {
    const YAML::Node workflow = YAML::LoadFile(path);
    EXPECT_TRUE(workflow["permissions"]) << path << " does not restrict its permissions";
    for (const auto& job : workflow["jobs"]) {
      for (const YAML::Node& step : job.second["steps"]) {
        ++steps;
        EXPECT_NE(step["uses"].IsDefined(), step["run"].IsDefined()) << path;
        if (step["uses"]) {
          EXPECT_TRUE(std::regex_match(step["uses"].as<std::string>(), pinned)) << step["uses"];
          continue;
        }
        for (const std::string& script : scripts_in(step["run"].as<std::string>())) {
          const bool is_built = script.starts_with("./packages");  // by an earlier job
          EXPECT_TRUE(is_built || fs::is_regular_file(source / script)) << path << " runs " << script;
        }
      }
    }
  }
  EXPECT_GT(steps, 10U);
}

TEST(Workflows, JobsNeedExistingJobs) {
  for (const fs::path& path : workflows()) {
    const YAML::Node jobs = YAML::LoadFile(path)["jobs"];
    for (const auto& job : jobs) {
      for (const std::string& needed : needs_of(job.second)) {
        EXPECT_TRUE(jobs[needed].IsDefined()) << path << ": " << needed;
      }
      EXPECT_TRUE(job.second["runs-on"]) << path;
    }
  }
}

// A release publishes only packages that were built, tested, installed on clean systems, and put into an image.
TEST(Workflows, AReleaseWaitsForTestsInstallsAndImages) {
  const YAML::Node jobs = YAML::LoadFile(source / ".github/workflows/ci.yml")["jobs"];
  const std::vector<std::string> needed = needs_of(jobs["release"]);
  EXPECT_EQ(std::set<std::string>(needed.begin(), needed.end()), (std::set<std::string>{"test", "install", "image"}));
  EXPECT_EQ(jobs["release"]["if"].as<std::string>(), "startsWith(github.ref, 'refs/tags/v')");
  EXPECT_EQ(jobs["install"]["strategy"]["matrix"]["image"].as<std::vector<std::string>>(),
            (std::vector<std::string>{"debian:12", "ubuntu:22.04", "ubuntu:24.04"}));
}

/// Expects that a Dockerfile copies only files of the tree or from stages above, runs only scripts of the tree, and has
/// the instructions that an image needs.
void expect_image_copies_existing_files(const fs::path& path) {
  std::istringstream lines(test::contents_of(path));
  std::set<std::string> stages;
  std::set<std::string> instructions;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string instruction;
    std::string word;
    words >> instruction >> word;
    if (instruction == "FROM") {
      std::string as;
      std::string name;
      words >> as >> name;
      stages.insert(name);
    } else if (instruction == "COPY" && word.starts_with("--from=")) {
      EXPECT_TRUE(stages.contains(word.substr(7))) << line;
    } else if (instruction == "COPY") {
      EXPECT_TRUE(fs::exists(source / word)) << line;
    }
    for (const std::string& script : scripts_in(instruction == "RUN" ? line : "")) {
      EXPECT_TRUE(fs::is_regular_file(source / script)) << path << " runs " << script;
    }
    instructions.insert(instruction);
  }
  for (const char* const instruction : {"FROM", "COPY", "RUN", "USER", "CMD"}) {
    EXPECT_TRUE(instructions.contains(instruction)) << path << " has no " << instruction;
  }
}

TEST(Images, CopyExistingFilesAndRunAsAnUnprivilegedUser) {
  for (const char* const name : {"Dockerfile", "Dockerfile.cuda"}) {
    expect_image_copies_existing_files(source / name);
  }
}

}  // namespace
}  // namespace commfuse
