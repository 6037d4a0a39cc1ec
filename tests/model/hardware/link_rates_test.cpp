// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/link_rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "tests/model/hardware/made_links.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

using test::gigabytes;

/// Returns a link with a nominal rate from a data sheet; a rank copies its own share at 100 GB/s.
Link fitted_link(double peer_rate, double collective_rate) {
  Link result = test::link(peer_rate, collective_rate);
  result.nominal_rate = {.value = gigabytes(peer_rate), .provenance = Provenance::published, .source = "a data sheet"};
  result.peer.rate = {.value = gigabytes(peer_rate), .standard_error = 0.1, .provenance = Provenance::fitted};
  result.peer.aggregate_rate.value = gigabytes(peer_rate);
  result.collective.own_copy_rate.value = gigabytes(100);
  return result;
}

Machine two_fitted_nodes() {
  return {.name = "two", .link = fitted_link(100, 200), .gpus_per_node = 4, .nodes = 2, .network = fitted_link(10, 40)};
}

TEST(WithLinkRates, KeepsLatenciesAndOwnCopies) {
  // Two GPUs exchange 1 MB in 5 + 10 us, and in 5 + 5 us on a link twice as fast. An all-gather of 8 MB by four takes
  // 10 us of latency, 30 us for 6 MB on the wire (15 us on the faster link) and 20 us to copy the rank's own 2 MB.
  const Machine machine = two_fitted_nodes();
  const Machine fast = with_link_rates(machine, {.node = 2.0});
  EXPECT_EQ(p2p_time(peer_between(machine, 0, 1), Bytes{1'000'000}), Duration{15us});
  EXPECT_EQ(p2p_time(peer_between(fast, 0, 1), Bytes{1'000'000}), Duration{10us});
  EXPECT_EQ(all_gather_time(collective_over(machine, 0, 4), 4, Bytes{8'000'000}), Duration{60us});
  EXPECT_EQ(all_gather_time(collective_over(fast, 0, 4), 4, Bytes{8'000'000}), Duration{45us});
}

TEST(WithLinkRates, LinksInsideANodeAndBetweenNodesChangeSeparately) {
  const Machine slow = with_link_rates(two_fitted_nodes(), {.network = 0.5});
  EXPECT_EQ(peer_between(slow, 0, 1).rate.value, gigabytes(100));
  EXPECT_EQ(peer_between(slow, 0, 4).rate.value, gigabytes(5));
  EXPECT_EQ(collective_over(slow, 0, 8).rate.value, gigabytes(20));
  EXPECT_EQ(collective_over(slow, 0, 4).rate.value, gigabytes(200));
  EXPECT_EQ(slow.network->nominal_rate.value, gigabytes(5));
}

TEST(WithLinkRates, ACollectiveAcrossNodesIsNoFasterThanTheLinksInside) {
  // Collectives reach 200 GB/s inside a node and 40 across nodes. With links inside at a tenth of their rate, 20 remain
  // across nodes; a network ten times as fast is limited to 200.
  const Machine machine = two_fitted_nodes();
  const auto across = [&](LinkRates rates) {
    return collective_over(with_link_rates(machine, rates), 0, 8).rate.value;
  };
  EXPECT_EQ(across({.node = 0.5}), gigabytes(40));
  EXPECT_EQ(across({.node = 0.1}), gigabytes(20));
  EXPECT_EQ(across({.network = 10.0}), gigabytes(200));
  EXPECT_EQ(across({.node = 10.0, .network = 10.0}), gigabytes(400));
  EXPECT_EQ(with_link_rates(machine, {.node = 0.1}).network->peer.rate.provenance, Provenance::fitted);
}

TEST(WithLinkRates, AHypotheticalRateIsAPriorWithTheSameError) {
  const Machine machine = two_fitted_nodes();
  const Parameter<BytesPerSecond> rate = with_link_rates(machine, {.node = 3.0}).link.peer.rate;
  EXPECT_EQ(rate.provenance, Provenance::prior);
  EXPECT_EQ(rate.standard_error, 0.1);
  EXPECT_EQ(with_link_rates(machine, {.network = 3.0}).link.peer.rate.provenance, Provenance::fitted);
  EXPECT_EQ(with_link_rates(machine, {}).link.nominal_rate.source, "a data sheet");
}

TEST(WithLinkRates, ScalesEveryPairGroupAndWireOfAPcieTree) {
  const Machine machine = load_machine("pcie-rtx-pro-6000");
  const Machine half = with_link_rates(machine, {.node = 0.5});
  ASSERT_NE(machine.pair_peers, nullptr);
  for (int other = 1; other < machine.gpus_per_node; ++other) {
    EXPECT_EQ(peer_between(half, 0, other).rate.value.value, 0.5 * peer_between(machine, 0, other).rate.value.value);
    EXPECT_EQ(collective_over(half, 0, other + 1).rate.value.value,
              0.5 * collective_over(machine, 0, other + 1).rate.value.value);
    const Route route = *route_between(*machine.topology, 0, other);
    const Route slower = *route_between(*half.topology, 0, other);
    EXPECT_EQ(slower.rate.value, 0.5 * route.rate.value);
    EXPECT_EQ(slower.latency, route.latency);
  }
}

TEST(WithLinkRates, WiresOfTheNetworkBeginAtTheNic) {
  const Machine machine = load_machine("dgx-h100-x2");
  const Machine other = with_link_rates(machine, {.node = 4.0, .network = 0.5});
  const auto rate = [](const Machine& on, int a, int b) { return route_between(*on.topology, a, b)->rate.value; };
  EXPECT_EQ(rate(other, 0, 1), 4.0 * rate(machine, 0, 1));
  EXPECT_EQ(rate(other, 0, 8), 0.5 * rate(machine, 0, 8));
}

}  // namespace
}  // namespace commfuse
