// SPDX-License-Identifier: Apache-2.0
// Tests that the files of docs/examples/nodes work on planted nodes, which are files in a folder that imitate a node's
// /proc, /sys and /dev: Slurm's script, manifests of Kubernetes, an image.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/program.h"
#include "tests/own_folder.h"
#include "tests/validate/health/planted_node.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

const fs::path examples = project_folder / "docs/examples/nodes";

void make_bad(const PlantedNode& node) { node.set_port("mlx5_0", "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)"); }

TEST(NodeExamples, ScriptsPassShellcheck) {
  if (run_program("sh -c 'command -v shellcheck'").code != 0) {
    GTEST_SKIP() << "shellcheck is not installed";
  }
  const Outcome outcome = run_program("shellcheck " + (examples / "slurm-node-check.sh").string() + " " +
                                      (examples / "check-nodes.sbatch").string());
  EXPECT_EQ(outcome.code, 0) << outcome.out;
}

/// The script, with settings that point it to a planted node, and a scontrol that records its arguments.
class SlurmNodeCheck : public testing::Test {
 protected:
  SlurmNodeCheck() {
    node.plant_healthy_node();
    fs::copy_file(examples / "slurm-node-check.sh", "check.sh");
    fs::create_directory("fakes");
    std::ofstream("fakes/scontrol") << "#!/bin/sh\nprintf '%s\\n' \"$*\" >>" << fs::current_path().string()
                                    << "/scontrol.calls\n";
    fs::permissions("fakes/scontrol", fs::perms::owner_all);
    set("checker=commfuse-validate");
  }
  void set(const std::string& more) const {
    std::ofstream("node-check.conf") << "PATH=" << fs::current_path().string() << "/fakes:" COMMFUSE_BIN_DIR ":$PATH\n"
                                     << "root=" << node.root().string()
                                     << "\nlog_folder=" << fs::current_path().string() << "/logs\n"
                                     << more << "\n";
  }
  static Outcome run() { return run_program("env -i SLURMD_NODENAME=node-1 bash ./check.sh"); }

  OwnFolder folder;
  PlantedNode node;
};

TEST_F(SlurmNodeCheck, LetsJobsRunOnAHealthyNode) {
  const Outcome outcome = run();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(fs::exists("scontrol.calls"));
  EXPECT_NE(contents_of("logs/node-check.txt").find("rdma       ok"), std::string::npos);
}

TEST_F(SlurmNodeCheck, DrainsABadNodeWithTheReason) {
  make_bad(node);
  node.remove("sys/module/nvidia_peermem");
  const Outcome outcome = run();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(contents_of("scontrol.calls"), "update NodeName=node-1 State=DRAIN Reason=commfuse: gdr rdma\n");
  EXPECT_NE(outcome.err.find(": gdr rdma; see "), std::string::npos) << outcome.err;
}

TEST_F(SlurmNodeCheck, ACheckerThatIsMissingOrHangsDrainsNothing) {
  make_bad(node);
  set("checker=/nowhere/commfuse-validate");
  EXPECT_EQ(run().code, 0);
  std::ofstream("fakes/hangs") << "#!/bin/sh\nexec sleep 60\n";
  fs::permissions("fakes/hangs", fs::perms::owner_all);
  set("checker=hangs\nseconds=0.2");
  EXPECT_EQ(run().code, 0);
  EXPECT_FALSE(fs::exists("scontrol.calls"));
}

