// SPDX-License-Identifier: Apache-2.0
// Tests reading the wires that NCCL and nvidia-smi print. The files in tests/model/hardware/topologies are modelled on
// real files, with fewer and simpler parts.
#include "model/formats/topology_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>

#include "model/config_error.h"
#include "tests/model/formats/built_topology.h"
#include "tests/refusal.h"
#include "tests/texts.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

using test::replaced;
using test::topology_of;

using Path = std::vector<int>;

constexpr WireRates given_rates{
    .nvlink = BytesPerSecond{25e9}, .pcie = BytesPerSecond{16e9}, .root = BytesPerSecond{10e9}};

std::string path_of(const std::string& name) {
  return std::string(COMMFUSE_SOURCE_DIR) + "/tests/model/hardware/topologies/" + name;
}

std::string text_of(const std::string& name) {
  std::ifstream in(path_of(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Returns one node, in which every wire has a latency of 1 us.
Topology topology_in(const std::string& name, const WireRates& rates = {}) {
  return topology_of(read_topology_file(path_of(name), rates));
}

std::string topology_refusal(NodeWires (*read)(const std::string&, const std::string&, const WireRates&),
                             const std::string& text, const WireRates& rates = given_rates) {
  return test::refusal_of([&] { read("a.txt", text, rates); });
}

TEST(NcclTopology, NvswitchesAreOneCrossbarThatEveryGpuReachesWithAllItsLinks) {
  const Topology topology = topology_in("nccl_nvswitch.xml");
  EXPECT_EQ(topology.gpus, 8);
  for (int gpu = 1; gpu < 8; ++gpu) {
    const Route route = *route_between(topology, 0, gpu);
    // The route crosses the NVSwitches, vertex 8, even where a route over a PCIe switch has no more hops.
    EXPECT_EQ(route.vertices, (Path{0, 8, gpu}));
    EXPECT_EQ(route.rate, BytesPerSecond{450e9});  // 18 NVLinks of 25 GB/s
  }
}

TEST(NcclTopology, EveryGpuUsesItsNearestNic) {
  const NodeWires wires = read_topology_file(path_of("nccl_nvswitch.xml"), {});
  EXPECT_EQ(wires.nic_of_gpu, (Path{0, 1, 2, 3, 4, 5, 6, 7}));  // eno1 is not used.
}

TEST(NcclTopology, NvlinksBetweenGpusAlsoForwardForOtherPairs) {
  // Vertices after the GPUs: CPU 4 with PCIe switches 5 (GPUs 0 and 1) and 6 (GPU 2), and CPU 7 with GPU 3.
  const Topology topology = topology_in("nccl_nvlinks.xml");
  EXPECT_EQ(route_between(topology, 0, 2)->vertices, (Path{0, 2}));
  EXPECT_EQ(route_between(topology, 0, 2)->rate, BytesPerSecond{50e9});
  EXPECT_EQ(route_between(topology, 0, 3)->vertices, (Path{0, 1, 3}));
  EXPECT_EQ(route_between(topology, 0, 3)->rate, BytesPerSecond{25e9});
}

TEST(NcclTopology, WithoutNvlinksTheRouteIsPcie) {
  std::string text = text_of("nccl_nvlinks.xml");
  for (std::size_t at = text.find("<nvlink"); at != std::string::npos; at = text.find("<nvlink")) {
    text.erase(at, text.find("/>", at) + 2 - at);
  }
  const Topology unjoined = topology_of(read_nccl_topology("a.xml", text, {}));
  EXPECT_EQ(unreachable_gpu(unjoined), 3);  // The file does not state the rate between the sockets.
  const Topology topology = topology_of(read_nccl_topology("a.xml", text, {.root = BytesPerSecond{10e9}}));
  EXPECT_EQ(route_between(topology, 0, 1)->vertices, (Path{0, 5, 1}));
  EXPECT_EQ(route_between(topology, 0, 2)->vertices, (Path{0, 5, 4, 6, 2}));
  // Generation 3: 16 lanes of 8 GT/s, 128 of 130 bits; the switch of GPU 2 states no rate and is assumed to have the
  // same.
  EXPECT_DOUBLE_EQ(route_between(topology, 0, 2)->rate.value, 16 * 8e9 / 8 * 128 / 130);
  EXPECT_EQ(route_between(topology, 0, 3)->vertices, (Path{0, 5, 4, 7, 3}));
  EXPECT_EQ(route_between(topology, 0, 3)->rate, BytesPerSecond{10e9});
}

TEST(NcclTopology, GivenRatesReplaceTheRatesOfTheFile) {
  const Topology topology = topology_in("nccl_nvswitch.xml", {.nvlink = BytesPerSecond{26.5e9}});
  EXPECT_EQ(route_between(topology, 0, 7)->rate, BytesPerSecond{477e9});
}

/// Returns RCCL's text for two GPUs joined by two links.
std::string rccl_text(std::string_view gcn) {
  std::string text = "<system version=\"2\"><cpu numaid=\"0\">";
  for (const auto& [device, bus, other] :
       {std::tuple{0, "0000:02:00.0", "0000:42:00.0"}, {1, "0000:42:00.0", "0000:02:00.0"}}) {
    text += fmt::format(R"(<pci busid="{}" class="0x120000" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="{}" sm="94" gcn="{}"><xgmi target="{}" count="2" tclass="0x120000"/></gpu></pci>)",
                        bus, device, gcn, other);
  }
  return text + "</cpu></system>";
}

TEST(NcclTopology, XgmiLinksFollowFromTheArchitecture) {
  const Topology topology = topology_of(read_nccl_topology("a.txt", rccl_text("gfx942:sramecc+:xnack-"), {}));
  EXPECT_EQ(route_between(topology, 0, 1)->rate, BytesPerSecond{128e9});
  EXPECT_EQ(route_between(topology_of(read_nccl_topology("a.txt", rccl_text("910"), {})), 0, 1)->rate,
            BytesPerSecond{100e9});  // RCCL writes this for MI250X.
  EXPECT_EQ(topology_refusal(read_nccl_topology, rccl_text("gfx1100"), {}),
            "a.txt:2:7: the rate of an xGMI link of gcn 'gfx1100' is unknown; set nvlink_rate, the rate of one link, "
            "next to the file");
}

TEST(NcclTopology, MistakesInLinksOfAmdGpusNameXgmi) {
  const std::string text = rccl_text("gfx942");
  const auto refusal_with = [&](const std::string& from, const std::string& to) {
    return topology_refusal(read_nccl_topology, replaced(text, from, to), {});
  };
  EXPECT_EQ(
      refusal_with("count=\"2\"", "count=\"1\""),
      "a.txt:2:7: this GPU lists 1 xGMI link to '0000:42:00.0', which lists 2 in return; let NCCL write the file, "
      "with NCCL_TOPO_DUMP_FILE");
  EXPECT_EQ(refusal_with("target=\"0000:42:00.0\"", "target=\"0000:02:00.0\""),
            "a.txt:2:7: an xGMI link connects this GPU to itself; set its target to the busid of the other GPU");
}

TEST(NcclTopology, MistakesNameTheirPlace) {
  const std::string text = text_of("nccl_nvlinks.xml");
  const auto refusal_with = [&](const std::string& from, const std::string& to) {
    return topology_refusal(read_nccl_topology, replaced(text, from, to), {});
  };
  EXPECT_EQ(refusal_with("</system>", ""),
            "a.txt:39:1: this is not XML (Start-end tags mismatch); let NCCL write the file, with "
            "NCCL_TOPO_DUMP_FILE");
  EXPECT_EQ(topology_refusal(read_nccl_topology, "<html/>"),
            "a.txt:1:1: no <system> element; let NCCL write the file, with NCCL_TOPO_DUMP_FILE");
  EXPECT_EQ(topology_refusal(read_nccl_topology, "<system><cpu/></system>"),
            "a.txt:1:1: no <gpu> element; let NCCL write the file, with NCCL_TOPO_DUMP_FILE");
  EXPECT_EQ(refusal_with("dev=\"1\"", "dev=\"0\""), "a.txt:11:9: GPU 0 appears twice; give every GPU a different dev");
  EXPECT_EQ(refusal_with("busid=\"0000:07:00.0\"", "busid=\"0000:06:00.0\""),
            "a.txt:10:7: busid '0000:06:00.0' belongs to two GPUs; give every GPU a different busid");
  EXPECT_EQ(refusal_with("busid=\"0000:07:00.0\"", ""),
            "a.txt:11:9: GPU 1 is not in a <pci> with a busid inside a <cpu>; let NCCL write the file, with "
            "NCCL_TOPO_DUMP_FILE");
  EXPECT_EQ(refusal_with("dev=\"2\"", "dev=\"-2\""),
            "a.txt:19:9: dev of gpu is '-2'; write a whole number from 0 to 1023");
  EXPECT_EQ(refusal_with("count=\"2\"", "count=\"0\""),
            "a.txt:7:11: count of nvlink is '0'; write a whole number from 1 to 64");
  EXPECT_EQ(
      refusal_with("count=\"1\"", "count=\"3\""),
      "a.txt:5:9: this GPU lists 3 NVLinks to '0000:07:00.0', which lists 1 in return; let NCCL write the file, with "
      "NCCL_TOPO_DUMP_FILE");
  EXPECT_EQ(
      refusal_with("count=\"2\"", "count=\"1\""),
      "a.txt:5:9: this GPU lists 1 NVLink to '0000:0a:00.0', which lists 2 in return; let NCCL write the file, with "
      "NCCL_TOPO_DUMP_FILE");
  EXPECT_EQ(refusal_with("target=\"0000:07:00.0\"", "target=\"0000:06:00.0\""),
            "a.txt:5:9: an NVLink connects this GPU to itself; set its target to the busid of the other GPU");
  EXPECT_EQ(refusal_with("link_speed=\"8 GT/s\"", "link_speed=\"-8 GT/s\""),
            "a.txt:3:5: link_speed '-8 GT/s' is not a PCIe speed; write, for example, \"16.0 GT/s PCIe\"");
  EXPECT_EQ(refusal_with("link_speed=\"8 GT/s\"", "link_speed=\"0 GT/s\""),
            "a.txt:3:5: link_speed '0 GT/s' is not a PCIe speed; write, for example, \"16.0 GT/s PCIe\"");
  EXPECT_EQ(refusal_with("link_width=\"16\"", "link_width=\"-16\""),
            "a.txt:3:5: link_width of pci is '-16'; write a whole number from 1 to 32");
  EXPECT_EQ(refusal_with("sm=\"70\"", "sm=\"52\""),
            "a.txt:5:9: the rate of an NVLink of sm 52 is unknown; set nvlink_rate next to the file");
}

TEST(NcclTopology, XmlOfOtherProgramsIsNamed) {
  EXPECT_EQ(topology_refusal(read_nccl_topology, "<graphs version=\"1\"/>"),
            "a.txt:1:1: these are the rings and trees that NCCL chose (NCCL_GRAPH_DUMP_FILE), not the links; let NCCL "
            "write the file, with NCCL_TOPO_DUMP_FILE");
  EXPECT_EQ(topology_refusal(
                read_nccl_topology,
                "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\"/>"),
            "a.txt:1:1: this is the XML of lstopo, which does not state the rates of links between GPUs; let NCCL "
            "write the file, with NCCL_TOPO_DUMP_FILE");
  EXPECT_EQ(topology_refusal(read_nccl_topology, "<nvidia_smi_log/>"),
            "a.txt:1:1: this is `nvidia-smi -q -x`, which does not describe the links between GPUs; let NCCL write the "
            "file, with NCCL_TOPO_DUMP_FILE");
}

TEST(NcclTopology, UnknownElementsAreNamed) {
  const std::string text = text_of("nccl_nvlinks.xml");
  const auto refusal_with = [&](const std::string& from, const std::string& to) {
    return topology_refusal(read_nccl_topology, replaced(text, from, to), {});
  };
  EXPECT_EQ(
      refusal_with("<nvlink", "<cxl/><nvlink"),
      "a.txt:6:11: unknown element 'cxl' in <gpu>; remove it from the file if it does not describe links between GPUs");
  EXPECT_EQ(refusal_with("<gpu dev", "<gpu lanes=\"2\" dev"),
            "a.txt:5:9: unknown attribute 'lanes' of <gpu>; remove it from the file if it does not describe links "
            "between GPUs");
  EXPECT_EQ(refusal_with("<nvlink", "<c2c bw=\"44712\" count=\"10\"/><nvlink"), "accepted");
  EXPECT_EQ(refusal_with("<gpu dev", "<pcilink target=\"0000:99:00.0\"/><gpu dev"),
            "accepted");  // All GPUs have NVLinks.
  EXPECT_EQ(
      topology_refusal(read_nccl_topology,
                       "<system><cpu><pci busid=\"0\"><pcilink target=\"1\"/><gpu dev=\"0\"/></pci></cpu></system>"),
      "a.txt:1:29: this PCIe switch is linked to another switch, which this program does not model; remove "
      "<pcilink> from the file to connect the GPUs through the CPU");
}

TEST(NcclTopology, AFileOfSeveralHostsIsRefused) {
  EXPECT_EQ(topology_refusal(read_nccl_topology,
                             "<system>\n<cpu host_hash=\"0x1\" numaid=\"0\"/>\n<cpu host_hash=\"0x1\" numaid=\"1\"/>\n"
                             "<cpu host_hash=\"0x2\" numaid=\"0\"/></system>"),
            "a.txt:4:1: this CPU and the previous one are in different hosts (host_hash); let NCCL write the file of "
            "one node, with NCCL_MNNVL_ENABLE=0, or write `kind: nvswitch` for a rack");
}

TEST(NcclTopology, UntrustedFilesHaveLimits) {
  const auto repeated = [](const std::string& text, int times) {
    std::string content;
    for (int i = 0; i < times; ++i) {
      content += text;
    }
    return content;
  };
  const std::string gpu = "<pci busid=\"0\"><gpu dev=\"0\"/></pci>";
  EXPECT_EQ(
      topology_refusal(read_nccl_topology, "<system><cpu>" + gpu + "</cpu>" + repeated("<cpu/>", 64) + "</system>"),
      "a.txt:1:433: more than 64 CPUs; give the file of one node");
  EXPECT_EQ(topology_refusal(read_nccl_topology, "<system><cpu>" + repeated("<pci>", 50000) + gpu +
                                                     repeated("</pci>", 50000) + "</cpu></system>"),
            "a.txt:1:169: more than 32 levels of PCIe switches; let NCCL write the file, with "
            "NCCL_TOPO_DUMP_FILE");
  std::string gpus;
  for (int i = 0; i < 65; ++i) {
    gpus += "<pci busid=\"" + std::to_string(i) + "\"><gpu dev=\"" + std::to_string(i) + "\"/></pci>";
  }
  EXPECT_EQ(topology_refusal(read_nccl_topology, "<system><cpu>" + gpus + "</cpu></system>"),
            "a.txt:1:1: 65 GPUs are too many; give the file of one node with up to 64 GPUs");
}

TEST(NcclTopology, LimitsTheDepthOfOtherElementsToo) {
  const auto nested = [](std::string_view tag, int times) {
    std::string opened;
    std::string closed;
    for (int i = 0; i < times; ++i) {
      opened += fmt::format("<{}>", tag);
      closed += fmt::format("</{}>", tag);
    }
    return fmt::format("<system><cpu><pci busid=\"0\"><gpu dev=\"0\"/></pci>{}{}</cpu></system>", opened, closed);
  };
  EXPECT_EQ(topology_refusal(read_nccl_topology, nested("nic", 64)), "accepted");
  EXPECT_EQ(topology_refusal(read_nccl_topology, nested("nic", 40'000)),
            "a.txt:1:369: more than 64 levels of elements; let NCCL write the file, with "
            "NCCL_TOPO_DUMP_FILE");
}

TEST(TopologyMatrix, MoreNvlinksThanAGpuHasAreACrossbar) {
  const NodeWires wires = read_topology_file(path_of("smi_nvswitch.txt"), {.nvlink = BytesPerSecond{25e9}});
  EXPECT_EQ(wires.nic_of_gpu, (Path{0, 1, 2, 3}));
  const Topology topology = topology_of(wires);
  EXPECT_EQ(route_between(topology, 0, 3)->vertices, (Path{0, 4, 3}));
  EXPECT_EQ(route_between(topology, 0, 3)->rate, BytesPerSecond{450e9});
}

TEST(TopologyMatrix, FewerNvlinksAreWires) {
  const Topology topology = topology_in("smi_cube_mesh.txt", given_rates);
  EXPECT_EQ(route_between(topology, 0, 1)->rate, BytesPerSecond{25e9});
  EXPECT_EQ(route_between(topology, 0, 4)->vertices, (Path{0, 4}));
  EXPECT_EQ(route_between(topology, 0, 4)->rate, BytesPerSecond{50e9});
  EXPECT_EQ(route_between(topology, 0, 5)->vertices,
            (Path{0, 1, 5}));  // This route is shorter than the route over both sockets.
}

TEST(TopologyMatrix, PcieIsATreeOfSwitchesAndSockets) {
  // 6: switch of 0 and 1; 7: switch of 6 and 2; 8: host bridge of 4 and 5; 9: socket of 7 and 3, joined to 8.
  const NodeWires wires = read_topology_file(path_of("smi_pcie.txt"), given_rates);
  EXPECT_EQ(wires.nic_of_gpu, (Path{0, 0, 0, 0, 1, 1}));
  using enum VertexKind;
  EXPECT_EQ(wires.others, (std::vector<VertexKind>{bridge, bridge, root, root}));
  const Topology topology = topology_of(wires);
  EXPECT_EQ(route_between(topology, 0, 1)->vertices, (Path{0, 6, 1}));
  EXPECT_EQ(route_between(topology, 0, 2)->vertices, (Path{0, 6, 7, 2}));
  EXPECT_EQ(route_between(topology, 0, 3)->vertices, (Path{0, 6, 7, 9, 3}));
  EXPECT_EQ(route_between(topology, 0, 3)->rate, BytesPerSecond{16e9});
  EXPECT_EQ(route_between(topology, 0, 5)->vertices, (Path{0, 6, 7, 9, 8, 5}));
  EXPECT_EQ(route_between(topology, 0, 5)->rate, BytesPerSecond{10e9});
  EXPECT_EQ(unreachable_gpu(topology_in("smi_pcie.txt", {.pcie = BytesPerSecond{16e9}})), 4);
}

TEST(TopologyMatrix, TwoGpusOfTwoSocketsAreJoinedByBothSockets) {
  const Topology topology =
      topology_of(read_topology_matrix("a.txt", "GPU0 GPU1 CPU Affinity\nGPU0 X SOC\nGPU1 SOC X\n", given_rates));
  EXPECT_EQ(route_between(topology, 0, 1)->vertices, (Path{0, 2, 3, 1}));
  EXPECT_EQ(route_between(topology, 0, 1)->rate, BytesPerSecond{10e9});
}

TEST(TopologyMatrix, MistakesNameTheirPlace) {
  const std::string table = "GPU0 GPU1 GPU2\nGPU0 X NV2 SYS\nGPU1 NV2 X PIX\nGPU2 SYS PIX X\n";
  const auto refusal_with = [&](const std::string& from, const std::string& to) {
    return topology_refusal(read_topology_matrix, replaced(table, from, to));
  };
  EXPECT_EQ(refusal_with("NV2", "NV2"), "accepted");
  EXPECT_EQ(topology_refusal(read_topology_matrix, ""),
            "a.txt:1:1: no line names the GPUs; give what `nvidia-smi topo -m`, `rocm-smi --showtopo` "
            "or `amd-smi topology` prints");
  EXPECT_EQ(
      refusal_with("GPU1 GPU2\n", "GPU2 GPU1\n"),
      "a.txt:1:11: GPU1 comes after GPU2, but GPUs must be in ascending order; give what `nvidia-smi topo -m` prints");
  EXPECT_EQ(refusal_with("GPU2 SYS PIX X\n", ""), "a.txt:1:1: no row for GPU2; give what `nvidia-smi topo -m` prints");
  EXPECT_EQ(refusal_with("GPU2 SYS PIX X", "GPU2 SYS PIX"),
            "a.txt:4:1: GPU2 has 2 cells, but the first line names 3 devices; give what `nvidia-smi topo -m` prints");
  EXPECT_EQ(refusal_with("GPU2 SYS PIX X", "GPU2 SYS"),
            "a.txt:4:1: GPU2 has 1 cell, but the first line names 3 devices; give what `nvidia-smi topo -m` prints");
  EXPECT_EQ(topology_refusal(read_topology_matrix, "GPU0\nGPU0\n"),
            "a.txt:2:1: GPU0 has 0 cells, but the first line names 1 device; give what `nvidia-smi topo -m` prints");
  EXPECT_EQ(refusal_with("GPU2 SYS", "GPU1 SYS"),
            "a.txt:4:1: GPU1 has two rows; give what `nvidia-smi topo -m` prints");
  EXPECT_EQ(refusal_with("GPU2 SYS", "GPU3 SYS"),
            "a.txt:4:1: GPU3 is not in the first line; give what `nvidia-smi topo -m` prints");
  EXPECT_EQ(refusal_with("NV2", "NV19"), "a.txt:2:8: 'NV19' is not a number of NVLinks; a GPU has NV1 to NV18");
  EXPECT_EQ(refusal_with("NV2", "NV-2"), "a.txt:2:8: 'NV-2' is not a number of NVLinks; a GPU has NV1 to NV18");
  EXPECT_EQ(refusal_with("NV2", "XGMI"),
            "a.txt:2:8: unknown connection 'XGMI'; known connections: X, NV1 to NV18, PIX, PXB, PHB, NODE, SYS");
  EXPECT_EQ(refusal_with("NV2", "NV4"),
            "a.txt:3:6: this contradicts row GPU0, column GPU1; give what `nvidia-smi topo -m` prints");
  EXPECT_EQ(refusal_with("PIX X\n", "PIX PIX\n"),
            "a.txt:4:14: the connection of GPU2 with itself must be X; correct the cell");
  EXPECT_EQ(topology_refusal(read_topology_matrix, "GPU0 GPU1 GPU2\nGPU0 X PIX SYS\nGPU1 PIX X PIX\nGPU2 SYS PIX X\n"),
            "a.txt:2:12: GPU0 and GPU2 are farther apart in this cell than their connections to other GPUs allow; give "
            "what `nvidia-smi topo -m` prints");
  EXPECT_EQ(topology_refusal(read_topology_matrix, table, {.pcie = BytesPerSecond{1e9}}),
            "a.txt:2:8: the table does not state the rate of an NVLink; set nvlink_rate next to the file");
  EXPECT_EQ(topology_refusal(read_topology_matrix, table, {.nvlink = BytesPerSecond{1e9}}),
            "a.txt:3:12: the table does not state the rate of PCIe; set pcie_rate next to the file");
}

TEST(NearestNics, TakeTheNicThatFewestGpusUse) {
  EXPECT_EQ(nearest_nics({{1, 1}, {1, 1}, {1, 1}, {1, 1}}), (Path{0, 1, 0, 1}));
  EXPECT_EQ(nearest_nics({{2, 1}, {1, 1}, {1, 2}}), (Path{1, 0, 0}));
}

TEST(NearestNics, IgnoreNicsThatNoGpuUses) {
  EXPECT_EQ(nearest_nics({{5, 1, 5, 2}, {5, 2, 5, 1}}), (Path{0, 1}));
  EXPECT_EQ(nearest_nics({{}, {}}), Path{});
}

}  // namespace
}  // namespace commfuse
