// SPDX-License-Identifier: Apache-2.0
// Checks planted nodes: a healthy node, and nodes with one fault each.
#include "validate/health/checks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/validate/health/planted_node.h"

namespace commfuse::validate {
namespace {

using commfuse::test::PlantedNode;

const std::string gpu_0 = "sys/devices/pci0000:00/0000:00:01.0/0000:10:00.0/0000:20:00.0/0000:30:00.0";
const std::string nic_1 = "sys/devices/pci0000:01/0000:01:01.0/0000:11:00.0/0000:21:01.0/0000:41:00.0";
const std::string port_of_gpu_0 = "sys/devices/pci0000:00/0000:00:01.0/0000:10:00.0/0000:20:00.0";

/// Returns what the driver's library reports about the planted GPUs.
ManagementFacts two_gpus() {
  const auto gpu = [](const char* address) {
    return GpuFacts{.name = "NVIDIA H100 80GB HBM3",
                    .address = address,
                    .clock_mhz = 1980,
                    .max_clock_mhz = 1980,
                    .celsius = 40,
                    .throttled_by = 0,
                    .has_ecc = true,
                    .uncorrected = 0,
                    .remap_pending = false,
                    .remap_failed = false,
                    .links = 18,
                    .links_up = 18,
                    .fabric = FabricState::completed};
  };
  return {.missing = "",
          .driver = "550.54.15",
          .gpus = {gpu("0000:30:00.0"), gpu("0000:31:00.0")},
          .peers = {{0, 1, 0, 0}, {1, 0, 0, 0}}};
}

std::vector<HealthCheck> checks_of(const PlantedNode& node, const ManagementFacts& management = two_gpus()) {
  return health_checks(node_facts(NodeFiles(node.root())), management);
}

/// Returns the checks that are not ok.
std::vector<HealthCheck> complaints_of(const PlantedNode& node, const ManagementFacts& management = two_gpus()) {
  std::vector<HealthCheck> checks = checks_of(node, management);
  std::erase_if(checks, [](const HealthCheck& check) { return check.status == HealthStatus::ok; });
  return checks;
}

struct Healthy : testing::Test {
  Healthy() { node.plant_healthy_node(); }
  PlantedNode node;
};
using HealthChecks = Healthy;

TEST_F(HealthChecks, AHealthyNodeIsOkEverywhere) {
  std::vector<std::string> lines;
  for (const HealthCheck& check : checks_of(node)) {
    lines.push_back(check.name + " " + name_of(check.status) + ": " + check.found);
  }
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "driver ok: NVIDIA 550.54.15, 2 x NVIDIA H100 80GB HBM3",
                       "peers ok: 2 GPUs with 18 NVLinks up per GPU; all 2 ordered pairs have peer access",
                       "fabric ok: completed on 2 GPUs",
                       "ecc ok: no uncorrected memory error, no row to remap on 2 GPUs",
                       "xid ok: no Xid or SXid in the kernel's log",
                       "clocks ok: 1980 of 1980 MHz, not throttled",
                       "pcie ok: 2 GPUs at PCIe generation 5 x16, 2 NICs at PCIe generation 5 x16",
                       "numa ok: 2 GPUs on 2 NUMA nodes, a NIC near each",
                       "rdma ok: active: 2 ports at 400 Gb/sec (4X NDR)",
                       "roce ok: no active RoCE port",
                       "congestion ok: no active RoCE port",
                       "gdr ok: nvidia_peermem is loaded",
                       "acs ok: off at 8 bridges above GPUs and NICs",
                       "iommu ok: off",
                   }));
}

