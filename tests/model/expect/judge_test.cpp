// SPDX-License-Identifier: Apache-2.0
#include "model/expect/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "model/config/catalogue.h"
#include "model/expect/machine_change.h"

namespace commfuse {
namespace {

using Rows = std::vector<MeasuredMessage>;

/// Returns rows with the expected times of a machine: two collectives by default, from 1 KiB to 8 GiB.
Rows message_rows(const Machine& machine, std::vector<LinkOp> ops = {LinkOp::all_gather, LinkOp::all_reduce}) {
  Rows rows;
  for (const LinkOp op : ops) {
    for (std::int64_t bytes = 1024; bytes <= std::int64_t{8} << 30U; bytes *= 2) {
      const Message message{.op = op, .gpus = total_gpus(machine), .nodes = machine.nodes, .bytes = {bytes}};
      rows.push_back({message, to_microseconds(message_time(machine, message))});
    }
  }
  return rows;
}

Rows scaled(double factor, Rows rows) {
  for (MeasuredMessage& row : rows) {
    row.time_us *= factor;
  }
  return rows;
}

Judgement judged_node(const Rows& rows, const Machine& machine) { return Judge(Expectation(machine), 0.01).of(rows); }

Expected expected_of(const Message& message, Limit limit) {
  return {.message = message,
          .time = std::chrono::microseconds(100),
          .shared_error = 0.03,
          .own_error = 0.1,
          .limit = limit};
}

// All-reduce has four sizes, and all-gather has two. Latency limits only one size of all-reduce; a half with a single
// row is omitted.
TEST(Evidence, TakesMediansOfCollectivesAndLimits) {
  Rows rows;
  std::vector<Expected> expected;
  const auto add = [&](LinkOp op, std::int64_t bytes, double us, Limit limit) {
    rows.push_back({{.op = op, .gpus = 8, .nodes = 1, .bytes = {bytes}}, us});
    expected.push_back(expected_of(rows.back().message, limit));
  };
  add(LinkOp::all_reduce, 1, 100.0, Limit::latency);
  add(LinkOp::all_reduce, 1 << 20, 110.0, Limit::bandwidth);
  add(LinkOp::all_reduce, 2 << 20, 120.0, Limit::bandwidth);
  add(LinkOp::all_reduce, 4 << 20, 900.0, Limit::bandwidth);
  add(LinkOp::all_gather, 1 << 20, 100.0, Limit::bandwidth);
  add(LinkOp::all_gather, 2 << 20, 121.0, Limit::bandwidth);
  const std::vector<ClassHalf> halves = class_halves(rows, expected);
  ASSERT_EQ(halves.size(), 2U);
  EXPECT_EQ(halves[0].op, LinkOp::all_gather);
  EXPECT_NEAR(halves[0].median, std::log(1.1), 1e-12);  // the mean of the logarithms of 1 and 1.21
  EXPECT_NEAR(halves[1].median, std::log(1.2), 1e-12);  // The outlier changes nothing.
  EXPECT_NEAR(halves[1].shared_error, std::sqrt(0.03 * 0.03 + 0.10 * 0.01 + 0.024 * 0.024), 1e-12);
  EXPECT_NEAR(halves[1].own_error, std::sqrt((0.40 + 1.8 / 3) * 0.01 + 0.024 * 0.024), 1e-12);
}

// One half has a normal likelihood with both errors: exp(-x^2 / 2 s^2) / (s sqrt(2 pi)).
TEST(Evidence, OneBandwidthMedianIsNormal) {
  const ClassHalf half{
      .limit = Limit::bandwidth, .rows = {0, 1}, .median = 0.2, .shared_error = 0.06, .own_error = 0.08};
  const std::vector<ClassHalf> halves{half};
  EXPECT_NEAR(log_likelihood(halves, {0.0}), -2.0 - std::log(0.1 * std::sqrt(2.0 * std::numbers::pi)), 1e-9);
}

// Two collectives that are off in the same direction are likelier than two that are off in opposite directions, because
// errors are shared.
TEST(Evidence, SharedErrorsMakeCommonShiftsLikelier) {
  ClassHalf half{.limit = Limit::bandwidth, .rows = {0, 1}, .median = 0.1, .shared_error = 0.08, .own_error = 0.04};
  ClassHalf second = half;
  const std::vector<ClassHalf> same_direction{half, second};
  second.median = -0.1;
  const std::vector<ClassHalf> opposite_directions{half, second};
  EXPECT_GT(log_likelihood(same_direction, {0.0, 0.0}), log_likelihood(opposite_directions, {0.0, 0.0}) + 1.0);
}

TEST(Evidence, NeedsEightSizesOfTwoCollectives) {
  const auto half = [](LinkOp op, std::size_t rows, Limit limit = Limit::bandwidth) {
    return ClassHalf{.op = op, .limit = limit, .rows = std::vector<std::size_t>(rows)};
  };
  using Halves = std::vector<ClassHalf>;
  EXPECT_TRUE(is_enough(Halves{half(LinkOp::all_reduce, 4), half(LinkOp::all_gather, 4)}));
  EXPECT_FALSE(is_enough(Halves{half(LinkOp::all_reduce, 4), half(LinkOp::all_gather, 3)}));
  EXPECT_FALSE(is_enough(Halves{half(LinkOp::all_reduce, 20)}));
  EXPECT_FALSE(is_enough(Halves{half(LinkOp::all_reduce, 4), half(LinkOp::all_gather, 9, Limit::latency)}));
  EXPECT_TRUE(may_condemn(Halves{half(LinkOp::all_reduce, 8)}));
  EXPECT_FALSE(may_condemn(Halves{half(LinkOp::all_reduce, 7)}));
}

TEST(Judge, ExpectedTimesAreHealthy) {
  const Machine machine = load_machine("h100-sxm");
  const Judgement judgement = judged_node(message_rows(machine), machine);
  EXPECT_EQ(judgement.health, Health::healthy);
  EXPECT_LT(judgement.odds, 1.0);
  EXPECT_GT(judgement.healthy_probability, 0.95);
  EXPECT_EQ(judgement.severity, Severity::none);
}

TEST(Judge, FasterThanExpectedIsNotAFault) {
  const Machine machine = load_machine("h100-sxm");
  EXPECT_EQ(judged_node(scaled(0.8, message_rows(machine)), machine).health, Health::healthy);
}

TEST(Judge, NamesTheFaultThatTheMeasurementsResemble) {
  const Machine machine = load_machine("h100-sxm");
  const auto first = [&](const Rows& rows) {
    const Judgement judgement = judged_node(rows, machine);
    EXPECT_EQ(judgement.health, Health::bad);
    return judgement.suspects.empty() ? "" : std::string(judgement.suspects.front().fault->name);
  };
  const std::vector<LinkOp> ops{LinkOp::all_gather, LinkOp::reduce_scatter, LinkOp::all_reduce};
  EXPECT_EQ(first(scaled(1.6, message_rows(machine, ops))), "uniform_slowdown");
  EXPECT_EQ(first(message_rows(with_link_rates(machine, 0.55), ops)), "slow_link");
  EXPECT_EQ(first(message_rows(with_ctas(machine, 10), ops)), "few_ctas");
  EXPECT_EQ(first(message_rows(with_latencies(with_link_rates(machine, 0.15), 1.4), ops)), "host_path");
}

// All rows are 1.6 times as slow, so e^(median) is 1.6.
TEST(Judge, ReportsTheSlowdown) {
  const Machine machine = load_machine("h100-sxm");
  const Judgement judgement = judged_node(scaled(1.6, message_rows(machine)), machine);
  EXPECT_NEAR(judgement.slowdown, 1.6, 1e-9);
  EXPECT_EQ(judgement.severity, Severity::critical);
  EXPECT_EQ(judged_node(scaled(1.45, message_rows(machine)), machine).severity, Severity::major);
}

TEST(Judge, OneRowDecidesNothing) {
  const Machine machine = load_machine("h100-sxm");
  Rows rows = message_rows(machine);
  rows.back().time_us *= 100.0;
  EXPECT_EQ(judged_node(rows, machine).health, Health::healthy);
}

TEST(Judge, AShortLogIsUndecidedUnlessTheNodeIsFarTooSlow) {
  const Machine machine = load_machine("h100-sxm");
  EXPECT_EQ(judged_node(message_rows(machine, {LinkOp::all_reduce}), machine).health, Health::undecided);
  EXPECT_EQ(judged_node({}, machine).health, Health::undecided);
  // Even on a short log, a node that is four times as slow is bad.
  EXPECT_EQ(judged_node(scaled(4.0, message_rows(machine, {LinkOp::all_reduce})), machine).health, Health::bad);
}

// The fit of the shipped file saw all of these sizes. They take 1 / 0.9 times as long as the file states.
TEST(Judge, SeesSmallerFaultsWithAFileOfItsOwnFleet) {
  const Machine machine = load_machine("h100-sxm");
  Rows rows;
  for (const MeasuredMessage& row :
       message_rows(machine, {LinkOp::all_gather, LinkOp::reduce_scatter, LinkOp::all_reduce, LinkOp::all_to_all})) {
    if (is_seen(machine, row.message)) {
      rows.push_back(row);
    }
  }
  ASSERT_GE(rows.size(), 60U);
  Judge with_shipped_errors(Expectation(machine), 0.01);
  Judge judge(Expectation(machine), 0.01, {}, FittedTo::this_fleet);
  EXPECT_EQ(with_shipped_errors.of(scaled(1.0 / 0.9, rows)).health, Health::healthy);
  EXPECT_EQ(judge.of(scaled(1.0 / 0.9, rows)).health, Health::bad);
  EXPECT_EQ(judge.of(rows).health, Health::healthy);
  const std::vector<ClassHalf> wide = with_shipped_errors.of(rows).halves;
  const std::vector<ClassHalf> narrow = judge.of(rows).halves;
  ASSERT_EQ(wide.size(), narrow.size());
  for (std::size_t i = 0; i < wide.size(); ++i) {
    EXPECT_LT(error_of(narrow[i]), error_of(wide[i]));
    EXPECT_GE(narrow[i].shared_error, repeat_error);
  }
}

// A long launch delays only kernels that finish before the next launch.
TEST(Judge, SlowLaunchesAreSeenWhereLargeMessagesHideThem) {
  const Machine machine = load_machine("h100-sxm");
  Rows rows =
      message_rows(machine, {LinkOp::all_gather, LinkOp::reduce_scatter, LinkOp::all_reduce, LinkOp::all_to_all});
  Judge judge(Expectation(machine), 0.01, {}, FittedTo::this_fleet);
  const std::vector<Expected> expected = judge.of(rows).expected;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].time_us *= expected[i].limit == Limit::latency ? 2.0 : 1.0;
  }
  const Judgement judgement = judge.of(rows);
  EXPECT_EQ(judgement.health, Health::bad);
  ASSERT_FALSE(judgement.suspects.empty());
  EXPECT_EQ(judgement.suspects.front().fault->name, "slow_host");
}

