// SPDX-License-Identifier: Apache-2.0
#include "sim/score/known_machines.h"

#include <gtest/gtest.h>

#include "sim/score/machine_column.h"

namespace commfuse::score {
namespace {

Machine machine(std::string name, std::string accelerator, std::int64_t gigabytes, std::vector<std::string> known_as,
                int nodes = 1) {
  Machine result;
  result.name = std::move(name);
  result.known_as = std::move(known_as);
  result.accelerator.name = std::move(accelerator);
  result.accelerator.hbm_capacity = {gigabytes * 1'000'000'000};
  result.gpus_per_node = 8;
  result.nodes = nodes;
  return result;
}

KnownMachines some_machines() {
  return KnownMachines({machine("a100-sxm-80", "A100 80", 80, {"A100", "A100-SXM4"}),
                        machine("a100-sxm-40", "A100 40", 40, {"A100-SXM4-40GB"}),
                        machine("h100-sxm", "H100 SXM", 80, {"H100", "H100-SXM5", "h100_dgx"}),
                        machine("h100-pcie", "H100 PCIe", 80, {}), machine("dgx-h100-x2", "H100 SXM", 80, {}, 2),
                        machine("cloud-h100-x4", "H100 SXM", 80, {"Cloud A3"}, 4)});
}

std::string by_name(std::string_view cell) {
  const KnownMachines machines = some_machines();
  const FoundMachine match = machines.by_name(cell);
  return match.machine == nullptr ? match.why_not : match.machine->name;
}

std::string in_prose(std::string_view text) {
  const KnownMachines machines = some_machines();
  const FoundMachine match = machines.in_prose(text);
  return match.machine == nullptr ? match.why_not : match.machine->name;
}

TEST(KnownMachines, ACellMayAddVendorAndMemoryInAnyCase) {
  EXPECT_EQ(by_name("H100-SXM5-80GB"), "h100-sxm");
  EXPECT_EQ(by_name("NVIDIA H100 SXM"), "h100-sxm");
  EXPECT_EQ(by_name("h100_dgx"), "h100-sxm");
  EXPECT_EQ(by_name("h100"), "h100-sxm");
  EXPECT_EQ(by_name("a100-sxm-80"), "a100-sxm-80");
  EXPECT_EQ(by_name("A100-SXM4-40GB"), "a100-sxm-40");
  EXPECT_EQ(by_name("A100-SXM4-80GB"), "a100-sxm-80");
  EXPECT_EQ(by_name("NVIDIA H100 PCIe"), "h100-pcie");
}

TEST(KnownMachines, KeepOnlyLeavesOutOtherMachinesAndKeepsClusters) {
  KnownMachines machines = some_machines();
  machines.keep_only({"h100-sxm"});
  const FoundMachine kept = machines.by_name("H100");
  ASSERT_NE(kept.machine, nullptr);
  EXPECT_EQ(kept.machine->name, "h100-sxm");
  const FoundMachine cluster = machines.over_nodes(*kept.machine, 2, "");
  ASSERT_NE(cluster.machine, nullptr);
  EXPECT_EQ(cluster.machine->name, "dgx-h100-x2");
  for (const FoundMachine& other : {machines.by_name("A100"), machines.in_prose("8 x A100")}) {
    EXPECT_EQ(other.machine, nullptr);
    EXPECT_TRUE(other.was_named());
    EXPECT_EQ(other.why_not, "measured on hardware that --hardware does not name");
  }
  EXPECT_FALSE(machines.by_name("TPU").was_named());
  EXPECT_TRUE(machines.unless_left_out(machine("dgx-h100-x8", "H100 SXM", 80, {}, 8)).machine != nullptr);
  EXPECT_EQ(machines.unless_left_out(machine("dgx-a100-x2", "A100 80", 80, {}, 2)).machine, nullptr);
  EXPECT_EQ(machines.unless_left_out(machine("h100-sxm-500w", "H100 SXM", 80, {})).machine, nullptr);
}

TEST(KnownMachines, ALeftOutMachineOfAFrameworkIsNotReplaced) {
  KnownMachines machines(
      {machine("h100-sxm", "H100 SXM", 80, {"H100"}), machine("h100-sxm-vllm", "H100 SXM vLLM", 80, {"H100 vLLM"})});
  machines.keep_only({"h100-sxm"});
  EXPECT_EQ(MachineColumn(machines).of("H100").machine->name, "h100-sxm");
  EXPECT_EQ(MachineColumn(machines, "vLLM").of("H100").machine, nullptr);
}

TEST(KnownMachines, AnEntryInheritsAMachineThatIsLeftOut) {
  KnownMachines machines = some_machines();
  machines.keep_only({"h100-sxm"});
  const MachinesByGpus by_gpus("8: one node of H100; 16: A100; 32: more", machines);
  EXPECT_NE(by_gpus.of(8).machine, nullptr);
  EXPECT_EQ(by_gpus.of(16).machine, nullptr);
  EXPECT_EQ(by_gpus.of(32).machine, nullptr);
}

TEST(KnownMachines, AnotherFormOrMemoryIsAnotherMachine) {
  EXPECT_EQ(by_name("A100 PCIe"), "no hardware file is known as 'A100 PCIe'");
  EXPECT_EQ(by_name("h100_pairwise_nvlink"), "no hardware file is known as 'h100_pairwise_nvlink'");
  EXPECT_EQ(by_name("H100-64GB"), "no hardware file is known as 'H100-64GB'");
  EXPECT_EQ(by_name("GH200"), "no hardware file is known as 'GH200'");
  EXPECT_EQ(by_name(""), "no hardware file is known as ''");
}

TEST(KnownMachines, ProseMustNameExactlyOneMachine) {
  EXPECT_EQ(in_prose("8x H100-SXM5-80GB, NVSwitch, one node"), "h100-sxm");
  EXPECT_EQ(in_prose("8x A100-SXM4-40GB, NVSwitch, one node (as printed by nccl-tests)"), "a100-sxm-40");
  EXPECT_EQ(in_prose("HGX nodes, 8xH100-80GB each, 8x ConnectX-7 400 Gb/s InfiniBand"), "h100-sxm");
  EXPECT_EQ(in_prose("4x H100 NVL, NVLink pairs"), "no hardware file is known as 'h100'");
  EXPECT_EQ(in_prose("2 nodes x 4 GH200"), "no hardware file is known as 'gh200'");
  EXPECT_EQ(in_prose("ngpus=64: 8x H100; 72: one GB200 NVL72 rack"),
            "the table names several machines, gb200 and h100-sxm, and no column states which");
  EXPECT_EQ(in_prose("some cluster"), "no hardware file matches the table's description of its machine");
}

TEST(MachinesByGpus, AreReadFromACommentThatListsThem) {
  const KnownMachines machines = some_machines();
  const MachinesByGpus by_gpus("ngpus=64: 8 nodes x 8 H100; 128: twice as many (InfiniBand); 4: one A100 box",
                               machines);
  ASSERT_TRUE(by_gpus.lists_machines());
  EXPECT_EQ(by_gpus.of(64).machine->name, "h100-sxm");
  // The entry for 128 GPUs names no machine, so it has the machine of the previous entry.
  EXPECT_EQ(by_gpus.of(128).machine->name, "h100-sxm");
  EXPECT_EQ(by_gpus.of(4).machine->name, "a100-sxm-80");
  EXPECT_EQ(by_gpus.of(8).why_not, "the table's comment does not state which machine has 8 GPUs");
  EXPECT_EQ(by_gpus.of(1).why_not, "the table's comment does not state which machine has 1 GPU");
  const MachinesByGpus without_machine("ngpus=2: something", machines);
  EXPECT_EQ(without_machine.of(2).machine, nullptr);
  for (const char* comment : {"", "8x H100, one node", "ngpus=64: H100; then A100", "ngpus=: H100", "64"}) {
    EXPECT_FALSE(MachinesByGpus(comment, machines).lists_machines()) << comment;
  }
}

TEST(KnownMachines, SeveralNodesAreTheNamedClusterOrElseTheDefault) {
  KnownMachines machines = some_machines();
  const Machine& node = *machines.by_name("h100").machine;
  EXPECT_EQ(machines.over_nodes(node, 1, "").machine, &node);
  EXPECT_EQ(machines.over_nodes(node, 2, "two nodes").machine->name, "dgx-h100-x2");
  EXPECT_EQ(machines.over_nodes(node, 8, "two nodes").machine->nodes, 8);
  EXPECT_EQ(machines.over_nodes(node, 2, "2 nodes of Cloud A3").machine->name, "cloud-h100-x4");
  EXPECT_EQ(machines.over_nodes(*machines.by_name("a100").machine, 2, "").why_not,
            "no cluster file has several nodes of a100-sxm-80");
}

}  // namespace
}  // namespace commfuse::score
