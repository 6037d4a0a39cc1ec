// SPDX-License-Identifier: Apache-2.0
#include "validate/health/across.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace commfuse::validate {
namespace {

std::vector<NodeReport> reports(const std::vector<std::string>& drivers) {
  std::vector<NodeReport> node_reports;
  for (std::size_t process = 0; process < drivers.size(); ++process) {
    node_reports.push_back({.host = "node-" + std::to_string(process / 2),
                            .checks = {},
                            .facts = {{"kernel", "6.1.0", HealthStatus::warn}, {"driver", drivers[process]}}});
  }
  return node_reports;
}

TEST(Across, EqualNodesAreOk) {
  const std::vector<HealthCheck> checks = differences(reports({"550.54", "550.54", "550.54"}));
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].name, "ranks");
  EXPECT_EQ(checks[0].status, HealthStatus::ok);
  EXPECT_EQ(checks[0].found, "3 processes on 2 hosts have the same versions and devices");
}

TEST(Across, ADifferentDriverOnOneRankIsNamed) {
  EXPECT_EQ(differences(reports({"550.54", "550.54", "550.54", "535.129"})),
            (std::vector<HealthCheck>{
                {.name = "ranks",
                 .subject = "driver",
                 .status = HealthStatus::bad,
                 .found = "process 3 on node-1 has 535.129; 3 of 4 have 550.54",
                 .wrong = "nodes of this job differ in their driver",
                 .remedy = "configure the named nodes like the others, or exclude them from the job (--exclude)"}}));
}

TEST(Across, TheFirstProcessDecidesBetweenEquallyCommonValues) {
  EXPECT_EQ(differences(reports({"550.54", "535.129"})).at(0).found,
            "process 1 on node-0 has 535.129; 1 of 2 has 550.54");
  EXPECT_EQ(differences(reports({"", "535.129"})).at(0).found, "process 1 on node-0 has 535.129; 1 of 2 has none");
}

TEST(Across, ManyProcessesAreCountedAndADifferentKernelIsAWarning) {
  std::vector<NodeReport> changed = reports({"a", "b", "b", "b", "b", "b", "a", "a", "a", "a", "a"});
  EXPECT_EQ(differences(changed).at(0).found,
            "process 1 on node-0, process 2 on node-1, process 3 on node-1, process 4 on node-2 and 1 more have b; "
            "6 of 11 have a");
  changed = reports({"a", "a"});
  changed[1].facts[0].value = "5.15.0";
  EXPECT_EQ(differences(changed).at(0).status, HealthStatus::warn);
}

TEST(Across, AReportIsReadBackAsItWasWritten) {
  NodeReport report = reports({"550.54"}).front();
  report.checks.push_back({.name = "pcie",
                           .subject = "0000:1b:00.0",
                           .status = HealthStatus::bad,
                           .found = "slow",
                           .wrong = "it is",
                           .remedy = "mend it"});
  EXPECT_EQ(unpacked_report(packed_report(report)), report);
}

TEST(Across, RefusesInvalidReports) {
  for (const char* const text : {"", "[]", "{\"host\": 3}", "{\"host\": \"a\", \"checks\": [3], \"facts\": []}",
                                 "{\"host\": \"a\", \"checks\": [], \"facts\": [[\"a\", \"b\", 9]]}"}) {
    EXPECT_THROW(unpacked_report(text), std::runtime_error) << text;
  }
}

TEST(Across, CommonFactsCountDevices) {
  NodeFacts node{.kernel = "6.1.0", .driver = "550.54", .modules = {"nvidia_peermem"}};
  node.ports = {{.layer = "Ethernet", .state = "4: ACTIVE", .rate = "400 Gb/sec (4X NDR)", .firmware = "28.39"},
                {.rate = "400 Gb/sec (4X NDR)", .firmware = "28.39"}};
  node.ports[0].gids = {{.index = 3, .address = "0000:0000:0000:0000:0000:ffff:0a00:0001", .type = "RoCE v2"}};
  const ManagementFacts management{.gpus = {{.name = "H100"}, {.name = "H100"}}};
  EXPECT_EQ(common_facts(node, management), (std::vector<CommonFact>{{"kernel", "6.1.0", HealthStatus::warn},
                                                                     {"driver", "550.54"},
                                                                     {"GPUs", "2 x H100"},
                                                                     {"RDMA ports", "2 x 400 Gb/sec (4X NDR)"},
                                                                     {"GID index of RoCE v2", "3", HealthStatus::warn},
                                                                     {"NIC firmware", "28.39", HealthStatus::warn},
                                                                     {"modules of GPUDirect RDMA", "nvidia_peermem"}}));
}

}  // namespace
}  // namespace commfuse::validate