// Sizes that nobody measured are as uncertain as with the shipped file.
TEST(Judge, SizesOutsideEveryFitKeepTheirErrors) {
  const Machine machine = load_machine("h100-sxm");
  Rows rows;
  for (const LinkOp op : {LinkOp::all_gather, LinkOp::all_reduce}) {
    for (std::int64_t bytes = std::int64_t{2} << 30U; bytes <= std::int64_t{32} << 30U; bytes *= 2) {
      const Message message{.op = op, .gpus = 8, .nodes = 1, .bytes = {bytes}};
      ASSERT_FALSE(is_seen(machine, message));
      rows.push_back({message, to_microseconds(message_time(machine, message))});
    }
  }
  Judge judge(Expectation(machine), 0.01, {}, FittedTo::this_fleet);
  const std::vector<ClassHalf> narrow = judge.of(rows).halves;
  const std::vector<ClassHalf> wide = judged_node(rows, machine).halves;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    EXPECT_DOUBLE_EQ(error_of(narrow[i]), error_of(wide[i]));
  }
}

// The slow node is 20% slower than a healthy node, which is itself 5% slower than the file states.
TEST(Judge, SeesSmallerFaultsAgainstAHealthyNode) {
  const Machine machine = load_machine("h100-sxm");
  const Expectation expectation(machine);
  const Rows healthy = scaled(1.05, message_rows(machine));
  const Rows slow = scaled(1.05 * 1.2, message_rows(machine));
  const std::vector<Rows> reference_nodes{healthy};
  Judge judge(expectation, 0.01, reference_of(reference_nodes, expectation));
  EXPECT_EQ(judge.of(healthy).health, Health::healthy);
  const Judgement judgement = judge.of(slow);
  EXPECT_EQ(judgement.health, Health::bad);
  EXPECT_NEAR(judgement.slowdown, 1.2, 1e-6);
}

