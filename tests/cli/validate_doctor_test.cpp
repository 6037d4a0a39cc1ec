// SPDX-License-Identifier: Apache-2.0
// Tests doctor on planted nodes, which are files in a folder that imitate a node's /proc, /sys and /dev: exit codes,
// the JSON, and the comparison of processes. The /sys of this machine is not tested.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/cli/mpirun.h"
#include "tests/cli/program.h"
#include "tests/own_folder.h"
#include "tests/validate/health/planted_node.h"

namespace commfuse::test {
namespace {

using nlohmann::json;

/// Skips checks that take time or depend on this machine.
const std::string doctor = "commfuse-validate doctor --skip timer,cuda,nccl,mpi,configs ";

Outcome doctor_of(const PlantedNode& node, const std::string& flags = "") {
  return run_program(doctor + "--root '" + node.root().string() + "' " + flags);
}

/// Returns the check with this name on the first node of the document.
json check_of(const std::string& document, const std::string& name) {
  const json parsed = json::parse(document);
  for (const json& check : parsed.at("nodes").at(0).at("checks")) {
    if (check.at("name") == name) {
      return check;
    }
  }
  return {};
}

TEST(DoctorCommand, JsonHasASchemaAndEveryCheckOfAPlantedNode) {
  PlantedNode node;
  node.plant_healthy_node();
  const Outcome outcome = doctor_of(node, "-o json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const json document = json::parse(outcome.out);
  EXPECT_EQ(document.at("schema"), "commfuse.doctor/1");
  EXPECT_EQ(document.at("nodes").at(0).at("host"), "node-1");
  EXPECT_EQ(document.at("nodes").at(0).at("processes"), json::array({0}));
  EXPECT_TRUE(document.at("across").empty());
  for (const char* const name : {"machine", "build", "reference", "cpu", "driver", "peers", "fabric", "ecc", "xid",
                                 "clocks", "pcie", "numa", "rdma", "roce", "congestion", "gdr", "acs", "iommu"}) {
    EXPECT_FALSE(check_of(outcome.out, name).is_null()) << name;
  }
  EXPECT_EQ(check_of(outcome.out, "pcie").at("status"), "ok");
  EXPECT_TRUE(check_of(outcome.out, "timer").is_null());
  for (const json& check : document.at("nodes").at(0).at("checks")) {
    EXPECT_EQ(check.at("remedy").get<std::string>().empty(), check.at("status") == "ok") << check;
  }
}

TEST(DoctorCommand, TheGidIndexOfTheEnvironmentIsComparedWithTheTable) {
  PlantedNode node;
  node.plant_healthy_node();
  node.make_roce("mlx5_0", "eth2", "0a00:0001");
  const std::string arguments = doctor + "-o json --root '" + node.root().string() + "'";
  EXPECT_EQ(check_of(run_program("NCCL_IB_GID_INDEX=3 " + arguments).out, "roce").at("status"), "ok");
  const json check = check_of(run_program("NCCL_IB_GID_INDEX=4 " + arguments).out, "roce");
  EXPECT_EQ(check.at("status"), "bad");
  EXPECT_EQ(check.at("subject"), "mlx5_0/1");
  EXPECT_EQ(check.at("wrong"), "NCCL_IB_GID_INDEX is 4, which this port lacks");
  EXPECT_EQ(check.at("remedy"), "set NCCL_IB_GID_INDEX=3, or unset it: NCCL 2.21 and later find the index");
}

TEST(DoctorCommand, AGidIndexOfMinusOneOverridesNcclsFile) {
  PlantedNode node;
  node.plant_healthy_node();
  node.make_roce("mlx5_0", "eth2", "0a00:0001");
  node.write("etc/nccl.conf", "NCCL_IB_GID_INDEX=4\n");
  const std::string arguments = doctor + "-o json --root '" + node.root().string() + "'";
  EXPECT_EQ(check_of(run_program(arguments).out, "roce").at("status"), "bad");
  EXPECT_EQ(check_of(run_program("NCCL_IB_GID_INDEX=-1 " + arguments).out, "roce").at("status"), "ok");
  EXPECT_EQ(check_of(run_program("NCCL_IB_GID_INDEX=3 " + arguments).out, "roce").at("status"), "ok");
}

TEST(DoctorCommand, ABadNodeExitsWith4OnlyWithFailOn) {
  PlantedNode node;
  node.plant_healthy_node();
  node.set_port("mlx5_0", "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)");
  EXPECT_EQ(doctor_of(node).code, 0);
  EXPECT_EQ(doctor_of(node, "--fail-on bad").code, 4);
  EXPECT_EQ(doctor_of(node, "--fail-on warn").code, 4);
  EXPECT_EQ(doctor_of(node, "--fail-on bad -o json").code, 4);
  EXPECT_EQ(run_program("commfuse-validate doctor --skip timer,cuda,nccl,mpi,configs,rdma --fail-on bad --root '" +
                        node.root().string() + "'")
                .code,
            0);
  node.set_port("mlx5_0", "1: DOWN", "3: Disabled", "10 Gb/sec (4X SDR)");
  EXPECT_EQ(doctor_of(node, "--fail-on bad").code, 0);
  EXPECT_EQ(doctor_of(node, "--fail-on warn").code, 4);
}

TEST(DoctorCommand, TheTableFits80ColumnsAndNamesTheRemedy) {
  PlantedNode node;
  node.plant_healthy_node();
  node.remove("sys/module/nvidia_peermem");
  const Outcome outcome = doctor_of(node);
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
  EXPECT_NE(outcome.out.find("\ngdr        bad      nvidia_peermem is not loaded, and the driver has no DMA-BUF\n"
                             "                    wrong: NICs cannot read GPU memory, so every message is\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("do: run modprobe nvidia_peermem"), std::string::npos) << outcome.out;
}

TEST(DoctorCommand, ProcessesThatALauncherStartedAreCompared) {
  const OwnFolder folder;
  PlantedNode first;
  PlantedNode second;
  first.plant_healthy_node();
  second.plant_healthy_node();
  second.write("proc/sys/kernel/hostname", "node-2");
  second.plant_driver("535.129.03");
  const std::string port = std::to_string(20000 + getpid() % 20000);
  const auto process = [&](int rank, const PlantedNode& node) {
    return "RANK=" + std::to_string(rank) + " WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
           " " + doctor + "--together -o json --fail-on bad --root " + node.root().string();
  };
  const Outcome outcome = run_program("sh -c '" + process(1, second) + " >second.out 2>&1 & " + process(0, first) +
                                      "; code=$?; wait; exit $code'");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_EQ(contents_of("second.out"), "");  // Only one process prints.
  const json document = json::parse(outcome.out);
  EXPECT_EQ(document.at("nodes").size(), 2U);
  EXPECT_EQ(document.at("nodes").at(1).at("host"), "node-2");
  const json& across = document.at("across");
  const auto driver =
      std::find_if(across.begin(), across.end(), [](const json& check) { return check.at("subject") == "driver"; });
  ASSERT_NE(driver, across.end()) << across;
  EXPECT_EQ(driver->at("found"), "process 1 on node-2 has 535.129.03; 1 of 2 has 550.54.15");
  EXPECT_EQ(driver->at("status"), "bad");
}

TEST(UnderMpirunDoctor, ComparesItsProcesses) {
  if (!has_mpi()) {
    GTEST_SKIP() << "this build has no MPI, or mpirun is not installed";
  }
  PlantedNode node;
  node.plant_healthy_node();
  const Outcome outcome = run_program(mpirun(2) + doctor + "-o json --root " + node.root().string());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const json document = json::parse(outcome.out);
  EXPECT_EQ(document.at("nodes").at(0).at("processes"), json::array({0, 1}));
  EXPECT_EQ(document.at("across").at(0).at("found"), "2 processes on 1 host have the same versions and devices");
}

TEST(DoctorCommand, MistakesAreNamed) {
  const auto refusal = [](const std::string& flags) {
    const Outcome outcome = run_program("commfuse-validate doctor " + flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    return outcome.err;
  };
  EXPECT_EQ(refusal("--root /nowhere"),
            "--root: '/nowhere' is not a folder; give the folder that has proc, sys and dev of the node\n");
  EXPECT_NE(refusal("--skip rmda").find("--skip: unknown check 'rmda'; did you mean 'rdma'?"), std::string::npos);
  EXPECT_NE(refusal("--fail-on worse").find("--fail-on: unknown word 'worse'"), std::string::npos);
  EXPECT_NE(refusal("-o xml").find("--output: unknown format 'xml'"), std::string::npos);
  EXPECT_NE(refusal("--together").find("only one was started"), std::string::npos);
}

}  // namespace
}  // namespace commfuse::test
