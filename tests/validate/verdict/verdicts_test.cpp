// SPDX-License-Identifier: Apache-2.0
#include "validate/verdict/verdicts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/config/catalogue.h"
#include "model/expect/machine_change.h"

namespace commfuse::validate {
namespace {

std::vector<MeasuredMessage> rows_of(const Machine& machine, double factor = 1.0) {
  std::vector<MeasuredMessage> rows;
  for (const LinkOp op : {LinkOp::all_gather, LinkOp::reduce_scatter, LinkOp::all_reduce}) {
    for (std::int64_t bytes = 1024; bytes <= std::int64_t{8} << 30U; bytes *= 2) {
      const Message message{.op = op, .gpus = total_gpus(machine), .nodes = machine.nodes, .bytes = {bytes}};
      rows.push_back({message, factor * to_microseconds(message_time(machine, message))});
    }
  }
  return rows;
}

NodeLog log_of(const std::string& name, std::vector<MeasuredMessage> rows) {
  return {.name = name, .hosts = {name}, .rows = std::move(rows)};
}

/// Returns healthy nodes that differ slightly.
std::vector<NodeLog> fleet_of(const Machine& machine, int nodes, double factor = 1.0) {
  std::vector<NodeLog> logs;
  for (int i = 0; i < nodes; ++i) {
    logs.push_back(log_of(fmt::format("node-{}", i), rows_of(machine, factor * (1.0 + 0.01 * (i % 3 - 1)))));
  }
  return logs;
}

TEST(Verdicts, AHealthyNodeIsAsExpected) {
  const Machine machine = load_machine("h100-sxm");
  const Verdicts verdicts = verdicts_on({log_of("node-1", rows_of(machine))}, machine, {});
  ASSERT_EQ(verdicts.nodes.size(), 1U);
  EXPECT_EQ(verdicts.nodes[0].health, Health::healthy);
  EXPECT_EQ(verdicts.nodes[0].why, "as expected");
  EXPECT_EQ(verdicts.nodes[0].next, "");
  EXPECT_FALSE(verdicts.fleet.has_value());
}

TEST(Verdicts, ASlowLinkIsNamedWithItsNodeAndTheNextCommand) {
  const Machine machine = load_machine("h100-sxm");
  const Verdicts verdicts = verdicts_on({log_of("node-7", rows_of(with_link_rates(machine, 0.5)))}, machine, {});
  const NodeVerdict& verdict = verdicts.nodes[0];
  EXPECT_EQ(verdict.health, Health::bad);
  EXPECT_EQ(verdict.where, "inside node-7");
  EXPECT_NE(verdict.why.find("a link inside the node is slower than it should be"), std::string::npos) << verdict.why;
  EXPECT_EQ(verdict.next, "nvidia-smi nvlink --status");
}

TEST(Verdicts, WrongResultsAreBadAtAnySpeed) {
  const Machine machine = load_machine("h100-sxm");
  NodeLog log = log_of("node-1", rows_of(machine));
  log.wrong_results.push_back("a.txt: line 9: 3 elements were wrong");
  const NodeVerdict verdict = verdicts_on({log}, machine, {}).nodes[0];
  EXPECT_EQ(verdict.health, Health::bad);
  EXPECT_EQ(verdict.severity, Severity::critical);
  EXPECT_DOUBLE_EQ(verdict.healthy_probability, 0.0);
  EXPECT_EQ(verdict.why, "wrong results: a.txt: line 9: 3 elements were wrong");
}

TEST(Verdicts, TooLittleDataIsNeverHealthy) {
  const Machine machine = load_machine("h100-sxm");
  std::vector<MeasuredMessage> few = rows_of(machine);
  few.resize(3);
  for (const NodeVerdict& verdict :
       verdicts_on({log_of("a", few), log_of("b", std::vector<MeasuredMessage>{})}, machine, {}).nodes) {
    EXPECT_EQ(verdict.health, Health::undecided);
    EXPECT_EQ(verdict.why, "not enough to decide: eight bandwidth-limited sizes, from two collectives, are needed");
  }
}

/// Returns copies between eight GPUs and with the host at the rates of a healthy H100, with one pair at a share of its
/// rate.
std::vector<CopyTable> copies_with(std::pair<int, int> pair, double share) {
  CopyTable between{.test = "device_to_device_memcpy_read_ce", .by_sms = false, .copies = {}};
  CopyTable host{.test = "host_to_device_memcpy_ce", .by_sms = false, .copies = {}};
  for (int a = 0; a < 8; ++a) {
    host.copies.push_back({host_side, a, {55e9}});
    for (int b = 0; b < 8; ++b) {
      if (a != b) {
        const bool is_slow = std::pair<int, int>(std::minmax(a, b)) == pair;
        between.copies.push_back({a, b, {392e9 * (is_slow ? share : 1.0)}});
      }
    }
  }
  return {between, host};
}

TEST(Verdicts, ASlowLinkIsNamedAsAPairWhereNvbandwidthHasIt) {
  const Machine machine = load_machine("h100-sxm");
  NodeLog log = log_of("node-7", rows_of(with_link_rates(machine, 0.5)));
  log.copies = copies_with({3, 5}, 0.5);
  const NodeVerdict verdict = verdicts_on({log}, machine, {}).nodes[0];
  EXPECT_EQ(verdict.health, Health::bad);
  EXPECT_EQ(verdict.where, "inside node-7, GPU 3 – GPU 5");
  EXPECT_NE(verdict.why.find("times as slow as expected; a link inside the node is slower than it should be"),
            std::string::npos);
  EXPECT_NE(verdict.why.find("copies between GPU 3 and GPU 5 reach 0.50 of the expected rate"), std::string::npos)
      << verdict.why;
  EXPECT_EQ(verdict.suspects.front().subject, "GPU 3 – GPU 5");
  EXPECT_EQ(verdict.suspects.front().fault->name, "slow_link");
  EXPECT_EQ(verdict.severity, Severity::critical);
}

TEST(Verdicts, CopiesAloneMakeANodeHealthyOrBad) {
  const Machine machine = load_machine("h100-sxm");
  NodeLog log = log_of("node-7", std::vector<MeasuredMessage>{});
  log.copies = copies_with({3, 5}, 1.0);
  NodeVerdict verdict = verdicts_on({log}, machine, {}).nodes[0];
  EXPECT_EQ(verdict.health, Health::healthy);
  EXPECT_EQ(verdict.why, "copies between GPUs are as expected; collectives were not judged");
  ASSERT_EQ(verdict.copies.size(), 2U);
  log.copies = copies_with({3, 5}, 0.5);
  verdict = verdicts_on({log}, machine, {}).nodes[0];
  EXPECT_EQ(verdict.health, Health::bad);
  EXPECT_EQ(verdict.where, "inside node-7, GPU 3 – GPU 5");
  EXPECT_NEAR(verdict.slowdown, 388.35 / 196.0, 1e-3);
  EXPECT_EQ(verdict.next, "nvidia-smi nvlink --status");
}

TEST(Verdicts, FailuresOfDcgmAreBadAndItsWarningsAreShown) {
  const Machine machine = load_machine("h100-sxm");
  NodeLog log = log_of("node-7", rows_of(machine));
  log.findings.push_back({.tool = "dcgmi diag",
                          .test = "pcie",
                          .subject = "GPU 1",
                          .text = "width is 8",
                          .cause = "a cause",
                          .next = "look",
                          .severity = Severity::major,
                          .is_bad = false});
  NodeVerdict verdict = verdicts_on({log}, machine, {}).nodes[0];
  EXPECT_EQ(verdict.health, Health::healthy);
  EXPECT_EQ(verdict.why, "as expected; dcgmi diag pcie warns on GPU 1: a cause (width is 8)");
  log.findings[0].is_bad = true;
  log.findings.push_back(log.findings[0]);
  log.findings[1].subject = "GPU 4";
  verdict = verdicts_on({log}, machine, {}).nodes[0];
  EXPECT_EQ(verdict.health, Health::bad);
  EXPECT_DOUBLE_EQ(verdict.healthy_probability, 0.0);
  EXPECT_EQ(verdict.why, "dcgmi diag pcie failed on GPU 1, GPU 4: a cause (width is 8)");
  EXPECT_EQ(verdict.where, "inside node-7, GPU 1, GPU 4");
  EXPECT_EQ(verdict.next, "look");
  EXPECT_EQ(verdict.severity, Severity::major);
}

TEST(Verdicts, ADcgmPassDoesNotDecideRates) {
  const Machine machine = load_machine("h100-sxm");
  NodeLog log = log_of("node-7", std::vector<MeasuredMessage>{});
  log.has_passed_tests = true;
  NodeVerdict verdict = verdicts_on({log}, machine, {}).nodes[0];
  EXPECT_EQ(verdict.health, Health::undecided);
  EXPECT_TRUE(verdict.why.starts_with("dcgmi diag found nothing wrong, but does not test rates; not enough"))
      << verdict.why;
  log.findings.push_back({.tool = "dcgmi diag", .test = "pcie", .cause = "a cause", .is_bad = false});
  verdict = verdicts_on({log}, machine, {}).nodes[0];
  EXPECT_EQ(verdict.why,
            "not enough to decide: eight bandwidth-limited sizes, from two collectives, are needed; dcgmi diag pcie "
            "warns: a cause");
}

// 10% is within the error of the shipped file, so one node alone passes; among nine nodes, no other is as slow.
TEST(Verdicts, AFleetShowsNodesSlowerThanTheirNeighbours) {
  const Machine machine = load_machine("h100-sxm");
  std::vector<NodeLog> logs = fleet_of(machine, 9);
  logs[4] = log_of("node-4", rows_of(machine, 1.1));
  const Verdicts single_node = verdicts_on({logs[4]}, machine, {});
  EXPECT_EQ(single_node.nodes[0].health, Health::healthy);
  const Verdicts verdicts = verdicts_on(logs, machine, {});
  ASSERT_TRUE(verdicts.fleet.has_value());
  EXPECT_EQ(verdicts.fleet->median.health, Health::healthy);
  for (const NodeVerdict& verdict : verdicts.nodes) {
    EXPECT_EQ(verdict.health, verdict.log.name == "node-4" ? Health::bad : Health::healthy) << verdict.log.name;
  }
  EXPECT_NE(verdicts.nodes[4].why.find("from its fleet"), std::string::npos) << verdicts.nodes[4].why;
}

TEST(Verdicts, AUniformlySlowFleetIsBad) {
  const Machine machine = load_machine("h100-sxm");
  const Verdicts verdicts = verdicts_on(fleet_of(machine, 6, 1.6), machine, {});
  EXPECT_EQ(verdicts.fleet->median.health, Health::bad);
  EXPECT_NEAR(verdicts.fleet->median.slowdown, 1.6, 0.02);
  for (const NodeVerdict& verdict : verdicts.nodes) {
    EXPECT_EQ(verdict.health, Health::bad);
    EXPECT_EQ(verdict.in_fleet->health, Health::healthy);
  }
}

TEST(Verdicts, HealthyNodesWithAnotherNcclAreNotAReference) {
  const Machine machine = load_machine("h100-sxm");
  NodeLog known = log_of("good", rows_of(machine));
  known.nccl_versions = {"2.23.4"};
  NodeLog slow = log_of("slow", rows_of(machine, 1.1));
  slow.nccl_versions = {"2.29.2"};
  VerdictOptions options{.healthy = {known}};
  EXPECT_EQ(verdicts_on({slow}, machine, options).nodes[0].health, Health::healthy);
  options.healthy[0].nccl_versions = {"2.29.2"};
  EXPECT_EQ(verdicts_on({slow}, machine, options).nodes[0].health, Health::bad);
}

// Pairs a-b, a-c and b-c over the network; every pair with c is slow.
TEST(Verdicts, AHostThatIsSlowInEveryPairIsNamed) {
  const Machine machine = load_machine("dgx-h100-x2");
  const auto pair = [&](const std::string& first, const std::string& other, double rate) {
    const Machine pair_machine = rate == 1.0 ? machine : with_network_rates(machine, rate);
    return NodeLog{.name = first + "+" + other, .hosts = {first, other}, .rows = rows_of(pair_machine)};
  };
  const Verdicts verdicts = verdicts_on({pair("a", "b", 1.0), pair("a", "c", 0.4), pair("b", "c", 0.4)}, machine, {});
  EXPECT_EQ(verdicts.nodes[0].health, Health::healthy);
  EXPECT_EQ(verdicts.nodes[1].health, Health::bad);
  EXPECT_EQ(verdicts.nodes[1].where, "between a and c");
  EXPECT_EQ(verdicts.blamed_hosts, std::vector<std::string>{"c"});
}

TEST(Verdicts, ARackIsNamedByItsFirstAndLastHost) {
  NodeLog rack{.name = "a+b+c+d", .hosts = {"a", "b", "c", "d"}};
  const Verdicts verdicts = verdicts_on({rack}, load_machine("h100-sxm"), {});
  EXPECT_EQ(verdicts.nodes[0].where, "between 4 hosts, a to d");
  EXPECT_EQ(verdicts.nodes[0].health, Health::undecided);
}

}  // namespace
}  // namespace commfuse::validate
