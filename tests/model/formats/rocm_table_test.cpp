// SPDX-License-Identifier: Apache-2.0
// Tests `rocm-smi --showtopo --shownodesbw` and `amd-smi topology`, in the layouts of both tools.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/topology_file.h"
#include "model/formats/topology_table.h"
#include "tests/model/formats/built_topology.h"
#include "tests/refusal.h"
#include "tests/texts.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

using test::replaced;
using test::topology_of;

using Path = std::vector<int>;
using CellOf = std::function<std::string(int a, int b)>;

constexpr WireRates xgmi_rates{
    .nvlink = BytesPerSecond{50e9}, .pcie = BytesPerSecond{32e9}, .root = BytesPerSecond{20e9}};

constexpr std::string_view rocm_remedy =
    "give all that `rocm-smi --showtopo --shownodesbw` or `amd-smi topology` prints";

CellOf always(const std::string& cell) {
  return [cell](int, int) { return cell; };
}

std::string rocm_section(std::string_view title, int gpus, std::string_view self, const CellOf& cell) {
  std::string text = fmt::format("{:=^90}\n       ", fmt::format(" {} ", title));
  for (int gpu = 0; gpu < gpus; ++gpu) {
    text += fmt::format("GPU{:<10}", gpu);
  }
  for (int a = 0; a < gpus; ++a) {
    text += fmt::format("\nGPU{:<4}", a);
    for (int b = 0; b < gpus; ++b) {
      text += fmt::format("{:<13}", a == b ? std::string(self) : cell(a, b));
    }
  }
  return text + "\n\n";
}

/// The output of rocm-smi, section by section.
struct RocmSmi {
  int gpus = 0;
  CellOf weight;
  CellOf hops;
  CellOf type;
  CellOf bandwidth;  // Null without --shownodesbw.
  std::function<int(int gpu)> numa = [](int) { return 0; };
};

std::string rocm_smi_text(const RocmSmi& smi) {
  std::string text = fmt::format("\n\n{:=^90}\n", " ROCm System Management Interface ");
  text += rocm_section("Weight between two GPUs", smi.gpus, "0", smi.weight);
  text += rocm_section("Hops between two GPUs", smi.gpus, "0", smi.hops);
  text += rocm_section("Link Type between two GPUs", smi.gpus, "0", smi.type);
  text += fmt::format("{:=^90}\n", " Numa Nodes ");
  for (int gpu = 0; gpu < smi.gpus; ++gpu) {
    text += fmt::format("GPU[{0}]\t\t: (Topology) Numa Node: {1}\nGPU[{0}]\t\t: (Topology) Numa Affinity: {1}\n", gpu,
                        smi.numa(gpu));
  }
  if (smi.bandwidth) {
    text += rocm_section("Bandwidth", smi.gpus, "N/A", smi.bandwidth);
    text += "Format: min-max; Units: mps\n\"0-0\" min-max bandwidth indicates devices are not connected directly\n";
  }
  return text + fmt::format("{:=^90}\n", " End of ROCm SMI Log ");
}

RocmSmi mi300x() { return {.gpus = 8, .weight = always("15"), .hops = always("1"), .type = always("XGMI")}; }

/// Returns the number of links between two dies. A module has two dies, joined by four links; modules form a ring that
/// joins only even dies, alternately by two links and by one.
int mi250x_links(int a, int b) {
  if (a / 2 == b / 2) {
    return 4;
  }
  const int distance = std::abs(a / 2 - b / 2);
  return a % 2 != 0 || b % 2 != 0 || distance == 2 ? 0 : std::min(a, b) == 2 || distance == 3 ? 2 : 1;
}

RocmSmi mi250x() {
  return {.gpus = 8,
          .weight = [](int a, int b) { return mi250x_links(a, b) > 0 ? "15" : "30"; },
          .hops = always("1"),
          .type = always("XGMI"),
          .bandwidth =
              [](int a, int b) {
                const int links = mi250x_links(a, b);
                return links > 0 ? fmt::format("50000-{}", 50000 * links) : "0-0";
              }};
}

/// Returns two groups of four GPUs, each GPU with links to the three others of its group, and PCIe between the groups.
RocmSmi two_hives() {
  const auto is_same_group = [](int a, int b) { return a / 4 == b / 4; };
  return {.gpus = 8,
          .weight = [=](int a, int b) { return is_same_group(a, b) ? "15" : "72"; },
          .hops = [=](int a, int b) { return is_same_group(a, b) ? "1" : "3"; },
          .type = [=](int a, int b) { return is_same_group(a, b) ? "XGMI" : "PCIE"; },
          .numa = [](int gpu) { return gpu / 4; }};
}

std::string amd_table(std::string_view title, const std::vector<std::string>& names, const CellOf& cell) {
  std::string text = fmt::format("{}:\n             ", title);
  for (const std::string& name : names) {
    text += name + " ";
  }
  for (std::size_t a = 0; a < names.size(); ++a) {
    text += "\n" + names[a] + " ";
    for (std::size_t b = 0; b < names.size(); ++b) {
      text += fmt::format("{:<13}", cell(static_cast<int>(a), static_cast<int>(b)));
    }
  }
  return text + "\n\n";
}

