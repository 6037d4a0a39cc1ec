// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/cost/communication.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::configs_folder;
namespace fs = std::filesystem;

class LoadMachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("commfuse-machine-" + std::to_string(getpid()));
    fs::create_directories(folder_ / "below");
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Writes the catalogue file `source` as `name`, with `from` replaced by `to`, and returns the path.
  [[nodiscard]] std::string changed(const std::string& source, const std::string& from, const std::string& to,
                                    const std::string& name = "machine.yaml") const {
    std::ifstream in(configs_folder + "/" + source);
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

  /// Returns the message about the changed file, without the leading folder.
  [[nodiscard]] std::string refusal(const std::string& source, const std::string& from, const std::string& to) const {
    return refusal(changed(source, from, to));
  }
  [[nodiscard]] std::string refusal(const std::string& path) const {
    try {
      load_machine(path);
    } catch (const ConfigError& error) {
      std::string message = error.what();
      const std::string prefix = folder_.string() + "/";
      for (std::size_t at = message.find(prefix); at != std::string::npos; at = message.find(prefix)) {
        message.erase(at, prefix.size());
      }
      return message;
    }
    return "accepted";
  }

  [[nodiscard]] static std::string read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  /// Returns the number of the first line of a catalogue file that contains this text.
  [[nodiscard]] static long line_of(const std::string& source, const std::string& text) {
    const std::string content = read(configs_folder + "/" + source);
    return 1 + std::count(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(content.find(text)), '\n');
  }

  fs::path folder_;
};

TEST_F(LoadMachineTest, EveryMachineOfTheCatalogueIsConnected) {
  for (const std::string& name : known_names(Catalogue::hardware)) {
    const Machine machine = load_machine(name);
    ASSERT_NE(machine.topology, nullptr) << name;
    EXPECT_EQ(machine.topology->gpus, total_gpus(machine)) << name;
    EXPECT_EQ(unreachable_gpu(*machine.topology), std::nullopt) << name;
    EXPECT_EQ(machine.nodes > 1, machine.network.has_value()) << name;
    const int last = total_gpus(machine) - 1;
    const Route route = *route_between(*machine.topology, 0, last);
    EXPECT_LE(peer_between(machine, 0, last).rate.value.value, route.rate.value) << name;
  }
}

TEST_F(LoadMachineTest, AFitHasItsResidualNextToItsParameters) {
  const std::string path =
      changed("hardware/h100-pcie.yaml",
              "    rate:", "    fit: {residual: 0.07, seen: {bytes: {least: 8, most: 1048576}}}\n    rate:");
  const FitScope fit = load_machine(path).link.peer.fit;
  EXPECT_EQ(fit.residual, 0.07);
  EXPECT_EQ(fit.range(FitSize::bytes), (SeenRange{8, 1048576}));
  EXPECT_EQ(fit.range(FitSize::ranks), std::nullopt);
  EXPECT_EQ(load_machine("h100-pcie").link.peer.fit, FitScope{});  // This machine has no fit.
}

TEST_F(LoadMachineTest, AMisreadEndOfAMeasuredRangeIsOneMistake) {
  const std::string source = "hardware/h100-pcie.yaml";
  const std::string place = "machine.yaml:" + std::to_string(line_of(source, "    rate:"));
  const auto refusal_of_range = [&](const std::string& range) {
    return refusal(source, "    rate:", "    fit: {residual: 0.07, seen: {bytes: {" + range + "}}}\n    rate:");
  };
  EXPECT_EQ(refusal_of_range("least: 8, most: x"),
            place + ":58: 'x' is not a whole number; write one, as in \"most: 8\"");
  EXPECT_EQ(refusal_of_range("least: 8, most: 4"),
            place + ":49: least, 8, is above most, 4; set least to the smallest measured size");
}

TEST_F(LoadMachineTest, EachLimitScalesTheResidual) {
  const std::string path =
      changed("hardware/h100-pcie.yaml",
              "    rate:", "    fit: {residual: 0.08, by_limit: {latency: 0.5, bandwidth: 20}}\n    rate:");
  const FitScope fit = load_machine(path).link.peer.fit;
  EXPECT_EQ(fit.by_limit, (ByLimit{0.5, 20.0, 1.0, 1.0}));
  EXPECT_EQ(fit.residual_at(Limit::latency), 0.04);
  EXPECT_EQ(fit.residual_at(Limit::bandwidth), 1.0);  // The residual is at most the whole time.
  EXPECT_EQ(fit.residual_at(Limit::compute), 0.08);
}

TEST_F(LoadMachineTest, RefusesALimitThatNoOpHas) {
  const std::string source = "hardware/h100-pcie.yaml";
  const std::string place = "machine.yaml:" + std::to_string(line_of(source, "    rate:"));
  EXPECT_EQ(refusal(source, "    rate:", "    fit: {residual: 0.08, by_limit: {launch: 0.5}}\n    rate:"),
            place + ":38: unknown key 'launch'; known keys: latency, bandwidth, few_tiles, compute");
  EXPECT_EQ(refusal(source, "    rate:", "    fit: {residual: 0.08, by_limit: {latency: -1}}\n    rate:"),
            place + ":47: 'latency' is -1; choose 0 to 200");
}

TEST_F(LoadMachineTest, ClustersAreFoundAfterHardwareAndAreNotNodes) {
  EXPECT_EQ(find_config(Catalogue::hardware, "h100-sxm"), fs::path(configs_folder + "/hardware/h100-sxm.yaml"));
  EXPECT_EQ(find_config(Catalogue::hardware, "dgx-h100-x2"), fs::path(configs_folder + "/clusters/dgx-h100-x2.yaml"));
  EXPECT_THROW((void)find_config(Catalogue::nodes, "dgx-h100-x2"), ConfigError);
}

