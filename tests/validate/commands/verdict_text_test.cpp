// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/verdict_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "model/expect/faults.h"

namespace commfuse::validate {
namespace {

NodeVerdict healthy_verdict(const std::string& name) {
  return {.log = {.name = name, .hosts = {name}}, .health = Health::healthy, .where = "inside " + name};
}

MeasuredMessage gather_of(std::int64_t bytes, double us) {
  return {{.op = LinkOp::all_gather, .gpus = 2, .nodes = 1, .bytes = {bytes}}, us};
}

TEST(VerdictText, SharesOfFalseAlarmsAreNotRounded) {
  const Verdicts verdicts{.nodes = {healthy_verdict("a")}};
  const auto first_line = [&](double false_alarms) {
    const std::string text = verdict_table(verdicts, {.machine = "h100-sxm", .false_alarms = false_alarms});
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(first_line(0.01), "against h100-sxm, at most 1% false alarms: 1 healthy, 0 bad, 0 undecided");
  EXPECT_EQ(first_line(0.005), "against h100-sxm, at most 0.5% false alarms: 1 healthy, 0 bad, 0 undecided");
  EXPECT_EQ(first_line(0.025), "against h100-sxm, at most 2.5% false alarms: 1 healthy, 0 bad, 0 undecided");
  EXPECT_EQ(first_line(1e-6), "against h100-sxm, at most 0.0001% false alarms: 1 healthy, 0 bad, 0 undecided");
}

TEST(VerdictText, PrometheusGetsTheMedianOfRepeatedMessages) {
  NodeVerdict node = healthy_verdict("a");
  node.log.rows = {gather_of(8000, 4.0), gather_of(4000, 1.0), gather_of(8000, 1.0), gather_of(8000, 2.0)};
  const std::string text = verdict_prometheus({.nodes = {node}}, {});
  const std::string labels =
      "commfuse_bus_bandwidth_bytes_per_second{node=\"a\",collective=\"all_gather\",ranks=\"2\",nodes=\"1\",bytes=";
  EXPECT_EQ(text.substr(text.find(labels)), labels + "\"8000\"} 2e+09\n" + labels + "\"4000\"} 2e+09\n");
}

TEST(VerdictText, ABadFleetIsInEveryFormat) {
  Verdicts verdicts{.nodes = {healthy_verdict("a")}};
  verdicts.fleet = FleetVerdict{
      .nodes = 4,
      .median = {.health = Health::bad, .healthy_probability = 0.02, .slowdown = 1.5, .severity = Severity::major},
      .spread = 0.034};
  const std::string sentence = "fleet of 4: the whole fleet is 1.50 times as slow as expected; nodes differ by 3.4%";
  const VerdictPage page{.machine = "h100-sxm", .false_alarms = 0.01};
  EXPECT_NE(verdict_table(verdicts, page).find("fleet of 4: the whole fleet is 1.50 times"), std::string::npos);
  EXPECT_NE(verdict_markdown(verdicts, page).find("\n" + sentence + ".\n"), std::string::npos);
  EXPECT_NE(verdict_prometheus(verdicts, page).find("\ncommfuse_fleet_bad 1\n"), std::string::npos);
  const nlohmann::json objects = nlohmann::json::parse(verdict_json(verdicts, page));
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(objects[1].at("fleet"), 4);
  EXPECT_EQ(objects[1].at("health"), "bad");
  EXPECT_EQ(objects[1].at("why"), sentence);
  const std::string junit = verdict_junit(verdicts, page);
  EXPECT_NE(junit.find("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""), std::string::npos) << junit;
  EXPECT_NE(junit.find("<testcase classname=\"fleet\" name=\"median of 4 nodes\">"), std::string::npos);
  EXPECT_NE(junit.find("<failure message=\"" + sentence + "\""), std::string::npos);
}

TEST(VerdictText, BytesThatAreNotUtf8DoNotBreakAFormat) {
  const Verdicts verdicts{.nodes = {healthy_verdict("n\xf6rd")}};
  const VerdictPage page{.machine = "h100-sxm", .false_alarms = 0.01, .unread = {"b\x01.txt: no such file"}};
  const std::string junit = verdict_junit(verdicts, page);
  EXPECT_NE(junit.find("name=\"n\ufffdrd\""), std::string::npos) << junit;
  EXPECT_NE(junit.find("message=\"b\\x01.txt: no such file\""), std::string::npos) << junit;
  EXPECT_NE(verdict_prometheus(verdicts, page).find("node=\"n\ufffdrd\""), std::string::npos);
  EXPECT_NE(verdict_markdown(verdicts, page).find("| n\ufffdrd |"), std::string::npos);
}

TEST(VerdictText, OneRankAndOneStepAreSingular) {
  const JobVerdict job{.job = {.name = "steps.csv"},
                       .judgement = {.ranks = 1, .steps = 1, .step_us = 100.0},
                       .why = "not enough to decide: three ranks and three steps are needed"};
  EXPECT_EQ(verdict_table({.jobs = {job}}, {}),
            "job steps.csv: undecided, P(healthy) 100%; 1 rank, 1 step of 100.0 us\n"
            "  not enough to decide: three ranks and three steps are needed\n");
}

TEST(VerdictText, SentencesAboutAFleetFit80Columns) {
  Verdicts verdicts{.nodes = {healthy_verdict("a"), healthy_verdict("b")}, .blamed_hosts = {"a"}};
  verdicts.fleet = FleetVerdict{.nodes = 16, .median = {.health = Health::bad, .slowdown = 1.5}, .spread = 0.034};
  verdicts.fleet->median.suspects.push_back({.fault = &all_faults().front(), .probability = 0.9});
  EXPECT_NE(verdict_table(verdicts, {}).find("\nbad in all its runs with other hosts: a\n"), std::string::npos);
  for (int host = 10; host < 20; ++host) {
    verdicts.blamed_hosts.push_back("node-" + std::to_string(host));
  }
  const std::string text = verdict_table(verdicts, {.machine = "dgx-h100-x16"});
  EXPECT_NE(text.find("\nbad in all their runs with other hosts: a, node-10, "), std::string::npos) << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(VerdictText, MarkdownNamesDataThatIsNotJudged) {
  const std::string text =
      verdict_markdown({.nodes = {healthy_verdict("a")}}, {.machine = "h100-sxm", .passed_over = {"a.txt: 2 groups"}});
  EXPECT_TRUE(text.ends_with("\nNot judged: a.txt: 2 groups\n")) << text;
}

}  // namespace
}  // namespace commfuse::validate