TEST(Judge, StaysFiniteOnAbsurdTimes) {
  const Machine machine = load_machine("h100-sxm");
  for (const double factor : {1e-9, 1e9}) {
    const Judgement judgement = judged_node(scaled(factor, message_rows(machine)), machine);
    EXPECT_TRUE(std::isfinite(judgement.odds)) << factor;
    EXPECT_GE(judgement.healthy_probability, 0.0);
    EXPECT_LE(judgement.healthy_probability, 1.0);
  }
}

// The median of the logarithms over three nodes is that of the middle node; the spread follows from the median distance
// to it.
TEST(Reference, IsTheMiddleOfSeveralNodes) {
  const Machine machine = load_machine("h100-sxm");
  const Expectation expectation(machine);
  const std::vector<Rows> nodes{scaled(1.0, message_rows(machine)), scaled(1.1, message_rows(machine)),
                                scaled(1.3, message_rows(machine))};
  const Reference reference = reference_of(nodes, expectation, 3);
  EXPECT_NEAR(reference.offsets.at(key_of(nodes[0][0].message)), std::log(1.1), 1e-9);
  EXPECT_NEAR(reference.spread, 1.4826 * std::log(1.1), 1e-9);  // The distances are 0.095, 0 and 0.167.
  EXPECT_TRUE(reference_of(nodes, expectation, 4).offsets.empty());
}

TEST(Faults, AreFoundByName) {
  ASSERT_NE(fault_named("missing_nvls"), nullptr);
  EXPECT_EQ(fault_named("gremlins"), nullptr);
  EXPECT_TRUE(fault_named("pcie_generation")->degrees(load_machine("h100-sxm")).empty());
  EXPECT_EQ(fault_named("pcie_generation")->degrees(load_machine("pcie-rtx-pro-6000")).size(), 2U);
  EXPECT_TRUE(fault_named("dead_rail")->degrees(load_machine("h100-sxm")).empty());
  EXPECT_EQ(fault_named("dead_rail")->degrees(load_machine("dgx-h100-x2")).size(), 5U);  // 7, 6, 4, 2 or 1 of 8 remain
}

}  // namespace
}  // namespace commfuse