/// Returns the output of amd-smi for two GPUs, with these cells outside the diagonal.
std::string amd_smi(const std::string& access, const std::string& bandwidth) {
  const std::vector<std::string> names{"0000:0c:00.0", "0000:22:00.0"};
  const auto cells = [](const std::string& self, const std::string& other) {
    return [=](int a, int b) { return a == b ? self : other; };
  };
  return amd_table("ACCESS TABLE", names, cells("ENABLED", access)) +
         amd_table("WEIGHT TABLE", names, cells("0", "15")) + amd_table("HOPS TABLE", names, cells("0", "1")) +
         amd_table("LINK TYPE TABLE", names, cells("SELF", "XGMI")) +
         amd_table("NUMA BW TABLE", names, cells("N/A", bandwidth)) +
         amd_table("CACHE COHERANCY TABLE", names, cells("SELF", "NC")) +
         amd_table("ATOMICS TABLE", names, cells("SELF", "64,32")) + amd_table("DMA TABLE", names, cells("SELF", "T")) +
         amd_table("BI-DIRECTIONAL TABLE", names, cells("SELF", "T")) +
         "\nLegend:\n  SELF = Current GPU\n  ENABLED / DISABLED = Link is enabled or disabled\n";
}

NodeWires read_rocm(const std::string& text, const WireRates& rates = xgmi_rates) {
  return read_rocm_topology("topo.txt", text, rates);
}

std::string rocm_refusal(const std::string& text, const WireRates& rates = xgmi_rates) {
  return test::refusal_of([&] { read_rocm(text, rates); });
}

TEST(RocmTable, EveryPairOfAnMi300XHasItsOwnLink) {
  const NodeWires wires = read_rocm(rocm_smi_text(mi300x()), {.nvlink = BytesPerSecond{64e9}});
  EXPECT_EQ(wires.gpus, 8);
  EXPECT_EQ(wires.edges.size(), 28u);  // 8 x 7 / 2 direct links: with seven links per GPU there is no switch
  EXPECT_TRUE(wires.others.empty());
  EXPECT_EQ(route_between(topology_of(wires), 2, 5)->rate, BytesPerSecond{64e9});
}

TEST(RocmTable, TheDriversBandwidthIsNotTheRate) {
  RocmSmi smi = mi300x();
  smi.bandwidth = always("50000-50000");  // rocm-smi also prints this rate for MI355X, whose links have 76.8 GB/s.
  const NodeWires wires = read_rocm(rocm_smi_text(smi), {.nvlink = BytesPerSecond{76.8e9}});
  EXPECT_EQ(route_between(topology_of(wires), 0, 7)->rate, BytesPerSecond{76.8e9});
  EXPECT_EQ(rocm_refusal(rocm_smi_text(smi), {}),
            "topo.txt:28:21: the table does not state the rate of an xGMI link; set nvlink_rate next to the file");
}

TEST(RocmTable, LinksOfMi250XDiesFollowFromTheirBandwidth) {
  const Topology topology = topology_of(read_rocm(rocm_smi_text(mi250x())));
  EXPECT_EQ(route_between(topology, 0, 1)->rate, BytesPerSecond{200e9});  // Both dies are in one module.
  EXPECT_EQ(route_between(topology, 2, 4)->rate, BytesPerSecond{100e9});
  EXPECT_EQ(route_between(topology, 0, 2)->rate, BytesPerSecond{50e9});
  EXPECT_EQ(route_between(topology, 1, 3)->vertices, (Path{1, 0, 2, 3}));  // The route passes through other dies.
}

TEST(RocmTable, WithoutBandwidthsDifferentPairsAreRefused) {
  RocmSmi smi = mi250x();
  const std::string message =
      "topo.txt:28:47: some GPUs forward data for other pairs, so the number of xGMI links differs by pair, and these "
      "tables do not state it; add the output of `rocm-smi --shownodesbw`";
  smi.bandwidth = nullptr;
  EXPECT_EQ(rocm_refusal(rocm_smi_text(smi)), message);
  smi.bandwidth = always("0-0");  // Virtual machines print this.
  EXPECT_EQ(rocm_refusal(rocm_smi_text(smi)), message);
}

TEST(RocmTable, TwoHivesAreJoinedByPcie) {
  // Vertices 8 and 9 are the roots, one for each NUMA node.
  const NodeWires wires = read_rocm(rocm_smi_text(two_hives()));
  using enum VertexKind;
  EXPECT_EQ(wires.others, (std::vector<VertexKind>{root, root}));
  const Topology topology = topology_of(wires);
  EXPECT_EQ(route_between(topology, 0, 3)->vertices, (Path{0, 3}));
  EXPECT_EQ(route_between(topology, 0, 7)->vertices, (Path{0, 8, 9, 7}));
  EXPECT_EQ(route_between(topology, 0, 7)->rate, BytesPerSecond{20e9});
  EXPECT_EQ(unreachable_gpu(topology_of(
                read_rocm(rocm_smi_text(two_hives()), {.nvlink = BytesPerSecond{46e9}, .pcie = BytesPerSecond{32e9}}))),
            4);  // Without root_rate, nothing joins the roots.
}

