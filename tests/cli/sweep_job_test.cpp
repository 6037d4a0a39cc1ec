// SPDX-License-Identifier: Apache-2.0
// Runs the Kubernetes Job of docs/sweeps.md as written: its pods, one of which is killed and restarted, write shards
// that merge to the bytes of one process.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <string>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

/// Returns the block of the page below the mark with the file's name.
std::string file_in_page(const std::string& page, const std::string& name) {
  const std::string text = contents_of(page);
  const std::size_t mark = text.find("<!-- test: file " + name + " -->");
  const std::size_t begin = mark == std::string::npos ? mark : text.find("```yaml\n", mark);
  if (begin == std::string::npos) {
    return "";
  }
  const std::size_t first = begin + std::string("```yaml\n").size();
  return text.substr(first, text.find("```", first) - first);
}

std::string with_folder(std::string command, const std::string& folder) {
  for (std::size_t at = command.find("/data"); at != std::string::npos;
       at = command.find("/data", at + folder.size())) {
    command.replace(at, 5, folder);
  }
  return command;
}

class SweepJob : public testing::Test {
 protected:
  SweepJob() : job_(YAML::Load(file_in_page(COMMFUSE_SOURCE_DIR "/docs/sweeps.md", "sweep-job.yaml"))) {
    std::ofstream("mine.yaml") << "schema: commfuse.sweep/1\nset: {model: llama-3.1-8b, jitter: default, samples: 64}\n"
                                  "axes:\n  - ranks: [2, 3, 4]\n  - seq: 1K..16K+1K\noutputs: [csv, json]\n";
  }
  [[nodiscard]] YAML::Node container() const { return job_["spec"]["template"]["spec"]["containers"][0]; }
  /// Runs the pod of an index. `before` precedes its shell command.
  Outcome run_pod(int index, const std::string& before = "") const {
    const std::string script = with_folder(container()["command"][2].as<std::string>(), ".");
    std::ofstream("pod.sh") << script << "\n";
    return run_program(fmt::format("JOB_COMPLETION_INDEX={} {}sh ./pod.sh", index, before));
  }

  const OwnFolder folder_;
  YAML::Node job_;
};

TEST_F(SweepJob, IsAnIndexedJobWithAPodForEveryShard) {
  EXPECT_EQ(job_["kind"].as<std::string>(), "Job");
  const YAML::Node spec = job_["spec"];
  EXPECT_EQ(spec["completionMode"].as<std::string>(), "Indexed");
  EXPECT_EQ(spec["template"]["spec"]["restartPolicy"].as<std::string>(), "OnFailure");
  const std::string shards = fmt::format("--shard auto/{} ", spec["completions"].as<int>());
  EXPECT_NE(container()["command"][2].as<std::string>().find(shards), std::string::npos);
  const YAML::Node mount = container()["volumeMounts"][0];
  EXPECT_EQ(mount["mountPath"].as<std::string>(), "/data");
  EXPECT_EQ(mount["name"].as<std::string>(), spec["template"]["spec"]["volumes"][0]["name"].as<std::string>());
}

TEST_F(SweepJob, PodsWriteTheSameBytesAsOneProcessEvenIfOneIsKilled) {
  const int pods = job_["spec"]["completions"].as<int>();
  run_pod(2, "timeout -s KILL 0.05 ");  // The pod is killed at some point; OnFailure restarts it.
  for (int index = 0; index < pods; ++index) {
    const Outcome outcome = run_pod(index);
    EXPECT_EQ(outcome.code, 0) << outcome.err;  // Points on three ranks cannot run, which is not a failure of the pod.
  }
  const Outcome merged = run_program("commfuse-sim merge out -o csv");
  const Outcome serial = run_program("commfuse-sim sweep mine.yaml --out serial -j 1 --progress none -o csv");
  EXPECT_EQ(merged.code, 3) << merged.err;
  EXPECT_EQ(merged.out, serial.out);
  for (const char* name : {"results.csv", "results.json", "settings.yaml"}) {
    EXPECT_FALSE(contents_of(std::string("out/") + name).empty()) << name;
    EXPECT_EQ(contents_of(std::string("out/") + name), contents_of(std::string("serial/") + name)) << name;
  }
}

}  // namespace
}  // namespace commfuse::test
