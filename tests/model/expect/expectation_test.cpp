// SPDX-License-Identifier: Apache-2.0
#include "model/expect/expectation.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "model/expect/machine_change.h"
#include "model/hardware/link_rates.h"
#include "tests/model/hardware/made_links.h"

namespace commfuse {
namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30U;

Message all_reduce_of(std::int64_t bytes) {
  return {.op = LinkOp::all_reduce, .gpus = 8, .nodes = 1, .bytes = {bytes}};
}

TEST(Message, TakesTheTimeOfTheCostModel) {
  const Machine machine = load_machine("h100-sxm");
  EXPECT_EQ(message_time(machine, all_reduce_of(gib)), all_reduce_time(machine.link, 8, {gib}));
  const Message pair{.op = LinkOp::send_recv, .gpus = 2, .nodes = 1, .bytes = {gib}};
  EXPECT_EQ(message_time(machine, pair), p2p_time(machine.link, {gib}));
}

/// Returns two nodes of four GPUs, with a NIC of 10 GB/s for each GPU and 200 GB/s inside a node.
Machine two_nodes_with_groups() {
  Machine machine = test::two_nodes();
  machine.nics_per_node = 4;
  machine.network_groups = std::make_shared<const std::vector<CollectiveParameters>>(
      std::vector{test::link(1, 10).collective, test::link(1, 20).collective, test::link(1, 30).collective});
  return machine;
}

TEST(Message, AllToAllAcrossNodesTakesTheFirstGpusOfEachNode) {
  Machine machine = two_nodes_with_groups();
  // Three GPUs on each node: each sends half of its 60 MB to the other node through its NIC of 10 GB/s, after 10 us.
  const Message three_of_four{.op = LinkOp::all_to_all, .gpus = 6, .nodes = 2, .bytes = {60'000'000}};
  EXPECT_EQ(message_time(machine, three_of_four), std::chrono::microseconds(3010));
  // A single GPU has the only NIC of its node to itself.
  machine.nics_per_node = 1;
  const Message pair{.op = LinkOp::all_to_all, .gpus = 2, .nodes = 2, .bytes = {20'000'000}};
  EXPECT_EQ(message_time(machine, pair), std::chrono::microseconds(1010));
}

TEST(Message, HasTheBusFactorsOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(LinkOp::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(LinkOp::all_gather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(LinkOp::all_to_all, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(LinkOp::send_recv, 2), 1.0);
}

TEST(Message, IsRecognizedByTheWordsOfTablesAndPrograms) {
  EXPECT_EQ(link_op_named("alltoall"), LinkOp::all_to_all);
  EXPECT_EQ(link_op_named("reduce_scatter"), LinkOp::reduce_scatter);
  EXPECT_EQ(link_op_named("broadcast"), std::nullopt);
}

TEST(Expectation, FitsMessagesToTheMachine) {
  const Machine node = load_machine("h100-sxm");
  EXPECT_TRUE(fits(node, all_reduce_of(1)));
  EXPECT_FALSE(fits(node, {.op = LinkOp::all_reduce, .gpus = 16, .nodes = 1, .bytes = {1}}));
  EXPECT_FALSE(fits(node, {.op = LinkOp::all_reduce, .gpus = 16, .nodes = 2, .bytes = {1}}));
  EXPECT_FALSE(fits(node, {.op = LinkOp::send_recv, .gpus = 8, .nodes = 1, .bytes = {1}}));
  EXPECT_TRUE(fits(load_machine("dgx-h100-x2"), {.op = LinkOp::all_reduce, .gpus = 16, .nodes = 2, .bytes = {1}}));
}

// 15.87% of a normal distribution lies more than one standard error above the mean: e^0.1 = 1.10517 times the time. The
// same share lies more than one standard error below the mean.
TEST(Expectation, RangesFollowTheErrorsAndTheFalseAlarms) {
  const Expected expected{
      .message = all_reduce_of(gib), .time = std::chrono::milliseconds(1), .shared_error = 0.06, .own_error = 0.08};
  EXPECT_DOUBLE_EQ(error_of(expected), 0.1);
  const ExpectedRange range = range_of(expected, 0.158655);
  EXPECT_NEAR(to_microseconds(range.slow), 1105.17, 0.01);
  EXPECT_NEAR(to_microseconds(range.fast), 904.84, 0.01);
  EXPECT_GT(range_of(expected, 0.01).slow, range.slow);
}

// 1 GiB in 4 ms is 268.4 GB/s; times 1.75 on the bus.
TEST(Expectation, BandwidthsMatchNcclTests) {
  const Duration time = std::chrono::milliseconds(4);
  EXPECT_NEAR(algorithm_bandwidth(all_reduce_of(gib), time).value, 268.435456e9, 1.0);
  EXPECT_NEAR(bus_bandwidth(all_reduce_of(gib), time).value, 469.762048e9, 1.0);
}

TEST(Expectation, NamesTheFitAndTheParametersBehindATime) {
  const Expectation expectation(load_machine("h100-sxm"));
  const Expected large = expectation.of(all_reduce_of(gib));
  EXPECT_EQ(large.limit, Limit::bandwidth);
  EXPECT_DOUBLE_EQ(large.own_error, 0.0312 * 1.084);  // residual and factor of bandwidth in the file
  // The NVLS rate of this file has an error of 0.62%, and other errors hardly matter.
  EXPECT_NEAR(large.shared_error, 0.0062, 0.001);
  EXPECT_EQ(expectation.of(all_reduce_of(1024)).limit, Limit::latency);
}

TEST(Expectation, AFewGpusOnEachNodeHaveTheFitOfTheNetwork) {
  Machine machine = two_nodes_with_groups();
  machine.link.collective.fit.residual = 0.01;
  machine.network->collective.fit.residual = 0.25;
  const Expectation expectation(machine);
  // The latency is 10 us, and half of 1 MB takes 50 us at 10 GB/s. Inside a node, most of the time is latency.
  const Expected pair = expectation.of({.op = LinkOp::all_gather, .gpus = 2, .nodes = 2, .bytes = {1'000'000}});
  EXPECT_EQ(pair.own_error, 0.25);
  EXPECT_EQ(pair.limit, Limit::bandwidth);
  const Expected inside = expectation.of({.op = LinkOp::all_gather, .gpus = 2, .nodes = 1, .bytes = {1'000'000}});
  EXPECT_EQ(inside.own_error, 0.01);
  EXPECT_EQ(inside.limit, Limit::latency);
}

TEST(Expectation, SaturatesAtNineTenthsOfTheBandwidth) {
  const Expectation expectation(load_machine("h100-sxm"));
  const Bytes size = expectation.saturation(all_reduce_of(1));
  EXPECT_EQ(size.count, std::int64_t{256} << 20U);
}

TEST(MachineChange, LinksAtHalfTheirRateTakeALongMessageTwiceAsLong) {
  const Machine machine = load_machine("h100-sxm");
  const Message long_message = all_reduce_of(64 * gib);
  const double ratio = to_seconds(message_time(with_link_rates(machine, 0.5), long_message)) /
                       to_seconds(message_time(machine, long_message));
  EXPECT_NEAR(ratio, 2.0, 0.001);
}

TEST(MachineChange, WithoutSumsInTheSwitchTheRingTakesOver) {
  const Machine machine = load_machine("h100-sxm");
  ASSERT_TRUE(has_nvls(machine));
  const Machine rings = without_nvls(machine);
  EXPECT_FALSE(has_nvls(rings));
  EXPECT_GT(message_time(rings, all_reduce_of(gib)), message_time(machine, all_reduce_of(gib)));
  const Message gather{.op = LinkOp::all_gather, .gpus = 8, .nodes = 1, .bytes = {gib}};
  EXPECT_EQ(message_time(rings, gather), message_time(machine, gather));
}

TEST(MachineChange, FewerCtasSlowRingsButNotSumsInTheSwitch) {
  const Machine machine = load_machine("h100-sxm");
  const Machine twelve_ctas = with_ctas(machine, 12);  // The machine has 24.
  const Message gather{.op = LinkOp::all_gather, .gpus = 8, .nodes = 1, .bytes = {64 * gib}};
  EXPECT_NEAR(to_seconds(message_time(twelve_ctas, gather)) / to_seconds(message_time(machine, gather)), 2.0, 0.01);
  EXPECT_EQ(message_time(twelve_ctas, all_reduce_of(gib)), message_time(machine, all_reduce_of(gib)));
  EXPECT_EQ(message_time(with_ctas(machine, 100), gather), message_time(machine, gather));
}

TEST(MachineChange, LatenciesAndClocksSlowSmallMessages) {
  const Machine machine = load_machine("h100-sxm");
  const Message small = all_reduce_of(1);
  const double latency =
      to_seconds(message_time(with_latencies(machine, 2.0), small)) / to_seconds(message_time(machine, small));
  EXPECT_NEAR(latency, 2.0, 0.02);
  EXPECT_GT(message_time(with_clock(machine, 0.5), small), message_time(machine, small));
}

TEST(MachineChange, FrameworkKernelsHaveLatenciesButTheirOwnCtas) {
  const std::optional<Machine> machine = with_all_reduce_kernel(load_machine("h100-sxm"), AllReduceKernel::vllm);
  ASSERT_TRUE(machine);
  const Message tiny = all_reduce_of(1);
  EXPECT_NEAR(to_seconds(message_time(with_latencies(*machine, 2.0), tiny)),
              2.0 * to_seconds(message_time(*machine, tiny)), 1e-10);
  const Message one_mib = all_reduce_of(std::int64_t{1} << 20U);
  EXPECT_LT(message_time(*machine, one_mib), message_time(load_machine("h100-sxm"), one_mib));
  EXPECT_EQ(message_time(with_ctas(*machine, 12), one_mib), message_time(*machine, one_mib));
}

/// SMs unpack what arrives by LL and LL128, in trees as in rings. The wires set the rate of Simple.
TEST(MachineChange, ALowClockSlowsWhatSmsUnpack) {
  const Machine machine = load_machine("dgx-h100-x2");
  const Machine slow = with_clock(machine, 0.5);
  const auto share = [](const Parameter<BytesPerSecond>& after, const Parameter<BytesPerSecond>& before) {
    return after.value.value / before.value.value;
  };
  const TreeParameters& tree = *machine.network->collective.tree;
  const TreeParameters& slow_tree = *slow.network->collective.tree;
  EXPECT_EQ(share(slow_tree.ll->rate, tree.ll->rate), 0.5);
  EXPECT_EQ(share(slow_tree.ll128->rate, tree.ll128->rate), 0.5);
  EXPECT_EQ(share(slow_tree.rate, tree.rate), 1.0);
}

/// A100's reduce-scatter adds a rank's own share at a rate of its own: 5% of the time of a large message.
TEST(MachineChange, FewerCtasAndLowClocksSlowTheSumOfTheOwnShare) {
  const Machine machine = load_machine("a100-sxm-80");
  const Message scatter{.op = LinkOp::reduce_scatter, .gpus = 8, .nodes = 1, .bytes = {64 * gib}};
  const double seconds = to_seconds(message_time(machine, scatter));
  EXPECT_NEAR(to_seconds(message_time(with_ctas(machine, 12), scatter)) / seconds, 2.0, 0.01);  // The machine has 24.
  EXPECT_GT(to_seconds(message_time(with_clock(machine, 0.5), scatter)) / seconds, 1.03);
}

TEST(MachineChange, FewerRailsLeaveALoneGpuItsNic) {
  const Machine machine = load_machine("dgx-h100-x2");
  const auto slowdown = [&](std::int64_t of_a_node, int rails) {
    const Message gather{.op = LinkOp::all_gather, .gpus = 2 * of_a_node, .nodes = 2, .bytes = {64 * gib}};
    return to_seconds(message_time(with_rails(machine, rails), gather)) / to_seconds(message_time(machine, gather));
  };
  EXPECT_EQ(slowdown(1, 1), 1.0);
  // Two of eight GPUs reach a quarter of five NICs instead of two NICs. A rank's own share is copied as before.
  EXPECT_NEAR(slowdown(2, 5), 1.6, 0.04);
  EXPECT_NEAR(slowdown(4, 4), 2.0, 0.05);
}

TEST(MachineChange, RailsAndNetworkRatesDoNotChangeTheNode) {
  const Machine machine = load_machine("dgx-h100-x2");
  const Message across{.op = LinkOp::all_reduce, .gpus = 16, .nodes = 2, .bytes = {16 * gib}};
  const double four_of_eight =
      to_seconds(message_time(with_rails(machine, 4), across)) / to_seconds(message_time(machine, across));
  EXPECT_NEAR(four_of_eight, 2.0, 0.01);
  const Machine slow = with_network_rates(machine, 0.5);
  EXPECT_NEAR(to_seconds(message_time(slow, across)) / to_seconds(message_time(machine, across)), 2.0, 0.01);
  EXPECT_EQ(message_time(slow, all_reduce_of(gib)), message_time(machine, all_reduce_of(gib)));
}

TEST(Expectation, CanCountUndecidedParametersOnly) {
  const Machine machine = load_machine("h100-sxm");
  const Expectation every_error(machine);
  const Expectation undecided(machine, ParameterErrors::undecided);
  const Expected expected = every_error.of(all_reduce_of(gib));
  EXPECT_GT(expected.shared_error, 0.0);
  EXPECT_LT(undecided.of(all_reduce_of(gib)).shared_error, expected.shared_error);
  EXPECT_EQ(undecided.of(all_reduce_of(gib)).time, expected.time);
  // Without a fit, every parameter is undecided.
  const Machine prior = load_machine("h100-pcie");
  EXPECT_DOUBLE_EQ(Expectation(prior, ParameterErrors::undecided).of(all_reduce_of(gib)).shared_error,
                   Expectation(prior).of(all_reduce_of(gib)).shared_error);
}

TEST(Expectation, RecognizesTheSizesThatAFitSaw) {
  const Machine machine = load_machine("h100-sxm");
  EXPECT_TRUE(is_seen(machine, all_reduce_of(1 << 20)));
  EXPECT_FALSE(is_seen(machine, all_reduce_of(64 * gib)));
  EXPECT_FALSE(is_seen(load_machine("h100-pcie"), all_reduce_of(1 << 20)));
}

}  // namespace
}  // namespace commfuse