TEST(RocmTable, NumaNodesThatVirtualMachinesHideAreNotUsed) {
  RocmSmi smi = two_hives();
  smi.numa = [](int) { return -1; };
  EXPECT_EQ(route_between(topology_of(read_rocm(rocm_smi_text(smi))), 0, 7)->hops(), 3);
}

TEST(RocmTable, PciePairsOfOneCpuShareItsRoot) {
  const NodeWires wires =
      read_rocm(rocm_smi_text({.gpus = 3, .weight = always("40"), .hops = always("2"), .type = always("PCIE")}));
  EXPECT_EQ(route_between(topology_of(wires), 0, 2)->vertices, (Path{0, 3, 2}));
  EXPECT_EQ(route_between(topology_of(wires), 0, 2)->rate, BytesPerSecond{32e9});
}

TEST(RocmTable, AmdSmiNamesGpusByTheirBus) {
  const NodeWires wires = read_rocm(amd_smi("ENABLED", "50000-200000"));
  EXPECT_EQ(wires.gpus, 2);
  EXPECT_EQ(route_between(topology_of(wires), 0, 1)->rate, BytesPerSecond{200e9});
  EXPECT_EQ(rocm_refusal(amd_smi("ENABLED", "N/A")), "accepted");
  EXPECT_EQ(rocm_refusal(amd_smi("DISABLED", "N/A")),
            "topo.txt:3:27: peer access over xGMI is 'DISABLED', so these links carry no data; enable it and print the "
            "tables again");
}

TEST(RocmTable, ToolsOfAmdAreRecognizedByTheirTitles) {
  EXPECT_TRUE(is_rocm_topology(rocm_smi_text(mi300x())));
  EXPECT_TRUE(is_rocm_topology(amd_smi("ENABLED", "N/A")));
  EXPECT_FALSE(is_rocm_topology("GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n"));
}

TEST(RocmTable, MistakesNameTheirPlace) {
  const std::string text =
      rocm_smi_text({.gpus = 2, .weight = always("15"), .hops = always("1"), .type = always("XGMI")});
  const auto refusal_with = [&](const std::string& from, const std::string& to) {
    return rocm_refusal(replaced(text, from, to));
  };
  EXPECT_EQ(refusal_with("15  ", "15  "), "accepted");
  EXPECT_EQ(refusal_with("15  ", "13  "),
            "topo.txt:6:21: 'GPU0' and 'GPU1' are partitions of one GPU (weight 13), which this program does not "
            "model; merge them with `amd-smi set --compute-partition SPX` and print the tables again");
  EXPECT_EQ(refusal_with("15  ", "20  "),
            fmt::format("topo.txt:6:21: a weight of 20 is not a multiple of 15, the weight of one xGMI hop; {}",
                        rocm_remedy));
  EXPECT_EQ(refusal_with("15  ", "N/A "),
            fmt::format("topo.txt:6:21: 'N/A' is not a whole number from 0 to 1000000; {}", rocm_remedy));
  EXPECT_EQ(refusal_with("XGMI", "CXL "), "topo.txt:16:21: unknown type of link 'CXL'; known types: XGMI, PCIE");
  EXPECT_EQ(refusal_with("XGMI", "PCIE"),
            "topo.txt:11:21: a PCIe path cannot have 1 hop; it has 2 below one CPU and 3 across two CPUs");
  EXPECT_EQ(refusal_with("Link Type between two GPUs", "Other"),
            fmt::format("topo.txt:1:1: no table of types of links; {}", rocm_remedy));
  EXPECT_EQ(refusal_with("\nGPU1   15", "\nGPU3   15"),
            fmt::format("topo.txt:7:1: the row of 'GPU1' is missing; {}", rocm_remedy));
  EXPECT_EQ(refusal_with("GPU1   1 ", "GPU1   1 1 "),
            fmt::format("topo.txt:12:1: 'GPU1' has 3 cells, but the table has 2 GPUs; {}", rocm_remedy));
  EXPECT_EQ(refusal_with("GPU1   1 ", "GPU1     "),
            fmt::format("topo.txt:12:1: 'GPU1' has 1 cell, but the table has 2 GPUs; {}", rocm_remedy));
  EXPECT_EQ(rocm_refusal(text + text), "topo.txt:28:1: this table appears twice; give the tables of one node");
  EXPECT_EQ(rocm_refusal("FOO TABLE:\n" + amd_smi("ENABLED", "N/A")),
            "topo.txt:1:1: unknown table 'FOO TABLE:'; remove it from the file if it does not describe links");
  EXPECT_EQ(
      rocm_refusal(amd_smi("ENABLED", "50000-70000")),
      fmt::format(
          "topo.txt:23:27: '50000-70000' is not a range from the bandwidth of one link to that of 1 to 18 links; {}",
          rocm_remedy));
  EXPECT_EQ(rocm_refusal("WEIGHT TABLE:\n"), fmt::format("topo.txt:1:1: the table is cut off; {}", rocm_remedy));
}

}  // namespace
}  // namespace commfuse