TEST(NodeExamples, TheBatchScriptsCommandRuns) {
  const std::string text = contents_of(examples / "check-nodes.sbatch");
  const std::size_t begin = text.find("commfuse-validate doctor");
  ASSERT_NE(begin, std::string::npos);
  PlantedNode node;
  node.plant_healthy_node();
  const std::string command = text.substr(begin, text.find('\n', begin) - begin);
  const Outcome outcome = run_program("RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29461 " +
                                      command + " --root " + node.root().string());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

/// Returns the only container of a manifest.
YAML::Node container_of(const YAML::Node& manifest) {
  const YAML::Node containers = manifest["spec"]["template"]["spec"]["containers"];
  EXPECT_EQ(containers.size(), 1U);
  return containers[0];
}

class Manifest : public testing::TestWithParam<const char*> {};

TEST_P(Manifest, ShowsTheHostBelowTheRootThatTheCheckerReads) {
  const YAML::Node manifest = YAML::LoadFile(examples / GetParam());
  const YAML::Node pod = manifest["spec"]["template"]["spec"];
  std::map<std::string, std::string> host_paths;
  std::set<std::string> volumes;
  for (const YAML::Node& volume : pod["volumes"]) {
    volumes.insert(volume["name"].as<std::string>());
    if (volume["hostPath"]) {
      host_paths[volume["name"].as<std::string>()] = volume["hostPath"]["path"].as<std::string>();
    }
  }
  std::size_t host_mounts = 0;
  for (const YAML::Node& mount : container_of(manifest)["volumeMounts"]) {
    const auto name = mount["name"].as<std::string>();
    EXPECT_TRUE(volumes.contains(name)) << name;
    if (host_paths.contains(name)) {
      EXPECT_EQ(mount["mountPath"].as<std::string>(), "/host" + host_paths[name]);
      EXPECT_TRUE(mount["readOnly"].as<bool>());
      ++host_mounts;
    }
  }
  EXPECT_EQ(host_mounts, 3U);
  EXPECT_TRUE(pod["hostNetwork"].as<bool>());
}

INSTANTIATE_TEST_SUITE_P(NodeExamples, Manifest, testing::Values("job.yaml", "daemonset.yaml"));

TEST(NodeExamples, TheJobFailsOnABadNode) {
  const YAML::Node manifest = YAML::LoadFile(examples / "job.yaml");
  EXPECT_EQ(manifest["kind"].as<std::string>(), "Job");
  PlantedNode node;
  node.plant_healthy_node();
  std::string command = "commfuse-validate";
  for (const YAML::Node& argument : container_of(manifest)["args"]) {
    const auto word = argument.as<std::string>();
    command += fmt::format(" '{}'", word == "/host" ? node.root().string() : word);
  }
  const Outcome healthy = run_program(command);
  EXPECT_EQ(healthy.code, 0) << healthy.err;
  EXPECT_EQ(nlohmann::json::parse(healthy.out).at("schema"), "commfuse.doctor/1");
  make_bad(node);
  EXPECT_EQ(run_program(command).code, 4);
}

TEST(NodeExamples, ThePodOfTheDaemonSetIsReadyWhileItsNodeIsHealthy) {
  const OwnFolder folder;
  const YAML::Node manifest = YAML::LoadFile(examples / "daemonset.yaml");
  EXPECT_EQ(manifest["kind"].as<std::string>(), "DaemonSet");
  const YAML::Node container = container_of(manifest);
  std::string environment;
  PlantedNode node;
  node.plant_healthy_node();
  for (const YAML::Node& variable : container["env"]) {
    const auto name = variable["name"].as<std::string>();
    const std::string value = name == "ROOT"       ? node.root().string()
                              : name == "HEALTH"   ? "."
                              : name == "INTERVAL" ? "never"  // This ends the loop.
                                                   : variable["value"].as<std::string>();
    environment += fmt::format("{}='{}' ", name, value);
  }
  std::ofstream("loop.sh") << container["command"][2].as<std::string>();
  std::ofstream("ready.sh") << container["readinessProbe"]["exec"]["command"][2].as<std::string>();
  run_program(environment + "sh ./loop.sh");
  EXPECT_EQ(contents_of("code"), "0\n");
  EXPECT_EQ(nlohmann::json::parse(contents_of("doctor.json")).at("nodes").at(0).at("host"), "node-1");
  EXPECT_EQ(run_program(environment + "sh ./ready.sh").code, 0);
  make_bad(node);
  run_program(environment + "sh ./loop.sh");
  EXPECT_EQ(contents_of("code"), "4\n");
  EXPECT_NE(run_program(environment + "sh ./ready.sh").code, 0);
}

TEST(NodeExamples, TheImageContainsOnlyExistingFiles) {
  std::istringstream lines(contents_of(examples / "Dockerfile"));
  std::set<std::string> instructions;
  std::set<std::string> stages;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string instruction;
    std::string word;
    words >> instruction >> word;
    instructions.insert(instruction);
    if (instruction == "FROM") {
      std::string as;
      std::string name;
      words >> as >> name;
      stages.insert(name);
    } else if (instruction == "COPY" && word.starts_with("--from=")) {
      EXPECT_TRUE(stages.contains(word.substr(7))) << line;
    } else if (instruction == "COPY") {
      EXPECT_TRUE(fs::exists(project_folder / word)) << line;
    } else if (instruction == "ENTRYPOINT") {
      EXPECT_EQ(line, "ENTRYPOINT [\"commfuse-validate\"]");
    } else if (instruction == "RUN" && word == "./dev") {
      EXPECT_TRUE(fs::exists(project_folder / "dev"));
      EXPECT_EQ(line, "RUN ./dev setup && ./dev package");
    }
  }
  for (const char* const instruction : {"FROM", "COPY", "RUN", "ENTRYPOINT", "CMD"}) {
    EXPECT_TRUE(instructions.contains(instruction)) << instruction;
  }
}

}  // namespace
}  // namespace commfuse::test