TEST_F(HealthChecks, AGpuAtGeneration3WhereGeneration5IsPossibleIsBad) {
  node.write(gpu_0 + "/current_link_speed", "8.0 GT/s PCIe");
  EXPECT_EQ(complaints_of(node),
            (std::vector<HealthCheck>{
                {.name = "pcie",
                 .subject = "0000:30:00.0",
                 .status = HealthStatus::bad,
                 .found = "GPU at PCIe generation 3 x16, PCIe generation 5 x16 is possible",
                 .wrong = "the link runs below the speed or width that both ends support",
                 .remedy = "reboot; if this recurs, reseat the card and its riser or cable, update the firmware, and "
                           "check the slot's speed in the BIOS"}}));
}

TEST_F(HealthChecks, AnIdleGpuMaySaveItsLinksPower) {
  node.write(gpu_0 + "/current_link_speed", "2.5 GT/s PCIe");
  const std::vector<HealthCheck> reported = complaints_of(node);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].status, HealthStatus::warn);
  node.write(gpu_0 + "/current_link_width", "8");  // unused lanes are not powered off
  EXPECT_EQ(complaints_of(node).at(0).status, HealthStatus::bad);
}

TEST_F(HealthChecks, ANarrowLinkOfANicAndASlowOneOfASwitchAreBad) {
  node.write(nic_1 + "/current_link_width", "8");
  node.write("sys/devices/pci0000:00/0000:00:01.0/0000:10:00.0/current_link_speed", "16.0 GT/s PCIe");
  const std::vector<HealthCheck> reported = complaints_of(node);
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[0].found, "PCIe switch at PCIe generation 4 x16, PCIe generation 5 x16 is possible");
  EXPECT_EQ(reported[0].subject, "0000:10:00.0");
  EXPECT_EQ(reported[1].found, "NIC at PCIe generation 5 x8, PCIe generation 5 x16 is possible");
  EXPECT_EQ(reported[1].subject, "0000:41:00.0");
}

TEST_F(HealthChecks, ASlotThatIsSlowerThanItsCardIsAWarning) {
  node.set_link(port_of_gpu_0, "16.0 GT/s PCIe", "16");
  node.write(gpu_0 + "/current_link_speed", "16.0 GT/s PCIe");
  const std::vector<HealthCheck> reported = complaints_of(node);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].status, HealthStatus::warn);
  EXPECT_EQ(reported[0].found, "GPU for PCIe generation 5 x16 in a slot of PCIe generation 4 x16");
}

TEST_F(HealthChecks, APortThatIsDownIsBadAndOneThatIsTurnedOffAWarning) {
  node.set_port("mlx5_0", "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)");
  node.set_port("mlx5_1", "1: DOWN", "3: Disabled", "10 Gb/sec (4X SDR)");
  const std::vector<HealthCheck> reported = complaints_of(node);
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[0].subject, "mlx5_0/1");
  EXPECT_EQ(reported[0].status, HealthStatus::bad);
  EXPECT_EQ(reported[0].found, "InfiniBand port is DOWN, physically Polling");
  EXPECT_EQ(reported[0].remedy, "check the cable, the transceiver and the switch's port (mlxlink, ibstat)");
  EXPECT_EQ(reported[1].status, HealthStatus::warn);
  node.set_port("mlx5_0", "2: INIT", "5: LinkUp", "400 Gb/sec (4X NDR)");
  EXPECT_EQ(complaints_of(node).at(0).remedy, "start a subnet manager (opensm), or look for the port on the switch");
}

TEST_F(HealthChecks, APortSlowerThanOthersOfItsKindIsBad) {
  node.set_port("mlx5_1", "4: ACTIVE", "5: LinkUp", "200 Gb/sec (4X HDR)");
  const std::vector<HealthCheck> reported = complaints_of(node);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].found, "200 Gb/sec (4X HDR), 400 Gb/s on other ports of this kind");
  node.write("sys/class/infiniband/mlx5_1/board_id", "MT_0000000224");  // another kind: nothing to compare
  EXPECT_EQ(complaints_of(node), std::vector<HealthCheck>{});
}