TEST_F(LoadMachineTest, AClusterHasNodesAndANetwork) {
  const Machine node = load_machine("h100-sxm");
  const Machine machine = load_machine("dgx-h100-x2");
  EXPECT_EQ(machine.name, "dgx-h100-x2");
  EXPECT_EQ(machine.nodes, 2);
  EXPECT_EQ(total_gpus(machine), 16);
  EXPECT_EQ(machine.accelerator.name, node.accelerator.name);
  EXPECT_EQ(peer_between(machine, 8, 15).rate.value, node.link.peer.rate.value);
  EXPECT_EQ(peer_between(machine, 7, 8).rate.value, BytesPerSecond{35.8e9});
  EXPECT_EQ(peer_between(machine, 7, 8).rate.provenance, Provenance::fitted);
  EXPECT_EQ(&collective_over(machine, 0, 16), &machine.network->collective);
  // Sixteen GPUs, two crossbars, sixteen NICs, one fabric.
  EXPECT_EQ(machine.topology->vertices.size(), 35u);
  EXPECT_EQ(route_between(*machine.topology, 7, 8)->rate, BytesPerSecond{50e9});
}

TEST_F(LoadMachineTest, OnAMeshAPeerHasOneWireAndACollectiveMore) {
  const Machine machine = load_machine("ascend-910b-mesh");
  EXPECT_EQ(peer_between(machine, 0, 1).rate.value, BytesPerSecond{18.5e9});
  EXPECT_EQ(route_between(*machine.topology, 0, 1)->hops(), 1);
  EXPECT_EQ(route_between(*machine.topology, 0, 1)->rate, BytesPerSecond{28e9});
  EXPECT_GT(collective_over(machine, 0, 8).rate.value.value, 28e9);
}

TEST_F(LoadMachineTest, ThePcieBoxHasNearMiddleAndFarPairs) {
  const Machine machine = load_machine("pcie-rtx-pro-6000");
  EXPECT_EQ(&peer_between(machine, 0, 1), &peer_between(machine, 6, 7));
  EXPECT_LT(peer_between(machine, 1, 2).rate.value.value, peer_between(machine, 0, 1).rate.value.value);
  EXPECT_LT(peer_between(machine, 1, 2).latency.value, peer_between(machine, 3, 4).latency.value);
}

TEST_F(LoadMachineTest, AllPeersTogetherGetTheStatedRateOrTheRateOfOnePeer) {
  const PeerParameters mesh = load_machine("ascend-910b-mesh").link.peer;
  EXPECT_EQ(mesh.aggregate_rate.value.value, 78e9);
  EXPECT_EQ(mesh.aggregate_rate.provenance, Provenance::prior);
  const PeerParameters port = load_machine("h100-sxm").link.peer;
  EXPECT_EQ(port.aggregate_rate.value.value, port.rate.value.value);
  EXPECT_EQ(port.aggregate_rate.provenance, port.rate.provenance);
}

TEST_F(LoadMachineTest, AFileWithoutATopologyHasAnNvswitch) {
  const std::string path = changed("hardware/h100-sxm.yaml", "\ntopology:\n  kind: nvswitch\n  hop_latency:", "\n#");
  const Machine machine = load_machine(path);
  EXPECT_EQ(route_between(*machine.topology, 0, 5)->hops(), 2);
  EXPECT_EQ(machine.pair_peers, nullptr);
}

TEST_F(LoadMachineTest, TheLinkToTheHostIsReadAndInherited) {
  constexpr HostLink generation_5{.generation = 5, .lanes = 16};
  EXPECT_EQ(load_machine("h100-sxm").plan->host_link, generation_5);
  EXPECT_EQ(load_machine("h100-sxm-vllm").plan->host_link, generation_5);  // extends the base
  EXPECT_EQ(load_machine("dgx-h100-x2").plan->host_link, generation_5);    // has nodes of the base
  EXPECT_EQ(load_machine("gb200").plan->host_link, HostLink{});
  const std::string source = "hardware/h100-sxm.yaml";
  EXPECT_EQ(load_machine(changed(source, "{value: PCIe 5 x16", "{value: PCIe 3 x8")).plan->host_link,
            (HostLink{.generation = 3, .lanes = 8}));
  EXPECT_EQ(refusal(source, "{value: PCIe 5 x16", "{value: PCIe 5"),
            "machine.yaml:" + std::to_string(line_of(source, "host_link:")) +
                ":12: 'PCIe 5' is not a link to the host; write generation and lanes as in PCIe 5 x16, or remove "
                "host_link if it is not PCIe");
}

