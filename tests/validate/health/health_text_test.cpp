// SPDX-License-Identifier: Apache-2.0
#include "validate/health/health_text.h"

#include <gtest/gtest.h>

namespace commfuse::validate {
namespace {

const std::vector<HealthCheck> checks{
    {.name = "driver", .found = "NVIDIA 550.54.15"},
    {.name = "peers",
     .status = HealthStatus::unknown,
     .found = "the library is not here",
     .wrong = "only it says this",
     .remedy = "install it"},
    {.name = "fabric",
     .status = HealthStatus::unknown,
     .found = "the library is not here",
     .wrong = "only it says this",
     .remedy = "install it"},
    {.name = "pcie",
     .subject = "0000:1b:00.0",
     .status = HealthStatus::bad,
     .found = "GPU at PCIe generation 3 x16, PCIe generation 5 x16 is possible",
     .wrong = "the link runs below the speed or width that both ends support",
     .remedy = "reboot; if it comes back, reseat the card\x1b and its riser"},
};

TEST(HealthTable, FitsItsWidthAndPrintsARemedyOnceForSeveralChecks) {
  EXPECT_EQ(health_table(checks, 60),
            "check      status   found\n"
            "driver     ok       NVIDIA 550.54.15\n"
            "peers      unknown  the library is not here\n"
            "fabric     unknown  the library is not here\n"
            "                    wrong: only it says this\n"
            "                    do: install it\n"
            "pcie       bad      0000:1b:00.0: GPU at PCIe generation 3\n"
            "                    x16, PCIe generation 5 x16 is possible\n"
            "                    wrong: the link runs below the speed or\n"
            "                      width that both ends support\n"
            "                    do: reboot; if it comes back, reseat the\n"
            "                      card\\x1b and its riser\n");
}

TEST(HealthTotals, CountEveryStatus) {
  EXPECT_EQ(health_totals(checks), "1 ok, 2 unknown, 1 bad");
  EXPECT_EQ(health_totals({}), "no checks");
  EXPECT_EQ(worst_of(checks), HealthStatus::bad);
  EXPECT_EQ(worst_of({}), HealthStatus::ok);
}

TEST(HealthJson, HasEveryNodeAndItsWorstStatus) {
  const std::vector<HostHealth> hosts{{.host = "node-\xff", .processes = {0, 1}, .checks = {checks[0]}}};
  const std::vector<HealthCheck> across{
      {.name = "ranks", .subject = "driver", .status = HealthStatus::bad, .found = "a", .wrong = "b", .remedy = "c"}};
  EXPECT_EQ(health_json(hosts, across), R"({
  "schema": "commfuse.doctor/1",
  "status": "bad",
  "nodes": [
    {
      "host": "node-?",
      "processes": [
        0,
        1
      ],
      "status": "ok",
      "checks": [
        {
          "name": "driver",
          "subject": "",
          "status": "ok",
          "found": "NVIDIA 550.54.15",
          "wrong": "",
          "remedy": ""
        }
      ]
    }
  ],
  "across": [
    {
      "name": "ranks",
      "subject": "driver",
      "status": "bad",
      "found": "a",
      "wrong": "b",
      "remedy": "c"
    }
  ]
}
)");
}

}  // namespace
}  // namespace commfuse::validate