TEST_F(HealthChecks, WithoutPeermemOrDmaBufGpuMemoryIsCopied) {
  node.remove("sys/module/nvidia_peermem");
  const std::vector<HealthCheck> reported = complaints_of(node);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].name, "gdr");
  EXPECT_EQ(reported[0].status, HealthStatus::bad);
  EXPECT_EQ(reported[0].found, "nvidia_peermem is not loaded, and the driver has no DMA-BUF");
  node.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15");
  EXPECT_EQ(complaints_of(node), std::vector<HealthCheck>{});
  node.write("proc/sys/kernel/osrelease", "5.4.0-150-generic");
  EXPECT_EQ(complaints_of(node).size(), 1U);
}

TEST_F(HealthChecks, AcsThatRedirectsInASwitchIsBad) {
  node.write_acs(port_of_gpu_0, 0x1D);  // the value that BIOSes set: SrcValid, ReqRedir, CmpltRedir, UpstreamFwd
  const std::vector<HealthCheck> reported = complaints_of(node);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].status, HealthStatus::bad);
  EXPECT_EQ(reported[0].found, "ACS redirects requests at 1 bridge: 0000:20:00.0");
  node.write_acs(port_of_gpu_0, 0x01);  // SrcValid alone redirects nothing
  EXPECT_EQ(complaints_of(node), std::vector<HealthCheck>{});
  node.write(port_of_gpu_0 + "/config", std::string(64, '\0'));  // the part that users other than root may read
  EXPECT_EQ(complaints_of(node).at(0).found, "the bridges' configuration is readable only by root");
}

// Requests between devices behind one switch do not reach its root port.
TEST_F(HealthChecks, AcsThatRedirectsOnlyAtARootPortIsAWarning) {
  node.write_acs("sys/devices/pci0000:00/0000:00:01.0", 0x1D);
  const std::vector<HealthCheck> reported = complaints_of(node);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].status, HealthStatus::warn);
  EXPECT_EQ(reported[0].found, "ACS redirects requests at 1 bridge: 0000:00:01.0");
}

TEST_F(HealthChecks, ACircularListOfCapabilitiesEnds) {
  std::string space(4096, '\0');
  space[0x100] = 0x01;
  space[0x103] = 0x10;  // the next capability points to itself
  node.write(port_of_gpu_0 + "/config", space);
  EXPECT_EQ(complaints_of(node), std::vector<HealthCheck>{});
}

TEST_F(HealthChecks, AnIommuThatTranslatesIsAWarning) {
  node.write("sys/class/iommu/dmar0/name", "dmar0");
  node.write(gpu_0 + "/iommu_group/type", "DMA-FQ");
  const std::vector<HealthCheck> reported = complaints_of(node);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].found, "on, and translates addresses of 0000:30:00.0");
  node.write(gpu_0 + "/iommu_group/type", "identity");
  EXPECT_EQ(complaints_of(node), std::vector<HealthCheck>{});
}

TEST_F(HealthChecks, XidsAreReadFromTheKernelsLog) {
  node.write("dev/kmsg",
             "3,900,5000000,-;NVRM: Xid (PCI:0000:30:00): 79, pid=1, name=python, GPU has fallen off the bus.\n"
             "3,901,5000001,-;NVRM: Xid (PCI:0000:31:00): 31, pid=2, name=python, MMU Fault\n"
             "3,902,5000002,-;NVRM: Xid (PCI:0000:31:00): 31, pid=3, name=python, MMU Fault\n"
             "4,903,5000003,-;nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32\n"
             "4,904,5000004,-;NVRM: Xid (PCI:here): 13\n");
  const std::vector<HealthCheck> reported = complaints_of(node);
  ASSERT_EQ(reported.size(), 3U);
  EXPECT_EQ(reported[0].found, "Xid 79 in the kernel's log");
  EXPECT_EQ(reported[0].status, HealthStatus::bad);
  EXPECT_EQ(reported[1].subject, "0000:31:00");
  EXPECT_EQ(reported[1].status, HealthStatus::warn);
  EXPECT_EQ(reported[2].found, "SXid 12028 in the kernel's log");
  node.remove("dev/kmsg");
  EXPECT_EQ(complaints_of(node).at(0).status, HealthStatus::unknown);
}