TEST_F(LoadMachineTest, ImpossibleWiresAreRefusedWithTheirPlace) {
  const std::string mesh = "hardware/ascend-910b-mesh.yaml";
  const std::string box = "hardware/pcie-rtx-pro-6000.yaml";
  const auto place = [&](const std::string& line) { return "machine.yaml:" + std::to_string(line_of(box, line)); };
  EXPECT_EQ(refusal(mesh, "kind: full_mesh", "kind: torus"),
            "machine.yaml:74:9: unknown topology 'torus'; choose nvswitch, full_mesh, pcie_tree or ring");
  EXPECT_EQ(
      refusal(mesh, "    rate: {value: 18.5 GB/s", "    rate: {value: 78 GB/s"),
      "machine.yaml:55:11: link.peer.rate (78 GB/s) exceeds one wire of the mesh, 28 GB/s (nominal_rate over 7 peers); "
      "give the rate to a single peer");
  EXPECT_EQ(
      refusal(mesh, "aggregate_rate: {value: 78 GB/s", "aggregate_rate: {value: 10 GB/s"),
      "machine.yaml:57:21: 10 GB/s is below the rate to one peer, 18.5 GB/s; give the rate to all peers together");
  EXPECT_EQ(refusal(mesh, "gpus_per_node: 8", "gpus_per_node: 65"),
            "machine.yaml:6:16: 65 GPUs are too many for a full_mesh; choose 1 to 64");
  std::string pair = read(changed(mesh, "    rate: {value: 18.5 GB/s", "    rate: {value: 197 GB/s"));
  pair.replace(pair.find("gpus_per_node: 8"), 16, "gpus_per_node: 2");
  std::ofstream(folder_ / "machine.yaml") << pair;
  EXPECT_EQ(refusal((folder_ / "machine.yaml").string()),
            "machine.yaml:55:11: link.peer.rate (197 GB/s) exceeds one wire of the mesh, 196 GB/s (nominal_rate over 1 "
            "peer); "
            "give the rate to a single peer");
  EXPECT_EQ(refusal(box, "  root_rate:", "  #"),
            place("  kind: pcie_tree") +
                ":3: GPU 4 cannot be reached from GPU 0; give root_rate, or put all bridges under one root");
  EXPECT_EQ(refusal(box, "bridge_rate: {value: 48.2 GB/s", "bridge_rate: {value: -48.2 GB/s"),
            place("  bridge_rate") +
                ":24: '-48.2 GB/s' is not a bandwidth; write a number and a unit (GB/s, Gbit/s), as in \"450 GB/s\"");
  EXPECT_EQ(refusal(box, "bridge_rate: {value: 48.2 GB/s", "bridge_rate: {value: 0 GB/s"),
            place("  bridge_rate") + ":24: 'value' is 0 B/s; choose a bandwidth above 0");
  EXPECT_EQ(refusal(box, "gpus_per_bridge: 2", "gpus_per_bridge: 0"),
            place("  gpus_per_bridge") + ":20: 'gpus_per_bridge' is 0; choose 1 to 64");
}

