// SPDX-License-Identifier: Apache-2.0
// Tests the output of `nvidia-smi topo -m` in the layouts of real machines, and other files that users give by mistake.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/topology_file.h"
#include "tests/model/formats/built_topology.h"
#include "tests/refusal.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

using Path = std::vector<int>;

constexpr WireRates nvlink_rates{
    .nvlink = BytesPerSecond{25e9}, .pcie = BytesPerSecond{50e9}, .root = BytesPerSecond{40e9}};

/// A table, which smi_text() prints as the tool does: with tabs between cells and an underlined first line.
struct SmiTable {
  std::vector<std::string> gpus;
  std::vector<std::string> nics;
  std::function<std::string(int gpu, int device)> cell;  // devices: GPUs, then NICs
  std::string columns = "CPU Affinity\tNUMA Affinity\tGPU NUMA ID";
  std::function<std::string(int gpu)> affinity = [](int) { return "0-55,112-167\t0\t\tN/A"; };
};

std::vector<std::string> named(std::string_view prefix, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.push_back(fmt::format("{}{}", prefix, i));
  }
  return names;
}

std::string smi_text(const SmiTable& table) {
  std::string text = "\t\x1b[4m";
  for (const std::vector<std::string>* const names : {&table.gpus, &table.nics}) {
    for (const std::string& name : *names) {
      text += name + "\t";
    }
  }
  text += table.columns + "\x1b[0m\n";
  const int gpus = static_cast<int>(table.gpus.size());
  const int devices = gpus + static_cast<int>(table.nics.size());
  for (int gpu = 0; gpu < gpus; ++gpu) {
    text += table.gpus[static_cast<std::size_t>(gpu)] + "\t";
    for (int device = 0; device < devices; ++device) {
      text += (gpu == device ? " X " : table.cell(gpu, device)) + "\t";
    }
    text += table.affinity(gpu) + "\n";
  }
  for (const std::string& nic : table.nics) {
    text += nic + "\tSYS\t X \t\t\n";  // Rows of NICs are not read.
  }
  text += "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n";
  if (!table.nics.empty()) {
    text += "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_0\n\n";
  }
  return text;
}

NodeWires read_matrix(const std::string& text, const WireRates& rates = nvlink_rates) {
  return read_topology_matrix("topo.txt", text, rates);
}

Route route(const NodeWires& wires, int a, int b) { return *route_between(test::topology_of(wires), a, b); }

std::string matrix_refusal(const std::string& text, const WireRates& rates = nvlink_rates) {
  return test::refusal_of([&] { read_matrix(text, rates); });
}