TEST_F(HealthChecks, TheLastLineOfALongLogIsRead) {
  constexpr std::size_t size = std::size_t{5} << 20U;
  node.write("dev/kmsg", std::string(size, '.') + "\n3,900,5,-;NVRM: Xid (PCI:0000:30:00): 79, pid=1, name=python\n");
  const std::vector<HealthCheck> reported = complaints_of(node);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].found, "Xid 79 in the kernel's log");
}

TEST_F(HealthChecks, AGpuWithoutADriverAndASilentGpuAreBad) {
  node.remove(gpu_0 + "/driver");
  EXPECT_EQ(complaints_of(node).at(0).found, "no driver is bound to this GPU");
  ManagementFacts management = two_gpus();
  management.gpus.pop_back();
  management.peers.clear();
  EXPECT_EQ(complaints_of(node, management).at(1).found, "2 GPUs on the PCI bus, 1 shown by the driver");
}

TEST_F(HealthChecks, ALibraryOfAnotherVersionThanTheModuleIsBad) {
  ManagementFacts management = two_gpus();
  management.driver = "550.90.07";
  EXPECT_EQ(complaints_of(node, management).at(0).found, "kernel module 550.54.15, library 550.90.07");
}

TEST_F(HealthChecks, ValuesOfTheDriversLibraryAreJudged) {
  ManagementFacts management = two_gpus();
  GpuFacts& gpu = management.gpus[1];
  gpu.links_up = 16;
  gpu.fabric = FabricState::in_progress;
  gpu.remap_pending = true;
  gpu.throttled_by = 0x40;
  gpu.celsius = 91;
  management.peers[0].write = 4;
  std::vector<std::string> reported;
  for (const HealthCheck& check : complaints_of(node, management)) {
    EXPECT_EQ(check.status, HealthStatus::bad);
    reported.push_back(check.name + ", " + check.subject + ": " + check.found);
  }
  EXPECT_EQ(reported, (std::vector<std::string>{
                          "peers, 0000:31:00.0: 16 of 18 NVLinks up, 18 on other GPUs",
                          "peers, GPU 0 to 1: peer access is disabled by a registry key of the driver",
                          "fabric, 0000:31:00.0: the GPU's registration with the NVSwitches is in progress",
                          "ecc, 0000:31:00.0: a memory row is not remapped yet",
                          "clocks, 0000:31:00.0: throttled by hardware thermal slowdown: 1980 of 1980 MHz, 91 C",
                      }));
  gpu.throttled_by = 0x4 | 0x1;  // the power cap and idling are normal for a GPU
  gpu.uncorrected = 2;
  gpu.remap_pending = false;
  const std::vector<HealthCheck> rest = complaints_of(node, management);
  EXPECT_EQ(rest.back().found, "2 uncorrected memory errors since the driver was loaded");
}

TEST_F(HealthChecks, LinksOfGpusOfAnotherModelAreNotMissed) {
  ManagementFacts management = two_gpus();
  management.gpus[0].links = management.gpus[0].links_up = 1;
  management.gpus[1].name = "NVIDIA T1000";
  management.gpus[1].links = management.gpus[1].links_up = 0;
  const auto peers = [&] { return checks_of(node, management).at(1); };
  EXPECT_EQ(peers().found, "2 GPUs with 0 to 1 NVLink up per GPU; all 2 ordered pairs have peer access");
  management.gpus[1] = management.gpus[0];
  EXPECT_EQ(peers().found, "2 GPUs with 1 NVLink up per GPU; all 2 ordered pairs have peer access");
  management.gpus[1].links_up = 0;
  EXPECT_EQ(peers().found, "0 of 1 NVLink up, 1 on other GPUs");
  EXPECT_EQ(peers().status, HealthStatus::bad);
}

