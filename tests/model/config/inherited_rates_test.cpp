// SPDX-License-Identifier: Apache-2.0
#include "model/config/inherited_rates.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/hardware/link_rates.h"
#include "tests/own_folder.h"
#include "tests/refusal.h"

namespace commfuse {
namespace {

class InheritedRates : public ::testing::Test {
 protected:
  /// Writes a file of kind "hardware" or "cluster" that extends `base`, and returns the path of the new file.
  static std::string extending(const std::string& kind, const std::string& base, const std::string& fields,
                               const std::string& path = "machine.yaml") {
    std::ofstream(path) << fmt::format("schema: commfuse.{}/1\nname: mine\nextends: {}\n{}\n", kind, base, fields);
    return "./" + path;
  }
  static std::string rate(double gigabytes) {
    return fmt::format("{{value: {} GB/s, provenance: 'prior: a test'}}", gigabytes);
  }
  static Machine with_nominal_rate(const std::string& kind, const std::string& base, const std::string& link,
                                   double bytes_per_second) {
    return load_machine(
        extending(kind, base, fmt::format("{}: {{nominal_rate: {}}}", link, rate(1e-9 * bytes_per_second))));
  }

  OwnFolder folder_;
};

std::vector<double> rates_of(const PeerParameters& peer) {
  return {peer.rate.value.value, peer.aggregate_rate.value.value, peer.small ? peer.small->rate.value.value : 0.0};
}

std::vector<double> rates_of(const TreeProtocol& tree) {
  return {tree.rate.value.value, tree.two_nodes_rate ? tree.two_nodes_rate->value.value : 0.0};
}

std::vector<double> rates_of(const CollectiveParameters& collective) {
  std::vector<double> rates{collective.rate.value.value, collective.own_copy_rate.value.value};
  const auto add = [&](const std::vector<double>& more) { rates.insert(rates.end(), more.begin(), more.end()); };
  if (collective.nccl != nullptr) {
    const NcclKernels& nccl = *collective.nccl;
    add({nccl.tuning.hypothetical, nccl.tuning.channel_rate.value, nccl.ll.rate.value.value,
         nccl.ll128 ? nccl.ll128->rate.value.value : 0.0, nccl.nvls ? nccl.nvls->rate.value.value : 0.0});
  }
  if (collective.all_to_all != nullptr) {
    add({collective.all_to_all->small.rate.value.value, collective.all_to_all->large.rate.value.value});
  }
  if (collective.tree != nullptr) {
    add(rates_of(static_cast<const TreeProtocol&>(*collective.tree)));
    add(collective.tree->ll ? rates_of(*collective.tree->ll) : std::vector<double>{});
    add(collective.tree->ll128 ? rates_of(*collective.tree->ll128) : std::vector<double>{});
  }
  for (const AllReduceKernel framework : all_all_reduce_kernels) {
    const CustomAllReduces* kernels = collective.custom_all_reduce.get();
    if (const CustomAllReduce* kernel = kernels == nullptr ? nullptr : kernels_of(*kernels, framework)) {
      add({kernel->one_shot_rate.value.value, kernel->two_shot_rate.value.value});
    }
  }
  return rates;
}

void expect_equal(const std::vector<double>& rates, const std::vector<double>& expected, const std::string& where) {
  ASSERT_EQ(rates.size(), expected.size()) << where;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    EXPECT_NEAR(rates[i], expected[i], 1e-9 * expected[i]) << where << ", rate " << i;
  }
}

void expect_equal_links(const Machine& machine, const Machine& expected, const std::string& where) {
  const int last = total_gpus(machine) - 1;
  for (int gpus = 1; gpus <= machine.gpus_per_node; ++gpus) {
    const std::string group = fmt::format("{}, {} GPUs of a node", where, gpus);
    expect_equal(rates_of(collective_over(machine, 0, gpus)), rates_of(collective_over(expected, 0, gpus)), group);
    if (machine.network) {
      expect_equal(rates_of(collective_across(machine, gpus)), rates_of(collective_across(expected, gpus)),
                   group + ", across nodes");
    }
  }
  if (last > 0) {
    expect_equal(rates_of(peer_between(machine, 0, last)), rates_of(peer_between(expected, 0, last)), where);
    const double route = route_between(*expected.topology, 0, last)->rate.value;
    EXPECT_NEAR(route_between(*machine.topology, 0, last)->rate.value, route, 1e-9 * route) << where;
  }
}

TEST_F(InheritedRates, ANewNominalRateOfALinkActsLikeTheSetting) {
  for (const std::string& name : known_names(Catalogue::nodes)) {
    const Machine base = load_machine(name);
    for (const double factor : {0.5, 2.0}) {
      const Machine machine = with_nominal_rate("hardware", name, "link", factor * base.link.nominal_rate.value.value);
      expect_equal_links(machine, with_link_rates(base, {.node = factor}), fmt::format("{} x {}", name, factor));
    }
  }
}

TEST_F(InheritedRates, ANewNominalRateOfANetworkActsLikeTheSetting) {
  for (const std::string& name : known_names(Catalogue::hardware)) {
    const Machine base = load_machine(name);
    if (!base.network) {
      continue;
    }
    for (const double factor : {0.5, 2.0}) {
      const Machine machine =
          with_nominal_rate("cluster", name, "network", factor * base.network->nominal_rate.value.value);
      expect_equal_links(machine, with_link_rates(base, {.network = factor}), fmt::format("{} x {}", name, factor));
    }
  }
}

TEST_F(InheritedRates, ScaledRatesArePriorsAndUndoneByTheSetting) {
  const Machine base = load_machine("h100-sxm");
  const Machine fast = with_nominal_rate("hardware", "h100-sxm", "link", 900e9);
  EXPECT_EQ(fast.link.collective.rate.provenance, Provenance::prior);
  EXPECT_EQ(fast.link.collective.rate.source, "");
  EXPECT_EQ(fast.link.collective.rate.standard_error, base.link.collective.rate.standard_error);
  expect_equal_links(with_link_rates(fast, {.node = 0.5}), base, "h100-sxm");
}

TEST_F(InheritedRates, RatesThatTheFileStatesStay) {
  const Machine base = load_machine("h100-sxm");
  const Machine machine = load_machine(extending(
      "hardware", "h100-sxm",
      fmt::format("link:\n  nominal_rate: {}\n  peer: {{rate: {}}}\n  collective: {{nccl: {{ll: {{rate: {}}}}}}}",
                  rate(900), rate(500), rate(123))));
  EXPECT_EQ(machine.link.peer.rate.value, BytesPerSecond{500e9});
  EXPECT_EQ(machine.link.peer.aggregate_rate.value, BytesPerSecond{500e9});
  EXPECT_EQ(machine.link.peer.rate.source, "a test");
  EXPECT_EQ(machine.link.collective.nccl->ll.rate.value, BytesPerSecond{123e9});
  EXPECT_EQ(machine.link.collective.rate.value.value, 2.0 * base.link.collective.rate.value.value);
  EXPECT_EQ(machine.link.collective.nccl->tuning.hypothetical, 2.0);
}

TEST_F(InheritedRates, ARateScalesFromTheLinkOfTheFileThatStatesIt) {
  const Machine base = load_machine("h100-sxm");
  (void)extending("hardware", "h100-sxm",
                  fmt::format("link: {{nominal_rate: {}, peer: {{rate: {}}}}}", rate(900), rate(500)), "middle.yaml");
  const Machine same = load_machine(extending("hardware", "middle.yaml", ""));
  EXPECT_EQ(same.link.peer.rate.value, BytesPerSecond{500e9});
  EXPECT_EQ(same.link.collective.rate.value.value, 2.0 * base.link.collective.rate.value.value);
  const Machine faster = load_machine(extending("hardware", "middle.yaml", "link: {nominal_rate: " + rate(1800) + "}"));
  EXPECT_EQ(faster.link.peer.rate.value, BytesPerSecond{1000e9});
  EXPECT_EQ(faster.link.collective.rate.value.value, 4.0 * base.link.collective.rate.value.value);
}

TEST_F(InheritedRates, FewerNicsSlowCollectivesButNotExchanges) {
  const Machine base = load_machine("dgx-h100-x2");
  const Machine machine = load_machine(extending("cluster", "dgx-h100-x2", "network: {nics_per_node: 4}"));
  EXPECT_EQ(machine.network->peer.rate.value, base.network->peer.rate.value);
  EXPECT_EQ(collective_across(machine, 8).rate.value, BytesPerSecond{185e9});
  EXPECT_EQ(collective_across(machine, 4).rate.value, BytesPerSecond{92.5e9});
  EXPECT_EQ(collective_across(machine, 1).rate.value, collective_across(base, 1).rate.value);
}

/// The A800's file states the channels that NCCL finds, so NCCL's estimates are those of the A800's links.
TEST_F(InheritedRates, AMachineOfTheCatalogueWithOtherLinksKeepsItsRates) {
  const CollectiveParameters collective = load_machine("a800-sxm").link.collective;
  EXPECT_EQ(collective.rate.value, BytesPerSecond{150.4e9});
  EXPECT_EQ(collective.nccl->tuning.hypothetical, 1.0);
  EXPECT_EQ(collective.nccl->tuning.channel_rate, BytesPerSecond{20e9});
  EXPECT_EQ(collective.own_copy_rate.value, load_machine("a100-sxm-80").link.collective.own_copy_rate.value);
}

TEST_F(InheritedRates, ANominalRateFarFromThatOfTheBaseIsRefused) {
  EXPECT_EQ(test::refusal_of([] { (void)with_nominal_rate("hardware", "h100-sxm", "link", 1e6); }),
            "./machine.yaml:4:22: 1 MB/s differs from the 450 GB/s of the extended file by a factor of more than 1000; "
            "correct it, or extend a file with similar links");
}

TEST_F(InheritedRates, ALinkIsAnUnknownKeyOfAClusterWithATopology) {
  const std::string topology = "topology: {kind: nvswitch, hop_latency: {value: 300 ns, provenance: 'prior: a test'}}";
  const std::string path = extending("cluster", "dgx-h100-x2", "link: {nominal_rate: " + rate(900) + "}\n" + topology);
  EXPECT_NE(test::refusal_of([&] { load_machine(path); }).find("unknown key 'link'"), std::string::npos);
}

TEST_F(InheritedRates, AnInheritedRateBeyondTheWiresIsRefusedByName) {
  (void)extending("hardware", "h100-sxm", "gpus_per_node: 4", "four.yaml");
  const std::string path = extending("cluster", "dgx-h100-x2", "hardware: four.yaml");
  const std::string message = test::refusal_of([&] { load_machine(path); });
  EXPECT_EQ(message.substr(0, message.find('\n')),
            "./machine.yaml:3:10: network.collective.rate (370 GB/s, inherited from " +
                find_config(Catalogue::hardware, "dgx-h100-x2").string() +
                ") exceeds the wires: the 4 NICs that a node's GPUs use carry 200 GB/s; state a lower rate in this "
                "file, or correct the rate of the wires");
}

}  // namespace
}  // namespace commfuse