TEST(SmiLayouts, SixteenGpusOfDgx2AreOnACrossbar) {
  const NodeWires wires = read_matrix(smi_text(
      {.gpus = named("GPU", 16),
       .nics = {"mlx5_0", "mlx5_1"},
       .cell = [](int gpu, int device) { return device < 16                   ? "NV6"
                                                : (gpu < 8) == (device == 16) ? "PIX"
                                                                              : "SYS"; },
       .columns = "CPU Affinity",
       .affinity = [](int) { return "0-23,48-71"; }}));
  EXPECT_EQ(wires.gpus, 16);
  EXPECT_EQ(route(wires, 0, 15).vertices, (Path{0, 16, 15}));
  EXPECT_EQ(route(wires, 0, 15).rate, BytesPerSecond{150e9});
  EXPECT_EQ(wires.nic_of_gpu, (Path{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(SmiLayouts, DgxA100HasTwelveLinksToItsSwitchesAndTwoNicsForTwoGpus) {
  const NodeWires wires = read_matrix(smi_text(
      {.gpus = named("GPU", 8),
       .nics = named("NIC", 10),
       .cell = [](int gpu, int device) { return device < 8                    ? "NV12"
                                                : (device - 8) / 2 == gpu / 2 ? "PXB"
                                                                              : "SYS"; },
       .affinity = [](int) { return "48-63,176-191\t3\t\tN/A"; }}));
  EXPECT_EQ(route(wires, 0, 7).rate, BytesPerSecond{300e9});
  EXPECT_EQ(wires.nic_of_gpu, (Path{0, 1, 2, 3, 4, 5, 6, 7}));  // Neither of the two storage NICs is used.
}

TEST(SmiLayouts, FourA100WithoutASwitchAreAMesh) {
  const NodeWires wires = read_matrix(smi_text({.gpus = named("GPU", 4), .cell = [](int, int) { return "NV4"; }}));
  EXPECT_EQ(route(wires, 0, 3).vertices, (Path{0, 3}));
  EXPECT_EQ(route(wires, 0, 3).rate, BytesPerSecond{100e9});
}

TEST(SmiLayouts, AnHgxOfEightHasEighteenLinksOfItsGeneration) {
  const SmiTable table{.gpus = named("GPU", 8), .nics = named("NIC", 8), .cell = [](int gpu, int device) {
                         return device < 8 ? "NV18" : device - 8 == gpu ? "PIX" : "NODE";
                       }};
  EXPECT_EQ(route(read_matrix(smi_text(table)), 0, 7).rate, BytesPerSecond{450e9});  // H100, H200
  EXPECT_EQ(route(read_matrix(smi_text(table), {.nvlink = BytesPerSecond{50e9}}), 0, 7).rate,
            BytesPerSecond{900e9});  // B200, B300
}

TEST(SmiLayouts, ATrayOfGraceBlackwellHasNumaNodesOfItsGpus) {
  const NodeWires wires =
      read_matrix(smi_text({.gpus = named("GPU", 4),
                            .nics = named("NIC", 6),
                            .cell = [](int, int device) { return device < 4 ? "NV18" : "SYS"; },
                            .affinity = [](int gpu) { return fmt::format("0-71\t0,3-9,11-17\t\t{}", 2 + 8 * gpu); }}),
                  {.nvlink = BytesPerSecond{50e9}});
  EXPECT_EQ(route(wires, 0, 3).vertices, (Path{0, 4, 3}));
  EXPECT_EQ(route(wires, 0, 3).rate, BytesPerSecond{900e9});
  EXPECT_EQ(wires.nic_of_gpu, (Path{0, 1, 2, 3}));
}

TEST(SmiLayouts, BridgedPairsOfH100NvlReachOthersOverPcie) {
  // Vertex 4, after the GPUs, is the root that joins the host bridges of GPUs 0 to 3.
  const NodeWires wires = read_matrix(smi_text(
      {.gpus = named("GPU", 4), .cell = [](int gpu, int device) { return gpu / 2 == device / 2 ? "NV12" : "NODE"; }}));
  EXPECT_EQ(route(wires, 0, 1).rate, BytesPerSecond{300e9});
  EXPECT_EQ(route(wires, 2, 3).rate, BytesPerSecond{300e9});
  EXPECT_EQ(route(wires, 0, 2).vertices, (Path{0, 4, 2}));
  EXPECT_EQ(route(wires, 0, 2).rate, BytesPerSecond{50e9});
}

TEST(SmiLayouts, EightL40sAreJoinedBySwitchesBridgesAndSockets) {
  // GPUs 0 and 1 are below a switch, 2 below another switch of the same host bridge, 3 below another bridge; 4 to 7
  // likewise.
  const NodeWires wires = read_matrix(smi_text({.gpus = named("GPU", 8), .cell = [](int gpu, int device) {
                                                  if (gpu / 4 != device / 4) {
                                                    return "SYS";
                                                  }
                                                  const int farther = std::max(gpu % 4, device % 4);
                                                  return farther == 1 ? "PIX" : farther == 2 ? "PHB" : "NODE";
                                                }}));
  using enum VertexKind;
  EXPECT_EQ(wires.others, (std::vector<VertexKind>{bridge, bridge, root, root, root, root}));
  EXPECT_EQ(route(wires, 0, 1).vertices, (Path{0, 8, 1}));
  EXPECT_EQ(route(wires, 0, 2).vertices, (Path{0, 8, 10, 2}));
  EXPECT_EQ(route(wires, 0, 3).vertices, (Path{0, 8, 10, 12, 3}));
  EXPECT_EQ(route(wires, 3, 7).vertices, (Path{3, 12, 13, 7}));
  EXPECT_EQ(route(wires, 3, 7).rate, BytesPerSecond{40e9});
}

TEST(SmiLayouts, OmitsGpusThatAContainerHides) {
  const NodeWires wires =
      read_matrix(smi_text({.gpus = {"GPU2", "GPU5", "GPU6", "GPU7"}, .cell = [](int, int) { return "NV18"; }}));
  EXPECT_EQ(wires.gpus, 4);
  EXPECT_EQ(route(wires, 0, 3).rate, BytesPerSecond{450e9});
  EXPECT_EQ(matrix_refusal("GPU4 GPU6\nGPU4 X NV2\nGPU6 NV3 X\n"),
            "topo.txt:3:6: this contradicts row GPU4, column GPU6; give what `nvidia-smi topo -m` prints");
}

TEST(SmiLayouts, PromptsQuotesAndEscapesDoNotMatter) {
  const std::string plain = "GPU0 GPU1 CPU Affinity\nGPU0 X NV4 0-31\nGPU1 NV4 X 0-31\n";
  const NodeWires wires = read_matrix(plain);
  for (const std::string& text : {
           "me@node:~$ nvidia-smi topo -m\n" + plain + "me@node:~$ \n",
           std::string("> \tGPU0\tGPU1\tCPU Affinity\r\n> GPU0\t X \tNV4\t0-31\r\n> GPU1\tNV4\t X \t0-31\r\n"),
           std::string("#\tGPU0\tGPU1\tCPU Affinity\n#\tGPU0\t X \tNV4\t0-31\n#\tGPU1\tNV4\t X \t0-31\n"),
           std::string("| | GPU0 | GPU1 | CPU Affinity |\n| GPU0 | X | NV4 | 0-31 |\n| GPU1 | NV4 | X | 0-31 |\n"),
           std::string(
               "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\x1b[0m\x1b[K\nGPU0\t\x1b[32m X \tNV4\t0-31\nGPU1\tNV4\t X \t0-31\n"),
           std::string("[4mGPU0\tGPU1\tCPU Affinity[0m\nGPU0\t X \tNV4\t0-31\nGPU1\tNV4\t X \t0-31\n"),
           std::string("^[[4mGPU0\tGPU1\tCPU Affinity^[[0m\nGPU0\t X \tNV4\t0-31\nGPU1\tNV4\t X \t0-31\n"),
           std::string("\\u001b[4mGPU0\tGPU1\tCPU Affinity\\u001b[0m\nGPU0\t X \tNV4\t0-31\nGPU1\tNV4\t X \t0-31\n"),
       }) {
    EXPECT_EQ(matrix_refusal(text), "accepted") << text;
    EXPECT_EQ(route(read_matrix(text), 0, 1).rate, route(wires, 0, 1).rate) << text;
  }
}

TEST(SmiLayouts, IgnoresASecondTableOfPeers) {
  const std::string table = "\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n";
  EXPECT_EQ(matrix_refusal(table + "$ nvidia-smi topo -p2p rw\n \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n"),
            "accepted");
  EXPECT_EQ(matrix_refusal(table + table), "topo.txt:4:2: GPU0 has two rows; give what `nvidia-smi topo -m` prints");
}

TEST(SmiLayouts, ACellOfANicThatTheAffinityCutsIsRead) {
  // On Azure's ND A100 v4 the tool prints "PH0-115" for PHB and 0-115.
  const auto nics = [](const std::string& cell) {
    return fmt::format("GPU0 GPU1 NIC0 NIC1 CPU Affinity\nGPU0 X NV12 PHB {0}\nGPU1 NV12 X SYS {0}\n", cell);
  };
  EXPECT_EQ(read_matrix(nics("PH0-115")).nic_of_gpu, (Path{0, 1}));
  EXPECT_EQ(matrix_refusal(nics("P0-115")),
            "topo.txt:2:17: unknown connection 'P0-115'; known connections: X, NV1 to NV18, PIX, PXB, PHB, NODE, SYS");
}

TEST(SmiLayouts, SlicesAreRefused) {
  const std::string remedy =
      "MIG slices have no NVLink and no peer access, so no link connects them; disable MIG with `nvidia-smi -mig 0` "
      "and "
      "print the table again, or remove `file` and write `gpus_per_node: 1` for one slice";
  EXPECT_EQ(matrix_refusal("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n  MIG 1g.10gb     Device  0: (UUID: MIG-2)\n"
                           "GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n"),
            "topo.txt:2:3: " + remedy);
  EXPECT_EQ(matrix_refusal("| Fan  Temp | Memory-Usage | MIG M. |\n| N/A   28C  |              | Enabled |\n"),
            "topo.txt:2:31: " + remedy);
  EXPECT_EQ(matrix_refusal("| Fan  Temp | MIG M. |\n| N/A   28C  | Disabled |\nGPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n"),
            "accepted");
}

TEST(SmiLayouts, OutputOfOtherToolsIsNamed) {
  const std::string smi = "; give what `nvidia-smi topo -m` prints";
  const std::string gaudi = "; remove `file` and write `kind: full_mesh`, as configs/hardware/gaudi-2.yaml does";
  EXPECT_EQ(
      matrix_refusal("GPU0 GPU1\nGPU0 X OK\nGPU1 OK X\n"),
      "topo.txt:2:8: 'OK' is a cell of `nvidia-smi topo -p2p`, which states whether GPUs reach each other, but not "
      "over which links" +
          smi);
  EXPECT_EQ(matrix_refusal("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n"),
            "topo.txt:2:3: `nvidia-smi nvlink -s` states the rates of links, but not which GPUs they connect" + smi);
  EXPECT_EQ(matrix_refusal("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"),
            "topo.txt:1:1: `nvidia-smi -L` does not show links" + smi);
  EXPECT_EQ(matrix_refusal("| NVIDIA-SMI 535.1  Driver Version: 535.1  CUDA Version: 12.2 |\n"),
            "topo.txt:1:3: plain `nvidia-smi` does not show links" + smi);
  EXPECT_EQ(matrix_refusal("CA 'mlx5_0'\n\tCA type: MT4129\n"),
            "topo.txt:1:1: `ibstat` does not show links between GPUs" + smi);
  EXPECT_EQ(matrix_refusal("Machine (2015GB total)\n  Package L#0\n"),
            "topo.txt:1:1: `lstopo` does not show links between GPUs" + smi);
  EXPECT_EQ(
      matrix_refusal(
          "modID   CPU Affinity    NUMA Affinity\n-----   ------------    -------------\n0       0-39, 80-119    0\n"),
      "topo.txt:1:1: `hl-smi topo` names the CPUs of each Gaudi, but no links between them" + gaudi);
  EXPECT_EQ(matrix_refusal("{\n  \"HCCL_PORT\": 5332\n}\n"),
            "topo.txt:2:3: a configuration of HCCL does not state links between Gaudis" + gaudi);
  EXPECT_EQ(matrix_refusal("{\"card0\": {}}\n"),
            "topo.txt:1:1: JSON is not supported; give what `rocm-smi --showtopo --shownodesbw` or `amd-smi topology` "
            "prints");
  EXPECT_EQ(matrix_refusal("\tNPU0\tNPU1\tCPU Affinity\nNPU0\tX\tHCCS\t0-23\nNPU1\tHCCS\tX\t0-23\n"),
            "topo.txt:1:2: the table of `npu-smi info -t topo` is not supported; remove `file` and write `kind: "
            "full_mesh` or `kind: nvswitch`");
}

}  // namespace
}  // namespace commfuse