TEST_F(HealthChecks, ErrorsOfTheFabricCountOnceItIsCompleted) {
  ManagementFacts management = two_gpus();
  management.gpus[0].fabric_error = management.gpus[1].fabric_error = 3;
  management.gpus[1].fabric = FabricState::not_started;
  const std::vector<HealthCheck> reported = complaints_of(node, management);
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[0].found, "the GPU's registration with the NVSwitches failed with error 3");
  EXPECT_EQ(reported[1].found, "the GPU's registration with the NVSwitches has not started");
}

TEST_F(HealthChecks, ALibraryThatDoesNotStartIsBad) {
  const std::vector<HealthCheck> reported = complaints_of(node, {.missing = "it does not start", .is_broken = true});
  EXPECT_EQ(reported.at(0).name, "driver");
  EXPECT_EQ(reported.at(0).status, HealthStatus::bad);
  EXPECT_EQ(reported.at(0).found, "it does not start");
}

TEST_F(HealthChecks, MemoryWithoutEccAndFixedClocksAreWarnings) {
  ManagementFacts management = two_gpus();
  management.gpus[0].has_ecc = false;
  management.gpus[1].throttled_by = 0x2;
  management.gpus[1].clock_mhz = 1200;
  const std::vector<HealthCheck> reported = complaints_of(node, management);
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[0].found, "ECC is off");
  EXPECT_EQ(reported[0].status, HealthStatus::warn);
  EXPECT_EQ(reported[1].found, "throttled by application clock settings: 1200 of 1980 MHz, 40 C");
  EXPECT_EQ(reported[1].remedy, "undo it with nvidia-smi --reset-gpu-clocks and --reset-applications-clocks");
  management.gpus[0].remap_failed = true;
  EXPECT_EQ(complaints_of(node, management).at(0).remedy, "replace the GPU");
}

/// Returns four GPUs of one node during a job: the power cap reduces their clocks.
ManagementFacts four_busy_gpus() {
  ManagementFacts management = two_gpus();
  for (GpuFacts& gpu : management.gpus) {
    gpu.clock_mhz = 1410;
    gpu.throttled_by = 0x4;
    gpu.busy_percent = 98;
    gpu.watts = 690.4;
    gpu.limit_watts = gpu.default_watts = 700.0;
  }
  management.gpus.push_back(management.gpus[0]);
  management.gpus.push_back(management.gpus[0]);
  return management;
}

std::vector<HealthCheck> clock_checks(const PlantedNode& node, const ManagementFacts& management) {
  std::vector<HealthCheck> checks = checks_of(node, management);
  std::erase_if(checks, [](const HealthCheck& check) { return check.name != "clocks"; });
  return checks;
}

TEST_F(HealthChecks, ClocksUnderLoadAreComparedWithOthersAndTheMaximum) {
  ManagementFacts management = four_busy_gpus();
  EXPECT_EQ(clock_checks(node, management).at(0).found, "1410 of 1980 MHz, not throttled; 4 GPUs under load");
  management.gpus[1].clock_mhz = 1198;  // 0.8496 of the others' clock
  std::vector<HealthCheck> reported = clock_checks(node, management);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].status, HealthStatus::warn);
  EXPECT_EQ(reported[0].subject, "0000:31:00.0");
  EXPECT_EQ(reported[0].found, "1198 of 1980 MHz, 98% busy, 690 of 700 W, 40 C; 1410 MHz on the other busy GPUs");
  management.gpus[1].clock_mhz = 1199;
  EXPECT_EQ(clock_checks(node, management).at(0).status, HealthStatus::ok);
  for (GpuFacts& gpu : management.gpus) {
    gpu.clock_mhz = 989;  // all clocks are equal, and below half of 1980
  }
  reported = clock_checks(node, management);
  ASSERT_EQ(reported.size(), 4U);
  EXPECT_EQ(reported[0].wrong, "under load the clock is below half of what the GPU can do");
}

