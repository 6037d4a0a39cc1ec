// SPDX-License-Identifier: Apache-2.0
#include "model/fit/link_fit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/cost/communication.h"
#include "model/fit/link_yaml.h"
#include "model/formats/nccl_tests.h"
#include "tests/noise.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

RingParameters protocol_of(double base_us, double step_us, double gigabytes, double copy) {
  return {{.base_latency = {.value = from_seconds(1e-6 * base_us)},
           .step_latency = {.value = from_seconds(1e-6 * step_us)},
           .rate = {.value = {1e9 * gigabytes}},
           .own_copy_rate = {.value = {1e9 * copy}},
           .ramp_size = {}}};
}

/// Returns the parameters of a made-up machine for a share of 1, and a guess at them for other shares.
CollectiveParameters parameters_at(double share) {
  NcclKernels kernels;
  kernels.tuning = {
      .generation = NcclGeneration::hopper, .wire = NcclWire::nvlink, .channels = 12, .channel_rate = {25e9}};
  kernels.ll = protocol_of(5.0 * share, 0.7 * share, 150.0 / share, 300.0 / share);
  kernels.ll.forward_latency = {.value = from_seconds(0.4e-6 * share)};
  kernels.ll.fill_size = {.value = Bytes{static_cast<std::int64_t>(40'000 * share)}};
  kernels.ll.channel_latency = {.value = from_seconds(1.5e-6 * share)};
  kernels.ll128 = protocol_of(12.0 * share, 1.2 * share, 250.0 / share, 500.0 / share);
  kernels.nvls =
      SwitchParameters{{.value = from_seconds(22e-6 * share)}, {.value = {200e9 / share}}, {.value = Bytes{0}}};
  CollectiveParameters collective{protocol_of(15.0 * share, 3.0 * share, 280.0 / share, 600.0 / share)};
  collective.ctas.value = 24;
  collective.nccl = std::make_shared<const NcclKernels>(kernels);
  collective.all_to_all = std::make_shared<const AllToAllParameters>(
      AllToAllParameters{{.value = Bytes{16'384}},
                         protocol_of(7.0 * share, 0.2 * share, 100.0 / share, 200.0 / share),
                         protocol_of(12.0 * share, 0.3 * share, 240.0 / share, 500.0 / share)});
  return collective;
}

std::vector<CollectiveRow> measured_collectives(const CollectiveParameters& truth, double spread) {
  Noise noise(spread);
  std::vector<CollectiveRow> rows;
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                    CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
    for (const int ranks : {2, 3, 4, 6, 8}) {
      for (std::int64_t bytes = 4096; bytes <= std::int64_t{1} << 30; bytes *= 2) {
        CollectiveRow row{.kind = kind, .ranks = ranks, .total = Bytes{bytes}};
        row.time_us = collective_microseconds(truth, row) * noise.factor();
        rows.push_back(row);
      }
    }
  }
  return rows;
}

/// Checks that a fitted value is within `errors` standard errors of the truth.
template <class T>
void expect_found(const Parameter<T>& parameter, double value, double truth, double errors = 3.0) {
  EXPECT_EQ(parameter.provenance, Provenance::fitted);
  EXPECT_EQ(parameter.source, "made up");
  EXPECT_GT(parameter.standard_error, 0.0);
  EXPECT_LT(std::abs(std::log(value / truth)), errors * parameter.standard_error) << value << " for " << truth;
}

TEST(LinkFit, RecoversASyntheticMachineWithinIntervals) {
  const CollectiveParameters truth = parameters_at(1.0);
  const std::vector<CollectiveRow> rows = measured_collectives(truth, 0.03);
  const CollectiveFit fit = fit_collectives(parameters_at(1.4), rows, {.source = "made up", .prior_spread = 3.0});
  EXPECT_TRUE(fit.report.converged);
  EXPECT_LT(fit.report.spread, 0.05);
  const CollectiveParameters& fitted = fit.parameters;
  expect_found(fitted.base_latency, to_microseconds(fitted.base_latency.value), 15.0);
  expect_found(fitted.step_latency, to_microseconds(fitted.step_latency.value), 3.0);
  expect_found(fitted.rate, fitted.rate.value.value, 280e9);
  expect_found(fitted.own_copy_rate, fitted.own_copy_rate.value.value, 600e9);
  expect_found(fitted.nccl->ll.base_latency, to_microseconds(fitted.nccl->ll.base_latency.value), 5.0);
  expect_found(fitted.nccl->ll.step_latency, to_microseconds(fitted.nccl->ll.step_latency.value), 0.7);
  ASSERT_TRUE(fitted.nccl->ll.forward_latency);
  expect_found(*fitted.nccl->ll.forward_latency, to_microseconds(fitted.nccl->ll.forward_latency->value), 0.4);
  EXPECT_FALSE(fitted.forward_latency) << "the start has none";
  expect_found(*fitted.nccl->ll.channel_latency, to_microseconds(fitted.nccl->ll.channel_latency->value), 1.5);
  EXPECT_FALSE(fitted.fill_size) << "the start has none";
  expect_found(fitted.nccl->ll128->rate, fitted.nccl->ll128->rate.value.value, 250e9);
  expect_found(fitted.nccl->nvls->rate, fitted.nccl->nvls->rate.value.value, 200e9);
  expect_found(fitted.all_to_all->large.rate, fitted.all_to_all->large.rate.value.value, 240e9);
  EXPECT_LT(fitted.rate.standard_error, 0.05);
}

/// Returns the output that a program of nccl-tests prints for these rows.
std::string nccl_tests_output(const std::string& program, int ranks, const std::vector<CollectiveRow>& rows) {
  std::string text = "# Collective test starting: " + program + "_perf\n# Using devices\n";
  for (int rank = 0; rank < ranks; ++rank) {
    text += fmt::format("#  Rank {:2} Group  0 Pid  {} on   made-up device  {} [0x07] None\n", rank, 100 + rank, rank);
  }
  for (const CollectiveRow& row : rows) {
    text += fmt::format("{:12} {:12} float sum -1 {:8.2f} 0.00 0.00 0 {:8.2f} 0.00 0.00 0\n", row.total.count,
                        row.total.count / 4, row.time_us, row.time_us);
  }
  return text + "# Out of bounds values : 0 OK\n";
}

TEST(LinkFit, RecoversASyntheticMachineFromTextOfNcclTests) {
  const std::vector<CollectiveRow> truth = measured_collectives(parameters_at(1.0), 0.03);
  std::vector<CollectiveRow> parsed;
  for (const auto& [program, collective] : {std::pair{"all_gather", CollectiveKind::all_gather},
                                            {"reduce_scatter", CollectiveKind::reduce_scatter},
                                            {"all_reduce", CollectiveKind::all_reduce},
                                            {"alltoall", CollectiveKind::all_to_all}}) {
    const CollectiveKind kind = collective;  // clang 14 does not let a lambda capture a structured binding.
    for (const int ranks : {2, 3, 4, 6, 8}) {
      std::vector<CollectiveRow> rows = truth;
      std::erase_if(rows, [&](const CollectiveRow& row) { return row.kind != kind || row.ranks != ranks; });
      const NcclTestsRun run = read_nccl_tests(nccl_tests_output(program, ranks, rows), "made-up.txt").front();
      ASSERT_EQ(run.rows.size(), rows.size());
      for (const NcclTestsRow& row : run.rows) {
        parsed.push_back({.kind = kind, .ranks = run.ranks, .total = Bytes{row.bytes}, .time_us = row.time_us});
      }
    }
  }
  const CollectiveParameters fitted =
      fit_collectives(parameters_at(0.7), parsed, {.source = "made up", .prior_spread = 3.0}).parameters;
  expect_found(fitted.base_latency, to_microseconds(fitted.base_latency.value), 15.0);
  expect_found(fitted.rate, fitted.rate.value.value, 280e9);
  expect_found(fitted.nccl->ll.base_latency, to_microseconds(fitted.nccl->ll.base_latency.value), 5.0);
  expect_found(fitted.nccl->ll128->rate, fitted.nccl->ll128->rate.value.value, 250e9);
  expect_found(fitted.nccl->nvls->rate, fitted.nccl->nvls->rate.value.value, 200e9);
  expect_found(fitted.all_to_all->large.rate, fitted.all_to_all->large.rate.value.value, 240e9);
}

TEST(LinkFit, KeepsParametersThatNoRowDependsOn) {
  const CollectiveParameters start = parameters_at(1.4);
  std::vector<CollectiveRow> rows = measured_collectives(parameters_at(1.0), 0.0);
  std::erase_if(rows, [](const CollectiveRow& row) { return row.kind != CollectiveKind::all_to_all; });
  const CollectiveFit fit = fit_collectives(start, rows, {.source = "made up", .prior_spread = 3.0});
  EXPECT_EQ(fit.parameters.rate.value, start.rate.value);
  EXPECT_EQ(fit.parameters.rate.provenance, Provenance::prior);
  EXPECT_EQ(fit.parameters.all_to_all->large.rate.provenance, Provenance::fitted);
  EXPECT_NEAR(fit.parameters.all_to_all->large.rate.value.value, 240e9, 5e9);
  EXPECT_NE(start.all_to_all->large.rate.value.value, fit.parameters.all_to_all->large.rate.value.value);
}

TEST(LinkFit, DistinguishesTreesOfTwoNodesFromLargerOnes) {
  CollectiveParameters truth = parameters_at(1.0);
  TreeParameters tree{{{.value = 30us}, {.value = 40us}, {.value = {190e9}}}};
  tree.two_nodes_rate.emplace().value = {250e9};
  tree.ramp_size_per_rank.value = Bytes{5'000'000};
  truth.tree = std::make_shared<const TreeParameters>(tree);
  std::vector<CollectiveRow> rows;
  for (const int nodes : {2, 4, 8}) {
    for (std::int64_t bytes = std::int64_t{1} << 20; bytes <= std::int64_t{1} << 34; bytes *= 2) {
      CollectiveRow row{.kind = CollectiveKind::all_reduce, .ranks = 8 * nodes, .nodes = nodes, .total = Bytes{bytes}};
      row.time_us = collective_microseconds(truth, row);
      rows.push_back(row);
    }
  }
  CollectiveParameters start = truth;
  tree.base_latency.value = 60us;
  tree.rate.value = {150e9};
  tree.two_nodes_rate.emplace().value = {150e9};
  start.tree = std::make_shared<const TreeParameters>(tree);
  const CollectiveFit fit = fit_collectives(start, rows, {.source = "made up", .prior_spread = 10.0});
  EXPECT_NEAR(fit.parameters.tree->rate.value.value, 190e9, 1e9);
  EXPECT_NEAR(fit.parameters.tree->two_nodes_rate->value.value, 250e9, 1e9);
  EXPECT_NEAR(to_microseconds(fit.parameters.tree->base_latency.value), 30.0, 2.0);
}

/// Returns two nodes, each of two ranks behind one NIC, as NCCL sees them. For a share other than 1, returns a guess at
/// their parameters.
CollectiveParameters slow_network(double share) {
  NcclKernels kernels;
  kernels.tuning = {.generation = NcclGeneration::ampere,
                    .wire = NcclWire::network,
                    .channels = 2,
                    .channel_rate = {12e9},
                    .tree_channels = 4,
                    .ll128_across = false,
                    .amd_hosts = true,
                    .tree_step = 28us,
                    .tree_node_step = 28us};
  kernels.ll = protocol_of(40.0 * share, 1.0, 3.0 / share, 1e6);
  CollectiveParameters collective{protocol_of(60.0 * share, 4.0, 6.0 / share, 1e6)};
  collective.nccl = std::make_shared<const NcclKernels>(kernels);
  TreeParameters tree{{{.value = from_seconds(70e-6 * share)}, {.value = 30us}, {.value = {3e9}}}};
  tree.two_nodes_rate.emplace().value = {7.5e9 / share};
  collective.tree = std::make_shared<const TreeParameters>(tree);
  return collective;
}

TEST(LinkFit, DistinguishesRingAndTreeAmongNodesBySize) {
  const CollectiveParameters truth = slow_network(1.0);
  std::vector<CollectiveRow> rows;
  for (std::int64_t bytes = 1 << 16; bytes < std::int64_t{1} << 26; bytes += bytes / 8) {
    CollectiveRow row{.kind = CollectiveKind::all_reduce, .ranks = 4, .nodes = 2, .total = Bytes{bytes}};
    row.time_us = collective_microseconds(truth, row);
    rows.push_back(row);
  }
  const CollectiveFit fit =
      fit_collectives(slow_network(1.4), rows, {.source = "made up", .prior_spread = 10.0, .small_weight = 1.0});
  const CollectiveParameters& fitted = fit.parameters;
  EXPECT_NEAR(fitted.rate.value.value, 6e9, 0.06e9);
  EXPECT_NEAR(fitted.tree->two_nodes_rate->value.value, 7.5e9, 0.08e9);
  EXPECT_NEAR(fitted.nccl->ll.rate.value.value, 3e9, 0.1e9);
  EXPECT_EQ(fitted.tree->two_nodes_rate->provenance, Provenance::fitted);
  EXPECT_EQ(fitted.tree->rate.provenance, Provenance::prior);  // No row covers more than two nodes.
  const std::string yaml = collective_yaml(fitted, 0);
  for (const char* line : {"wire: network", "tree_channels: 4", "ll128_across: false", "tree_step: 28 us"}) {
    EXPECT_NE(yaml.find(line), std::string::npos) << line;
  }
}

PeerParameters peer(Duration latency, double gigabytes) {
  PeerParameters parameters;
  parameters.latency.value = latency;
  parameters.rate.value = {1e9 * gigabytes};
  parameters.aggregate_rate = parameters.rate;
  return parameters;
}

std::vector<PeerRow> exchanged(const PeerParameters& truth, double spread) {
  Noise noise(spread);
  std::vector<PeerRow> rows;
  for (std::int64_t bytes = 8192; bytes < std::int64_t{1} << 26; bytes += bytes / 4) {
    rows.push_back({Bytes{bytes}, to_microseconds(p2p_time(truth, Bytes{bytes})) * noise.factor()});
  }
  return rows;
}

TEST(LinkFit, FindsLatencyAndRateOfExchangesWithoutExtraProtocol) {
  const PeerFit fit = fit_peer(peer(10us, 100.0), exchanged(peer(8us, 350.0), 0.02), {.source = "made up"});
  expect_found(fit.parameters.latency, to_microseconds(fit.parameters.latency.value), 8.0);
  expect_found(fit.parameters.rate, fit.parameters.rate.value.value, 350e9);
  EXPECT_FALSE(fit.parameters.small.has_value());
  EXPECT_EQ(fit.parameters.aggregate_rate.value, fit.parameters.rate.value);
}

TEST(LinkFit, ReplacesTheSmallMessagesOfTheBase) {
  PeerParameters base = peer(10us, 100.0);
  base.small = SmallMessages{
      .up_to = {.value = Bytes{std::int64_t{1} << 25}}, .latency = {.value = 90us}, .rate = {.value = {5e9}}};
  const PeerFit fit = fit_peer(base, exchanged(peer(8us, 350.0), 0.02), {.source = "made up"});
  ASSERT_TRUE(fit.parameters.small.has_value());  // A file that extends the base would otherwise keep its messages.
  EXPECT_EQ(fit.parameters.small->up_to.value, base.small->up_to.value);
  for (const std::int64_t bytes : {1'000, 1'000'000, 100'000'000}) {
    PeerParameters alone = fit.parameters;
    alone.small.reset();
    EXPECT_EQ(p2p_time(fit.parameters, Bytes{bytes}), p2p_time(alone, Bytes{bytes}));
  }
}

TEST(LinkFit, AllPeersTogetherAreNotSlowerThanOne) {
  PeerParameters base = peer(10us, 100.0);
  base.aggregate_rate.value = {200e9};
  const PeerFit faster = fit_peer(base, exchanged(peer(8us, 350.0), 0.02), {.source = "made up"});
  EXPECT_EQ(faster.parameters.aggregate_rate.value, faster.parameters.rate.value);
  const PeerFit slower = fit_peer(base, exchanged(peer(8us, 50.0), 0.02), {.source = "made up"});
  EXPECT_EQ(slower.parameters.aggregate_rate.value, BytesPerSecond{200e9});
}

TEST(LinkFit, LimitsOfRatesHaveFourDigits) {
  EXPECT_EQ(writable_up_to({450e9}), BytesPerSecond{450e9});
  EXPECT_EQ(writable_up_to({449.96e9}), BytesPerSecond{449.9e9});
  EXPECT_EQ(writable_up_to({200e9 / 3.0}), BytesPerSecond{66.66e9});
  EXPECT_EQ(writable_up_to({1.2346e12}), BytesPerSecond{1.234e12});
  EXPECT_EQ(writable_up_to({31.5e9}), BytesPerSecond{31.5e9});
  EXPECT_EQ(writable_up_to({7.875e9}), BytesPerSecond{7.875e9});
  EXPECT_EQ(writable_up_to(unlimited), unlimited);
}

TEST(LinkFit, FindsWhereExchangesChangeTheirProtocol) {
  PeerParameters truth = peer(12us, 36.0);
  truth.small = SmallMessages{
      .up_to = {.value = Bytes{std::int64_t{1} << 21}}, .latency = {.value = 18us}, .rate = {.value = {29e9}}};
  const PeerFit fit = fit_peer(peer(10us, 100.0), exchanged(truth, 0.01), {.source = "made up"});
  ASSERT_TRUE(fit.parameters.small.has_value());
  EXPECT_EQ(fit.parameters.small->up_to.value, Bytes{std::int64_t{1} << 21});
  expect_found(fit.parameters.small->rate, fit.parameters.small->rate.value.value, 29e9);
  expect_found(fit.parameters.rate, fit.parameters.rate.value.value, 36e9);
}

}  // namespace
}  // namespace commfuse