TEST_F(LoadMachineTest, OmittedKernelsHaveTheEstimatesOfNccl) {
  const std::string h100 = "hardware/h100-sxm.yaml";
  std::string text = read(configs_folder + "/" + h100);
  const std::size_t from = text.find("    base_latency: ", text.find("  collective:"));
  const std::size_t to = text.find("    ctas: ", from);
  text.erase(from, to - from);
  const std::size_t kernels = text.find("      ll:\n");
  text.erase(kernels, text.find("\n\n", kernels) - kernels);
  std::ofstream(folder_ / "machine.yaml") << text;
  const CollectiveParameters prior = load_machine((folder_ / "machine.yaml").string()).link.collective;
  EXPECT_EQ(prior.base_latency.value, Duration{8'400'000});
  EXPECT_EQ(prior.base_latency.provenance, Provenance::prior);
  EXPECT_EQ(prior.base_latency.source, "NCCL 2.28.9, src/graph/tuning.cc");
  EXPECT_EQ(prior.rate.value, BytesPerSecond{360e9});
  EXPECT_EQ(prior.nccl->ll.step_latency.value, Duration{600'000});
  EXPECT_DOUBLE_EQ(prior.nccl->ll128->rate.value.value, 0.92 * 360e9);
  EXPECT_DOUBLE_EQ(prior.nccl->nvls->rate.value.value, 0.85 * 7 / 8 * 360e9);
  EXPECT_EQ(prior.all_to_all, nullptr);
  EXPECT_EQ(load_machine("h100-sxm").link.collective.nccl->ll.base_latency.provenance, Provenance::fitted);
}

TEST_F(LoadMachineTest, MistakesAboutNcclAreReportedWithTheirPlace) {
  const std::string h100 = "hardware/h100-sxm.yaml";
  const auto place = [&](const std::string& line, int column) {
    return "machine.yaml:" + std::to_string(line_of(h100, line)) + ":" + std::to_string(column) + ": ";
  };
  EXPECT_EQ(refusal(h100, "generation: hopper", "generation: tesla"),
            place("generation: hopper", 19) +
                "'tesla' is not known to NCCL's tuner; choose volta, ampere, hopper or blackwell");
  EXPECT_EQ(refusal(h100, "wire: nvlink", "wire: copper"),
            place("wire: nvlink", 13) +
                "'copper' is not known to NCCL's tuner; choose nvlink, pcie, or network between nodes");
  EXPECT_EQ(refusal(h100, "channels: 12", "channels: 65"),
            place("channels: 12", 17) + "'channels' is 65; choose 1 to 64");
  EXPECT_EQ(refusal("clusters/dgx-h100-x2.yaml", "up_to: {value: 2 MiB", "up_to: {value: 2 us").substr(0, 15),
            "machine.yaml:" + std::to_string(line_of("clusters/dgx-h100-x2.yaml", "up_to: {value")));
}

TEST_F(LoadMachineTest, ANetworkHasTreesAndSmallMessages) {
  const Machine machine = load_machine("dgx-h100-x2");
  ASSERT_NE(machine.network->collective.tree, nullptr);
  EXPECT_GT(machine.network->collective.tree->two_nodes_rate->value.value,
            machine.network->collective.tree->rate.value.value);
  ASSERT_TRUE(machine.network->peer.small.has_value());
  EXPECT_EQ(machine.network->peer.small->up_to.value, Bytes{std::int64_t{1} << 21});
}

TEST_F(LoadMachineTest, GroupsOfFewerGpusPerNodeAreStatedOrShareTheNics) {
  const Machine stated = load_machine("a100-100g-x2");
  EXPECT_EQ(collective_across(stated, 1).rate.provenance, Provenance::fitted);
  EXPECT_GT(collective_across(stated, 4).tree->two_nodes_rate->value.value,
            collective_across(stated, 2).tree->two_nodes_rate->value.value);
  EXPECT_EQ(&collective_across(stated, 8), &stated.network->collective);
  const Machine derived = load_machine("dgx-h100-x2");
  const CollectiveParameters& whole = derived.network->collective;
  EXPECT_EQ(collective_across(derived, 2).rate.value.value, whole.rate.value.value / 4);
  EXPECT_EQ(collective_across(derived, 2).tree->two_nodes_rate->value.value,
            whole.tree->two_nodes_rate->value.value / 4);
  EXPECT_EQ(collective_across(derived, 2).tree->two_nodes_rate->provenance, Provenance::prior);
  EXPECT_EQ(collective_across(derived, 2).tree->base_latency.value, whole.tree->base_latency.value);
}

TEST_F(LoadMachineTest, MistakesAboutKernelsAmongNodesAreReportedWithPlace) {
  const std::string cluster = "clusters/a100-100g-x2.yaml";
  const auto refused = [&](const std::string& text, const std::string& with) {
    const std::string message = refusal(cluster, text, with);
    return message.substr(message.find(' ') + 1);
  };
  EXPECT_EQ(refused("    1:\n", "    8:\n"),
            "a100-100g-x2 has 8 GPUs per node, so a group has fewer; give the values of all GPUs as collective");
  EXPECT_EQ(refused("    1:\n", "    one:\n"), "'one' is not a number of GPUs per node; write one, as in 4");
  EXPECT_EQ(refused("    1:\n", "    01:\n"), "'01' is not a number of GPUs per node; write one, as in 4");
  EXPECT_EQ(refused("      ll128_across: false", "      ll128_across: perhaps").substr(0, 9), "'perhaps'");
}

TEST_F(LoadMachineTest, ThePromisedMachinesExist) {
  const std::vector<std::string> promised{
      "a100-sxm-40", "a100-sxm-80", "a100-pcie",         "h100-sxm", "h100-pcie", "h800-sxm",
      "h20-sxm",     "h200-sxm",    "b200-sxm",          "gb200",    "mi300x",    "l40s-pcie",
      "tpu-v5p",     "gh200",       "pcie-rtx-pro-6000", "b300-sxm", "h100-nvl",  "ascend-910b-mesh"};
  for (const std::string& name : promised) {
    const Machine machine = load_machine(name);
    EXPECT_EQ(machine.name, name);
    EXPECT_TRUE(machine.accelerator.supports(DType::bf16)) << name;
    EXPECT_GT(all_reduce_time(collective_over(machine, 0, 2), 2, Bytes{1 << 20}), Duration{1}) << name;
  }
}

class LoadMachineFromWiresTest : public LoadMachineTest {
 protected:
  void SetUp() override {
    LoadMachineTest::SetUp();
    fs::copy_file(topologies + "/nccl_nvswitch.xml", folder_ / "dgx.xml");
    fs::copy_file(topologies + "/smi_pcie.txt", folder_ / "box.txt");
  }

  /// Writes the H100 machine with this topology and these rates, and returns the path.
  [[nodiscard]] std::string with_topology(const std::string& lines, const std::string& gpus = "8",
                                          const std::string& rate = "361 GB/s",
                                          const std::string& nominal = "450 GB/s") const {
    std::string text = read(changed("hardware/h100-sxm.yaml", "gpus_per_node: 8", "gpus_per_node: " + gpus));
    text.replace(text.find("361 GB/s"), 8, rate);
    text.replace(text.find("450 GB/s"), 8, nominal);
    if (lines.find("box.txt") != std::string::npos) {
      text.replace(text.find("375.2 GB/s"), 10, "16 GB/s");  // root_rate permits this rate.
    }
    text.replace(text.find("  kind: nvswitch\n"), 17, lines);
    return write(text);
  }
  /// Returns a place such as "machine.yaml:94", `below` lines below the line with the kind of the H100's topology.
  [[nodiscard]] std::string place(int below) const {
    return "machine.yaml:" + std::to_string(line_of("hardware/h100-sxm.yaml", "  kind: nvswitch\n") + below);
  }
  [[nodiscard]] std::string write(const std::string& text) const {
    std::ofstream(folder_ / "machine.yaml") << text;
    return (folder_ / "machine.yaml").string();
  }

  const std::string topologies = std::string(COMMFUSE_SOURCE_DIR) + "/tests/model/hardware/topologies";
  const std::string pcie_rates =
      "  pcie_rate: {value: 50 GB/s, provenance: \"prior: a test\"}\n"
      "  root_rate: {value: 20 GB/s, provenance: \"prior: a test\"}\n";
};

TEST_F(LoadMachineFromWiresTest, AnNcclFileDescribesTheNode) {
  const Machine machine = load_machine(with_topology("  file: dgx.xml\n"));
  EXPECT_EQ(machine.topology->gpus, 8);
  EXPECT_EQ(route_between(*machine.topology, 0, 7)->rate, BytesPerSecond{450e9});
  EXPECT_EQ(machine.pair_peers, nullptr);
  EXPECT_EQ(peer_between(machine, 0, 7).rate.value, BytesPerSecond{361e9});
}

TEST_F(LoadMachineFromWiresTest, AnExtendingMachineHasItsOwnWires) {
  const auto extending = [&](const std::string& base, const std::string& topology) {
    return "schema: commfuse.hardware/1\nname: mine\nextends: " + base + "\ntopology: " + topology + "\n";
  };
  const Machine of_file = load_machine(write(extending("h100-sxm", "{file: dgx.xml}")));
  EXPECT_EQ(route_between(*of_file.topology, 0, 7)->rate, BytesPerSecond{450e9});
  const Machine of_kind = load_machine(write(extending("pcie-rtx-pro-6000", "{kind: nvswitch}")));
  EXPECT_EQ(route_between(*of_kind.topology, 0, 7)->hops(), 2);  // The base's bridges no longer exist.
  std::ofstream(folder_ / "base.yaml") << extending("h100-sxm", "{file: dgx.xml}");
  EXPECT_EQ(load_machine(write(extending("base.yaml", "{kind: nvswitch}"))).topology->gpus, 8);
  EXPECT_EQ(refusal(write(extending("base.yaml", "{}"))),
            "machine.yaml:3:10: 'base.yaml' reads its wires from a file, which is not inherited; give a topology here");
}

TEST_F(LoadMachineFromWiresTest, PairsOfAnNvidiaSmiTableDiffer) {
  const Machine machine = load_machine(with_topology("  file: box.txt\n" + pcie_rates, "6", "40 GB/s"));
  EXPECT_EQ(peer_between(machine, 0, 1).rate.value, BytesPerSecond{40e9});
  EXPECT_EQ(peer_between(machine, 0, 4).rate.value, BytesPerSecond{16e9});  // 40 GB/s x root_rate / pcie_rate
  EXPECT_GT(peer_between(machine, 0, 4).latency.value, peer_between(machine, 0, 3).latency.value);
}

TEST_F(LoadMachineFromWiresTest, AClusterTakesTheWiresOfItsNodesFromAFile) {
  std::string text = read(configs_folder + "/clusters/dgx-h100-x2.yaml");
  text += "\ntopology: {file: dgx.xml, hop_latency: {value: 300 ns, provenance: \"prior: a test\"}}\n";
  const Machine machine = load_machine(write(text));
  EXPECT_EQ(total_gpus(machine), 16);
  EXPECT_EQ(route_between(*machine.topology, 8, 15)->rate, BytesPerSecond{450e9});
  EXPECT_EQ(route_between(*machine.topology, 0, 8)->rate, BytesPerSecond{50e9});
  text.replace(text.find("nics_per_node: 8"), 16, "nics_per_node: 4");
  EXPECT_EQ(refusal(write(text)), "machine.yaml:10:18: the GPUs of dgx.xml use 8 NICs, not 4; write nics_per_node: 8");
}

TEST_F(LoadMachineFromWiresTest, ASingleNicIsNotPlural) {
  (void)changed("hardware/h100-sxm.yaml", "gpus_per_node: 8", "gpus_per_node: 2", "pair.yaml");
  std::ofstream(folder_ / "pair.txt") << "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV18\tPIX\nGPU1\tNV18\t X \tPIX\n"
                                         "NIC0\tPIX\tPIX\t X \n";
  std::string text = read(changed("clusters/dgx-h100-x2.yaml", "hardware: h100-sxm", "hardware: pair.yaml"));
  text += "\ntopology:\n  file: pair.txt\n  hop_latency: {value: 300 ns, provenance: \"prior: a test\"}\n" +
          pcie_rates + "  nvlink_rate: {value: 25 GB/s, provenance: \"prior: a test\"}\n";
  EXPECT_EQ(refusal(write(text)), "machine.yaml:10:18: the GPUs of pair.txt use 1 NIC, not 8; write nics_per_node: 1");
}

TEST_F(LoadMachineFromWiresTest, ImpossibleWiresAreRefused) {
  EXPECT_EQ(refusal(with_topology("  file: dgx.xml\n", "4")),
            place(0) +
                ":9: dgx.xml has 8 GPUs, but a node has 4; give the file of such a node, or correct "
                "gpus_per_node");
  EXPECT_EQ(refusal(with_topology("  file: dgx.xml\n", "8", "500 GB/s", "600 GB/s")),
            place(0) +
                ":9: link.peer.rate is 500 GB/s, but no pair of dgx.xml has more than 450 GB/s; give the "
                "file of this machine, or give the rate to a single peer");
  EXPECT_EQ(refusal(with_topology("  file: dgx.xml\n  kind: nvswitch\n")),
            place(1) + ":9: a topology has either a file or a kind; remove one of them");
  EXPECT_EQ(refusal(with_topology("  file: ../dgx.xml\n")),
            place(0) + ":9: '../dgx.xml' is not below the folder of this file; put it there");
  EXPECT_EQ(refusal(with_topology("  file:\n")), place(0) + ":3: 'file' has no value; write one, as in \"file: text\"");
  EXPECT_EQ(refusal(with_topology("  file: dgy.xml\n")),
            "dgy.xml: cannot be read (No such file or directory); check the path");
  EXPECT_EQ(refusal(with_topology("  file: box.txt\n" + pcie_rates.substr(0, pcie_rates.find("  root_rate")), "6",
                                  "40 GB/s")),
            place(0) +
                ":3: GPU 4 cannot be reached from GPU 0 over the wires of box.txt; give root_rate, or the "
                "file of a node whose GPUs are connected");
  EXPECT_EQ(
      refusal(with_topology("  file: box.txt\n  pcie_rate: {value: -1 GB/s, provenance: \"prior: a test\"}\n", "6",
                            "40 GB/s")),
      place(1) + ":22: '-1 GB/s' is not a bandwidth; write a number and a unit (GB/s, Gbit/s), as in \"450 GB/s\"");
  EXPECT_EQ(refusal(with_topology(
                "  file: box.txt\n  rack_rate: {value: 1 GB/s, provenance: \"prior: a test\"}\n" + pcie_rates, "6",
                "40 GB/s")),
            place(1) + ":3: unknown key 'rack_rate'; did you mean 'root_rate'?");
}

TEST_F(LoadMachineTest, RatesBeyondTheirWiresAreRefusedWithBothRates) {
  const auto place_in = [](const std::string& file, const std::string& map, int below, int column) {
    return "machine.yaml:" + std::to_string(line_of(file, map) + below) + ":" + std::to_string(column) + ": ";
  };
  const std::string remedy = "; lower it, or correct the rate of the wires";
  const std::string sxm = "hardware/h100-sxm.yaml";
  EXPECT_EQ(refusal(sxm, "nominal_rate: {value: 450 GB/s", "nominal_rate: {value: 370 GB/s"),
            place_in(sxm, "  collective:", 3, 11) +
                "link.collective.rate (375.2 GB/s) exceeds the wires: a GPU's nominal_rate is 370 GB/s" + remedy);
  const std::string tree = "hardware/h100-nvl.yaml";
  EXPECT_EQ(refusal(tree, "bridge_rate: {value: 63 GB/s", "bridge_rate: {value: 1 GB/s"),
            place_in(tree, "  collective:", 3, 11) +
                "link.collective.rate (55.51 GB/s) exceeds the wires: the topology gives a GPU 1 GB/s" + remedy);
  // The messages name the rate of the ring, and the rates of trees with every protocol except LL.
  const std::string cluster = "clusters/dgx-h100-x2.yaml";
  const std::string messages = refusal(cluster, "nics_per_node: 8", "nics_per_node: 1");
  const std::string of_nic = " exceeds the wires: the NIC that a node's GPUs use carries 50 GB/s" + remedy;
  EXPECT_EQ(messages.substr(0, messages.find('\n')),
            place_in(cluster, "  collective:", 3, 11) + "network.collective.rate (370 GB/s)" + of_nic);
  EXPECT_EQ(std::ranges::count(messages, '\n'), 4);
  EXPECT_NE(messages.find("network.collective.tree.ll128.two_nodes_rate (112.6 GB/s)" + of_nic), std::string::npos);
  // The rates of small messages and of all peers together are checked too.
  EXPECT_EQ(refusal(cluster, "rate: {value: 29.18 GB/s", "rate: {value: 51 GB/s"),
            place_in(cluster, "    small:", 3, 13) +
                "network.peer.small.rate (51 GB/s) exceeds the wires: a NIC's nominal_rate is 50 GB/s" + remedy);
  const std::string mesh = "hardware/ascend-910b-mesh.yaml";
  EXPECT_EQ(refusal(mesh, "aggregate_rate: {value: 78 GB/s", "aggregate_rate: {value: 197 GB/s"),
            place_in(mesh, "    aggregate_rate:", 0, 21) +
                "link.peer.aggregate_rate (197 GB/s) exceeds the wires: a GPU's nominal_rate is 196 GB/s" + remedy);
}

std::string protocol_of_rate(const std::string& rate) {
  const std::string prior = ", provenance: \"prior: a test\"}";
  return "base_latency: {value: 1 us" + prior + ", step_latency: {value: 1 us" + prior + ", rate: {value: " + rate +
         prior + ", own_copy_rate: {value: 480 GB/s" + prior;
}

std::string ring_of_rate(const std::string& rate) {
  const std::string prior = ", provenance: \"prior: a test\"}";
  return "{" + protocol_of_rate(rate) + ", ramp_size: {value: 1 kB" + prior + ", ctas: {value: 4" + prior +
         ", issue_cost: {value: 5 us" + prior + "}";
}

/// If a file with faster groups were accepted, the programs would abort, because results would be faster than the NICs.
TEST_F(LoadMachineTest, GroupsAreNoFasterThanTheirNics) {
  const std::string cluster = "clusters/dgx-h100-x2.yaml";
  const auto mistake_of = [&](const std::string& groups) {
    const std::string message = refusal(cluster, "  nics_per_node: 8\n", "  nics_per_node: 8\n  groups:\n" + groups);
    return message.substr(std::min(message.size(), message.find(": ") + 2));
  };
  EXPECT_EQ(mistake_of("    1: " + ring_of_rate("51 GB/s") + "\n"),
            "network.groups.1.rate (51 GB/s) exceeds the wires: the NIC that one GPU of a node uses carries 50 GB/s; "
            "lower it, or correct the "
            "rate of the wires");
  EXPECT_EQ(mistake_of("    4: " + ring_of_rate("201 GB/s") + "\n"),
            "network.groups.4.rate (201 GB/s) exceeds the wires: the 4 NICs that 4 GPUs of a node use carry 200 GB/s; "
            "lower it, or correct the "
            "rate of the wires");
  EXPECT_EQ(refusal(cluster, "  nics_per_node: 8\n",
                    "  nics_per_node: 8\n  groups:\n    4: " + ring_of_rate("199 GB/s") + "\n"),
            "accepted");
}

TEST_F(LoadMachineTest, AllToAllsOverNodesSendHalfTheirDataThroughNics) {
  const std::string cluster = "clusters/dgx-h100-x2.yaml";
  const auto with_rate = [](const std::string& rate) {
    const std::string prior = ", provenance: \"prior: a test\"}";
    const std::string protocol = protocol_of_rate(rate);
    return "\n    all_to_all:\n      small_up_to: {value: 1 kB" + prior + "\n      small: {" +
           protocol_of_rate("1 GB/s") + "}\n      large: {" + protocol + ", ramp_size: {value: 1 kB" + prior +
           "}\n    tree:";
  };
  const std::string message = refusal(cluster, "\n    tree:", with_rate("94 GB/s"));
  EXPECT_NE(message.find("network.collective.all_to_all.large.rate (94 GB/s) exceeds the wires: in an all-to-all over "
                         "2 nodes, 8 NICs of each node let each of 8 "
                         "GPUs send 93.75 GB/s; lower it, or correct the rate of the wires"),
            std::string::npos)
      << message;
  // In every group, each GPU has a NIC of 50 GB/s to itself. All data that a single GPU of a node sends passes through
  // this NIC.
  const Machine slow = load_machine(changed(cluster, "\n    tree:", with_rate("45 GB/s")));
  EXPECT_EQ(collective_across(slow, 1).all_to_all->large.rate.value, BytesPerSecond{45e9});
  const Machine fast = load_machine(changed(cluster, "\n    tree:", with_rate("93 GB/s")));
  EXPECT_EQ(collective_across(fast, 1).all_to_all->large.rate.value, BytesPerSecond{50e9});
}

TEST_F(LoadMachineTest, WiresThatAClusterGivesCarryTheLinksOfItsNodes) {
  const std::string cluster = "clusters/dgx-h100-x2.yaml";
  const auto with_wires = [&](const std::string& lines) {
    return refusal(
        cluster, "\nnetwork:",
        "\ntopology:\n  " + lines + "\n  hop_latency: {value: 0 us, provenance: \"prior: a test\"}\nnetwork:");
  };
  const std::string place = "machine.yaml:" + std::to_string(line_of(cluster, "\nnetwork:") + 2) + ":9: ";
  EXPECT_EQ(with_wires("kind: ring"),
            place +
                "link.peer.rate is 361 GB/s, but no pair of this topology has more than 225 GB/s; correct the "
                "topology, or lower link.peer.rate of the hardware");
  const auto tree = [](const std::string& gpus_per_bridge) {
    return "kind: pcie_tree\n  gpus_per_bridge: " + gpus_per_bridge +
           "\n  bridges_per_root: 8\n  bridge_rate: {value: 30 GB/s, provenance: \"prior: a test\"}";
  };
  EXPECT_EQ(with_wires(tree("1")),
            place +
                "link.peer.rate is 361 GB/s, but no pair of this topology has more than 30 GB/s; correct the "
                "topology, or lower link.peer.rate of the hardware");
  EXPECT_EQ(with_wires(tree("2")),
            place +
                "link.collective.rate is 375.2 GB/s, but this topology gives a GPU only 30 GB/s; correct the "
                "topology, or lower link.collective.rate of the hardware");
}

TEST_F(LoadMachineTest, WiresThatAClusterGivesReplaceThoseOfItsNodes) {
  std::string text = read(changed("clusters/dgx-h100-x2.yaml", "hardware: h100-sxm", "hardware: l40s-pcie"));
  text += "\ntopology: {kind: nvswitch, hop_latency: {value: 300 ns, provenance: \"prior: a test\"}}\n";
  std::ofstream(folder_ / "machine.yaml") << text;
  ASSERT_NE(load_machine("l40s-pcie").pair_peers, nullptr);
  const Machine machine = load_machine((folder_ / "machine.yaml").string());
  EXPECT_EQ(machine.pair_peers, nullptr);
  EXPECT_EQ(machine.group_collectives, nullptr);
  EXPECT_EQ(machine.strided_rates, nullptr);
}

TEST_F(LoadMachineTest, ARingHasTwoWiresPerGpuAndNeighboursForward) {
  const std::string mesh = "hardware/ascend-910b-mesh.yaml";
  const Machine machine = load_machine(changed(mesh, "kind: full_mesh", "kind: ring"));
  EXPECT_EQ(route_between(*machine.topology, 0, 1)->rate, BytesPerSecond{98e9});  // 196 GB/s over two wires
  EXPECT_EQ(route_between(*machine.topology, 0, 4)->hops(), 4);
  EXPECT_GT(peer_between(machine, 0, 2).latency.value, peer_between(machine, 0, 7).latency.value);
  const std::string fast = changed(mesh, "kind: full_mesh", "kind: ring", "ring.yaml");
  std::ifstream in(fast);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  text.replace(text.find("rate: {value: 18.5 GB/s"), 23, "rate: {value: 99 GB/s");
  std::ofstream(folder_ / "machine.yaml") << text;
  EXPECT_EQ(
      refusal((folder_ / "machine.yaml").string()),
      "machine.yaml:55:11: link.peer.rate (99 GB/s) exceeds one wire of the ring, 98 GB/s (nominal_rate over 2 peers); "
      "give the rate to a single peer");
}

TEST_F(LoadMachineTest, RailsNeedTheRateOfALeaf) {
  const std::string cluster = "clusters/dgx-h100-x2.yaml";
  const std::string rails =
      "nics_per_node: 8\n  fabric: rails\n  leaf_rate: {value: 25 GB/s, provenance: \"prior: a test\"}\n";
  const Machine machine = load_machine(changed(cluster, "nics_per_node: 8\n", rails));
  EXPECT_EQ(route_between(*machine.topology, 0, 8)->rate, BytesPerSecond{50e9});
  EXPECT_EQ(route_between(*machine.topology, 0, 9)->rate, BytesPerSecond{25e9});
  EXPECT_EQ(route_between(*machine.topology, 0, 9)->hops(), 6);
  EXPECT_EQ(refusal(cluster, "nics_per_node: 8\n", "nics_per_node: 8\n  fabric: rails\n"),
            "machine.yaml:9:3: missing key 'leaf_rate' in 'network'; add it, as in \"leaf_rate: {value: 450 GB/s, "
            "provenance: 'prior: why'}\"");
  EXPECT_EQ(refusal(cluster, "nics_per_node: 8\n", "nics_per_node: 8\n  fabric: railways\n"),
            "machine.yaml:11:11: unknown fabric 'railways'; choose one_switch or rails");
  EXPECT_EQ(refusal(changed(cluster, "nics_per_node: 8\n", "nics_per_node: 8\n  leaf_rate: 1\n")),
            "machine.yaml:11:3: unknown key 'leaf_rate'; known keys: name, nominal_rate, peer, collective, "
            "nics_per_node, hop_latency, fabric, groups");
  EXPECT_EQ(refusal(cluster, "nics_per_node: 8\n",
                    "nics_per_node: 8\n  fabric: rails\n  leaf_rate: {value: 0 GB/s, provenance: \"prior: a test\"}\n"),
            "machine.yaml:12:22: 'value' is 0 B/s; choose a bandwidth above 0");
}

TEST_F(LoadMachineTest, ImpossibleNetworksAreRefusedWithTheirPlace) {
  const std::string cluster = "clusters/dgx-h100-x2.yaml";
  EXPECT_EQ(refusal(cluster, "nics_per_node: 8", "nics_per_node: 0"),
            "machine.yaml:10:18: 'nics_per_node' is 0; choose 1 to 1024");
  EXPECT_EQ(refusal(cluster, "nodes: 2", "nodes: 1"),
            "machine.yaml:9:3: a network joins several nodes, but this file has one; add nodes, or remove network");
  EXPECT_EQ(refusal(cluster, "nodes: 2", "nodes: 4097"), "machine.yaml:6:8: 'nodes' is 4097; choose 1 to 4096");
  EXPECT_EQ(refusal(cluster, "ctas: {value: 24", "ctas: {value: 132"),
            "machine.yaml:" + std::to_string(line_of(cluster, "ctas: {value: 24")) +
                ":11: 132 CTAs leave none of the 132 SMs for computation; choose 0 to 131");
  EXPECT_EQ(refusal("hardware/h100-sxm.yaml", "gpus_per_node: 8", "gpus_per_node: 1024\nnodes: 33"),
            "machine.yaml:8:1: missing key 'network'; add it, as in \"network: {...}\"");
  EXPECT_EQ(refusal(cluster, "nodes: 2", "nodes: 4096"), "accepted");
  (void)changed("hardware/h100-sxm.yaml", "gpus_per_node: 8", "gpus_per_node: 1024", "below/large.yaml");
  EXPECT_EQ(refusal(cluster, "hardware: h100-sxm\nnodes: 2", "hardware: below/large.yaml\nnodes: 33"),
            "machine.yaml:6:8: 33 nodes of 1024 GPUs are 33792 GPUs; choose at most 32768 GPUs in all");
}

TEST_F(LoadMachineTest, AClusterNamesHardwareOfTheCatalogueOrAFileBelowItsFolder) {
  const std::string cluster = "clusters/dgx-h100-x2.yaml";
  (void)changed("hardware/h100-sxm.yaml", "name: h100-sxm", "name: own", "below/own.yaml");
  EXPECT_EQ(total_gpus(load_machine(changed(cluster, "hardware: h100-sxm", "hardware: below/own.yaml"))), 16);
  EXPECT_EQ(
      refusal(cluster, "hardware: h100-sxm", "hardware: ../own.yaml"),
      "machine.yaml:5:11: '../own.yaml' is not below the folder of this file; put it there, or name hardware of the "
      "catalogue");
  EXPECT_EQ(
      refusal(cluster, "hardware: h100-sxm", "hardware: /etc/passwd"),
      "machine.yaml:5:11: '/etc/passwd' is not below the folder of this file; put it there, or name hardware of the "
      "catalogue");
  EXPECT_EQ(refusal(cluster, "hardware: h100-sxm", "hardware: below/none.yaml"),
            "below/none.yaml: cannot be read (No such file or directory); check the path");
  const std::string unknown = refusal(cluster, "hardware: h100-sxm", "hardware: h100-smx");
  EXPECT_EQ(unknown.substr(0, unknown.find(" known:")),
            "machine.yaml:5:11: unknown hardware 'h100-smx'; did you mean 'h100-sxm'?");
}

TEST_F(LoadMachineTest, TheNodesOfAClusterMayBeAYmlFile) {
  (void)changed("hardware/h100-sxm.yaml", "name: h100-sxm", "name: own", "own.yml");
  const Machine machine = load_machine(changed("clusters/dgx-h100-x2.yaml", "hardware: h100-sxm", "hardware: own.yml"));
  EXPECT_EQ(machine.node_name, (folder_ / "own.yml").string());
  EXPECT_EQ(load_machine("dgx-h100-x2").node_name, "h100-sxm");
}

TEST_F(LoadMachineTest, AClusterInheritsNodesButNotOtherWires) {
  (void)changed("hardware/l40s-pcie.yaml", "name: l40s-pcie", "name: own", "below/own.yaml");
  const std::string tree =
      "hardware: own.yaml\ntopology:\n  kind: pcie_tree\n  gpus_per_bridge: 2\n  bridges_per_root: 4\n"
      "  bridge_rate: {value: 8 GB/s, provenance: \"prior: a test\"}\n"
      "  hop_latency: {value: 300 ns, provenance: \"prior: a test\"}";
  (void)changed("clusters/dgx-h100-x2.yaml", "hardware: h100-sxm", tree, "below/base.yaml");
  const auto extending = [&](const std::string& lines) {
    std::ofstream(folder_ / "machine.yaml")
        << "schema: commfuse.cluster/1\nname: mine\nextends: below/base.yaml\n" + lines;
    return load_machine((folder_ / "machine.yaml").string());
  };
  const Machine same = extending("");
  EXPECT_EQ(same.node_name, (folder_ / "below/own.yaml").string());
  EXPECT_EQ(route_between(*same.topology, 0, 7)->rate, BytesPerSecond{8e9});
  const Machine other = extending("topology: {kind: nvswitch}\n");
  EXPECT_EQ(other.pair_peers, nullptr);
  EXPECT_EQ(route_between(*other.topology, 0, 7)->rate, BytesPerSecond{31.5e9});
}

TEST_F(LoadMachineTest, AClusterOfClustersIsRefused) {
  (void)changed("clusters/dgx-h100-x2.yaml", "name: dgx-h100-x2", "name: inner", "below/inner.yaml");
  EXPECT_EQ(refusal("clusters/dgx-h100-x2.yaml", "hardware: h100-sxm", "hardware: below/inner.yaml"),
            "below/inner.yaml:3:9: schema is 'commfuse.cluster/1', but 'commfuse.hardware/1' is required here; give a "
            "file of that kind");
}

TEST_F(LoadMachineTest, AModelIsNotAMachine) {
  EXPECT_EQ(refusal("models/llama-3.1-8b.yaml", "layers", "layers"),
            "machine.yaml:2:9: schema is 'commfuse.model/1', but 'commfuse.hardware/1' is required here; give a file "
            "of that kind");
}

}  // namespace
}  // namespace commfuse