TEST_F(HealthChecks, IdleClocksAreNotCompared) {
  ManagementFacts management = four_busy_gpus();
  for (GpuFacts& gpu : management.gpus) {
    gpu.clock_mhz = 345;
    gpu.busy_percent = 0;
    gpu.throttled_by = 0x1;
  }
  EXPECT_EQ(clock_checks(node, management).at(0).found,
            "345 of 1980 MHz, not throttled; idle, so check again during a job for clocks under load");
}

TEST_F(HealthChecks, ThrottlingThatIsNotReportedIsNotDenied) {
  ManagementFacts management = two_gpus();
  for (GpuFacts& gpu : management.gpus) {
    gpu.throttled_by.reset();
  }
  EXPECT_EQ(clock_checks(node, management).at(0).found, "1980 of 1980 MHz, throttling not reported");
}

TEST_F(HealthChecks, APowerLimitBelowTheDefaultIsAWarning) {
  ManagementFacts management = two_gpus();
  management.gpus[0].limit_watts = 500.0;
  management.gpus[0].default_watts = 700.0;
  const std::vector<HealthCheck> reported = complaints_of(node, management);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].status, HealthStatus::warn);
  EXPECT_EQ(reported[0].found, "power limit 500 W, 700 W by default");
  EXPECT_EQ(reported[0].remedy,
            "restore the default with nvidia-smi --power-limit=700, or expect lower clocks under load");
}

TEST_F(HealthChecks, NvswitchesOfUnreportedStateAreUnknown) {
  node.plant_function("pci0000:00/0000:00:02.0", "0x068000", "0x10de");
  EXPECT_EQ(complaints_of(node), std::vector<HealthCheck>{});  // the GPUs report that they are registered
  ManagementFacts management = two_gpus();
  for (GpuFacts& gpu : management.gpus) {
    gpu.fabric = FabricState::not_supported;
  }
  EXPECT_EQ(complaints_of(node, management).at(0).found,
            "1 NVSwitch function, whose state this driver does not report");
}

TEST(HealthChecksOfAmdGpus, ReadTheirDriverAndItsCounts) {
  const PlantedNode node;
  const std::string gpu = "sys/devices/pci0000:00/0000:05:00.0";
  node.plant_function("pci0000:00/0000:05:00.0", "0x120000", "0x1002");
  std::filesystem::create_symlink("/sys/bus/pci/drivers/amdgpu", node.root() / gpu / "driver");
  node.write("sys/module/amdgpu/version", "6.8.5");
  node.write(gpu + "/ras/umc_err_count", "ue: 0\nce: 3");
  node.write(gpu + "/ras/gfx_err_count", "ue: 0\nce: 0");
  // a processor's own GPU, which is not used for computing
  node.plant_function("pci0000:00/0000:06:00.0", "0x030000", "0x1002");
  node.write(gpu + "/ras/features", "feature mask: 0x3f");
  const ManagementFacts none{.missing = "no library"};
  std::vector<HealthCheck> checks = checks_of(node, none);
  EXPECT_EQ(checks[0].found, "amdgpu, 1 AMD GPU");
  EXPECT_EQ(checks[0].status, HealthStatus::ok);
  EXPECT_EQ(checks[1].found, "AMD GPUs");
  EXPECT_EQ(checks[1].status, HealthStatus::unknown);
  EXPECT_EQ(checks[3].found, "no uncorrected error on 1 AMD GPU");
  node.write(gpu + "/ras/aca_umc", "ue: 2\nce: 0\nde: 0");
  checks = checks_of(node, none);
  EXPECT_EQ(checks[3].subject, "0000:05:00.0");
  EXPECT_EQ(checks[3].found, "2 uncorrected errors since the driver was loaded");
  const ManagementFacts broken{.missing = "NVIDIA's library does not start", .is_broken = true};
  EXPECT_EQ(checks_of(node, broken)[0].found, "amdgpu, 1 AMD GPU");
  node.remove(gpu + "/driver");
  EXPECT_EQ(complaints_of(node, none).at(0).remedy.substr(0, 33), "load its driver (modprobe amdgpu)");
}

