// SPDX-License-Identifier: Apache-2.0
// Tests the verdicts on published and made-up copy rates of a node, and the GPU or pair of GPUs that they name.
#include "model/expect/copies.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "model/config/catalogue.h"
#include "model/math/functions.h"
#include "model/random/philox.h"

namespace commfuse {
namespace {

using Rate = std::function<double(int from, int to)>;  // In GB/s.

CopyTable copy_table(const std::string& test, int gpus, const Rate& rate, bool by_sms = false) {
  CopyTable table{.test = test, .by_sms = by_sms, .copies = {}};
  for (int from = 0; from < gpus; ++from) {
    for (int to = 0; to < gpus; ++to) {
      if (from != to) {
        table.copies.push_back({from, to, {1e9 * rate(from, to)}});
      }
    }
  }
  return table;
}

CopyTable host_table_of(const std::string& test, int gpus, const std::function<double(int gpu)>& rate) {
  CopyTable table{.test = test, .by_sms = false, .copies = {}};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    table.copies.push_back({host_side, gpu, {1e9 * rate(gpu)}});
  }
  return table;
}

CopyJudgement judged_copies(const Machine& machine, const std::vector<CopyTable>& tables) {
  const std::vector<CopyJudgement> judgements = judge_copies(machine, tables, 0.01);
  EXPECT_EQ(judgements.size(), 1U);
  return judgements.empty() ? CopyJudgement{} : judgements.front();
}

TEST(Copies, WiresAndTheirSharesMakeTheExpectedRate) {
  EXPECT_NEAR(expected_copy(load_machine("h100-sxm"), 0, 5, false).value, 0.863 * 450e9, 1e3);
  EXPECT_NEAR(expected_copy(load_machine("h100-sxm"), 0, 5, true).value, 0.84 * 450e9, 1e3);
  EXPECT_NEAR(expected_host_copy(load_machine("h100-sxm")).value, 0.87 * 63e9, 1e3);
  EXPECT_NEAR(expected_host_copy(load_machine("a100-sxm-80")).value, 0.87 * 31.5e9, 1e3);
  EXPECT_EQ(expected_host_copy(load_machine("gb200")).value, 0.0);
  // Each bridge has two GPUs, and each of the two roots has four.
  const Machine pcie = load_machine("pcie-rtx-pro-6000");
  EXPECT_NEAR(expected_copy(pcie, 0, 1, false).value, 0.83 * 63e9, 1e3);
  EXPECT_NEAR(expected_copy(pcie, 0, 7, false).value, 0.70 * 63e9, 1e3);
}

// The rates are medians of matrices that users of nvbandwidth published; docs/decisions/0070 names the sources.
TEST(Copies, PublishedMatricesAreHealthy) {
  struct Published {
    const char* machine;
    double read;
    double write;
  };
  for (const Published& published : {Published{"a100-sxm-80", 276.3, 276.4}, Published{"h100-sxm", 370.9, 376.6},
                                     Published{"h100-sxm", 395.1, 397.5}, Published{"h100-sxm", 388.9, 388.9},
                                     Published{"h800-sxm", 172.2, 176.1}, Published{"b200-sxm", 765.1, 774.3}}) {
    const Machine machine = load_machine(published.machine);
    const CopyJudgement judgement =
        judged_copies(machine, {copy_table("read", 8, [&](int, int) { return published.read; }),
                                copy_table("write", 8, [&](int, int) { return published.write; })});
    EXPECT_EQ(judgement.health, Health::healthy) << published.machine << " " << published.read << " " << judgement.odds;
    EXPECT_EQ(judgement.copies, 112U);
    EXPECT_EQ(judgement.severity, Severity::none);
  }
  const CopyJudgement host = judged_copies(
      load_machine("h100-sxm"),
      {host_table_of("to", 8, [](int) { return 55.6; }), host_table_of("from", 8, [](int) { return 57.3; })});
  EXPECT_EQ(host.health, Health::healthy);
  EXPECT_EQ(host.wires, copies_with_host);
}

TEST(Copies, EveryPairAtHalfItsRateIsNamed) {
  const Machine machine = load_machine("h100-sxm");
  for (int a = 0; a < 8; ++a) {
    for (int b = a + 1; b < 8; ++b) {
      const CopyJudgement judgement =
          judged_copies(machine, {copy_table("read", 8, [&](int from, int to) {
                          return std::pair<int, int>(std::minmax(from, to)) == std::pair(a, b) ? 190.0 : 385.0;
                        })});
      ASSERT_EQ(judgement.health, Health::bad);
      EXPECT_EQ(judgement.suspects.front().subject, fmt::format("GPU {} – GPU {}", a, b));
      EXPECT_EQ(judgement.suspects.front().fault->name, "slow_link");
      EXPECT_EQ(judgement.severity, Severity::critical);
      EXPECT_NEAR(judgement.rate_share, 190.0 / 388.35, 1e-3);
    }
  }
}

TEST(Copies, OneDirectionOneGpuAndAllGpusAreDistinguished) {
  const Machine machine = load_machine("h100-sxm");
  const auto first = [&](const Rate& rate) {
    return judged_copies(machine, {copy_table("read", 8, rate)}).suspects.front();
  };
  EXPECT_EQ(first([](int from, int to) { return from == 5 && to == 3 ? 200.0 : 390.0; }).subject,
            "GPU 3 – GPU 5, one direction");
  EXPECT_EQ(first([](int from, int to) { return from == 6 || to == 6 ? 260.0 : 390.0; }).subject, "GPU 6");
  const SuspectedCopies every_gpu = first([](int, int) { return 110.0; });
  EXPECT_EQ(every_gpu.subject, "all GPUs");
  EXPECT_EQ(every_gpu.fault->name, "host_path");
  EXPECT_EQ(first([](int, int) { return 230.0; }).fault->name, "slow_link");
}

// The four GPUs have the rates of NVIDIA/nvbandwidth issue 6: 14.2 GB/s to one, and 57 GB/s to the others.
TEST(Copies, AGpuOnANarrowPcieLinkIsNamed) {
  Machine machine = load_machine("h100-sxm");
  const CopyJudgement judgement =
      judged_copies(machine, {host_table_of("to", 4, [](int gpu) { return gpu == 0 ? 14.2 : 57.0; })});
  EXPECT_EQ(judgement.health, Health::bad);
  EXPECT_EQ(judgement.suspects.front().subject, "GPU 0");
  EXPECT_EQ(judgement.suspects.front().fault->name, "pcie_generation");
  const CopyJudgement every_gpu = judged_copies(machine, {host_table_of("to", 8, [](int) { return 26.0; })});
  EXPECT_EQ(every_gpu.suspects.front().subject, "all GPUs");
}

TEST(Copies, GpusAreComparedWithEachOtherIfHostWiresAreUnknown) {
  const Machine machine = load_machine("gb200");
  const CopyJudgement equal_gpus = judged_copies(machine, {host_table_of("to", 4, [](int) { return 90.0; })});
  EXPECT_EQ(equal_gpus.health, Health::undecided);
  EXPECT_DOUBLE_EQ(equal_gpus.rate_share, 1.0);
  const CopyJudgement slow_gpu =
      judged_copies(machine, {host_table_of("to", 4, [](int gpu) { return gpu == 2 ? 40.0 : 90.0; })});
  EXPECT_EQ(slow_gpu.health, Health::bad);
  EXPECT_EQ(slow_gpu.suspects.front().subject, "GPU 2");
}

TEST(Copies, APartialMatrixIsNeverHealthyAndUnknownGpusAreOmitted) {
  const Machine machine = load_machine("h100-sxm");
  const CopyJudgement part = judged_copies(machine, {copy_table("read", 4, [](int, int) { return 390.0; })});
  EXPECT_EQ(part.health, Health::undecided);
  EXPECT_EQ(judged_copies(machine, {copy_table("read", 9, [](int, int) { return 390.0; })}).copies, 56U);
  EXPECT_TRUE(judge_copies(machine, {}, 0.01).empty());
  EXPECT_TRUE(judge_copies(machine, {copy_table("read", 8, [](int, int) { return 0.0; })}, 0.01).empty());
}

/// Returns a random number with mean 0 and standard deviation 1: the centred sum of 12 uniform ones, whose distribution
/// is close to normal up to about 3 standard deviations.
double normal_of_node(std::uint32_t node, std::uint32_t draw) {
  double sum = -6.0;
  for (std::uint32_t i = 0; i < 3; ++i) {
    for (const std::uint32_t word : philox({draw, 0, node, i}, 70)) {
      sum += (static_cast<double>(word) + 0.5) / 4294967296.0;
    }
  }
  return sum;
}

/// Returns the tables of a made-up node: its rates have the errors that copies.cpp states for NVLink, and one pair has
/// only `share` of its rate.
std::vector<CopyTable> made_node(std::uint32_t node, std::pair<int, int> pair, double share) {
  const double shared_error = 0.05 * normal_of_node(node, 0);
  std::uint32_t draw = 0;
  const auto rate = [&](int from, int to) {
    const double error = shared_error + 0.015 * normal_of_node(node, ++draw);
    return (std::pair<int, int>(std::minmax(from, to)) == pair ? share : 1.0) * 388.35 * math::exp(error);
  };
  return {copy_table("read", 8, rate), copy_table("write", 8, rate)};
}

TEST(Copies, FalseAlarmsAreRareAndAPairAtHalfItsRateIsNamed) {
  const Machine machine = load_machine("h100-sxm");
  int false_alarms = 0;
  int named = 0;
  constexpr std::uint32_t nodes = 300;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const std::pair<int, int> pair{static_cast<int>(node % 4), static_cast<int>(4 + node % 3)};
    false_alarms += judged_copies(machine, made_node(node, pair, 1.0)).health == Health::bad ? 1 : 0;
    const CopyJudgement judgement = judged_copies(machine, made_node(node, pair, 0.5));
    named += judgement.health == Health::bad &&
                     judgement.suspects.front().subject == fmt::format("GPU {} – GPU {}", pair.first, pair.second)
                 ? 1
                 : 0;
  }
  EXPECT_LE(false_alarms, 3);
  EXPECT_EQ(named, 300);
}

}  // namespace
}  // namespace commfuse