TEST(HealthChecksOfAmdGpus, WithoutTheirDriverNicsCannotReadTheirMemory) {
  const PlantedNode node;
  node.plant_function("pci0000:00/0000:05:00.0", "0x120000", "0x1002");
  node.plant_nic("pci0000:00/0000:06:00.0", "0", "mlx5_0");
  const std::vector<HealthCheck> reported = complaints_of(node, {.missing = "no library"});
  const auto gdr = std::ranges::find(reported, "gdr", &HealthCheck::name);
  ASSERT_NE(gdr, reported.end());
  EXPECT_EQ(gdr->status, HealthStatus::bad);
  EXPECT_EQ(gdr->found, "amdgpu is not loaded");
  EXPECT_EQ(gdr->remedy, "load the driver (modprobe amdgpu); if that fails, look at dmesg");
}

TEST_F(HealthChecks, AGpuFarFromEveryNicIsAWarning) {
  node.write(nic_1 + "/numa_node", "0");
  EXPECT_EQ(complaints_of(node).at(0).found, "the GPU is on NUMA node 1, but no RDMA NIC is");
  node.write(gpu_0 + "/numa_node", "-1");
  EXPECT_EQ(complaints_of(node).at(0).found, "the NUMA node of the GPU is unknown, among 2");
}

TEST(HealthChecksOfAnEmptyRoot, AreUnknownWithAReason) {
  const PlantedNode node;
  for (const HealthCheck& check : checks_of(node, {.missing = "no library"})) {
    EXPECT_LE(check.status, HealthStatus::unknown) << check.name;
    EXPECT_EQ(check.remedy.empty(), check.status == HealthStatus::ok) << check.name;
    EXPECT_EQ(check.wrong.empty(), check.status == HealthStatus::ok) << check.name;
  }
}

TEST_F(HealthChecks, WithoutTheDriversLibraryItsChecksAreUnknown) {
  const std::vector<HealthCheck> reported = complaints_of(node, {.missing = "the library is not here"});
  ASSERT_EQ(reported.size(), 4U);
  for (const HealthCheck& check : reported) {
    EXPECT_EQ(check.status, HealthStatus::unknown);
    EXPECT_EQ(check.found, "the library is not here");
  }
}

TEST_F(HealthChecks, SkippedChecksDoNotRun) {
  const std::vector<std::string> skipped{"rdma", "pcie"};
  const std::vector<HealthCheck> checks = health_checks(node_facts(NodeFiles(node.root())), two_gpus(), skipped);
  EXPECT_EQ(checks.size(), health_check_names().size() - 2);
  EXPECT_TRUE(std::none_of(checks.begin(), checks.end(), [](const auto& check) { return check.name == "rdma"; }));
}

TEST_F(HealthChecks, SurviveFilesWithAnyContent) {
  const std::string anything = "\xff\x1b[2J 99999999999999999999 GT/s nan -5";
  for (const char* const name : {"/current_link_speed", "/max_link_speed", "/current_link_width", "/max_link_width",
                                 "/numa_node", "/class", "/vendor", "/config"}) {
    PlantedNode other;
    other.plant_healthy_node();
    other.write(gpu_0 + name, anything);
    EXPECT_FALSE(checks_of(other).empty()) << name;
  }
  node.write("sys/class/infiniband/mlx5_0/ports/1/rate", "nan Gb/sec");
  node.write("sys/devices/system/node/online", "0-99999999999,x,-");
  EXPECT_FALSE(checks_of(node).empty());
}

}  // namespace
}  // namespace commfuse::validate
