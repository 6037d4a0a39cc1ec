// SPDX-License-Identifier: Apache-2.0
// Facts about a node's GPUs, NICs, links and modules from /proc and /sys of Linux.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/health/kernel_log.h"
#include "validate/health/node_files.h"

namespace commfuse::validate {

enum class PciKind : std::uint8_t { other, gpu, nic, nvswitch, bridge };

/// One PCI function; what Linux does not say is missing.
struct PciFunction {
  std::string address;  ///< "0000:1b:00.0"
  PciKind kind = PciKind::other;
  bool is_nvidia = false;
  bool is_amd = false;
  std::optional<double> speed;  ///< Present speed of its link, in GT/s.
  std::optional<double> most_speed;
  std::optional<int> width;  ///< In lanes.
  std::optional<int> most_width;
  std::optional<int> numa_node;
  std::string driver;                   ///< Bound to it; empty for none.
  std::string translation;              ///< The type of its IOMMU group: "identity", "DMA", "DMA-FQ".
  std::optional<bool> redirects_peers;  ///< True for a bridge whose ACS sends requests between devices to the root.
};

/// Memory and other errors that amdgpu counts in all blocks of a GPU since it was loaded.
struct AmdErrors {
  std::string address;
  std::uint64_t uncorrected = 0;
};

/// A device and what lies between it and the processor: the device, its port, ..., the root port.
struct PciPath {
  std::vector<PciFunction> steps;  ///< At least the device.
  [[nodiscard]] const PciFunction& device() const { return steps.front(); }
};

/// "PCIe generation 5" of 32 GT/s; "3.5 GT/s" for a rate of no generation.
std::string generation_in_words(double speed);

/// An entry of a port's table of addresses (GIDs). Entries without an address are left out.
struct Gid {
  int index = 0;        ///< The number that NCCL_IB_GID_INDEX takes.
  std::string address;  ///< "0000:0000:0000:0000:0000:ffff:0a00:0001"
  std::string type;     ///< "IB/RoCE v1", "RoCE v2"; empty where Linux does not say.
};

inline constexpr std::string_view roce_version_2 = "RoCE v2";

/// Congestion control of a RoCE port, as far as /sys shows it: trust and ECN by the drivers of MLNX_OFED and DOCA,
/// counts by mlx5. Priority flow control (PFC) is in no file: Linux tells it by netlink alone.
struct CongestionFacts {
  std::string trust;     ///< The field that sets a packet's priority: "dscp", "pcp" (the VLAN tag); empty: unknown.
  bool has_ecn = false;  ///< False: the driver does not show the next two.
  std::vector<int> notifying;                 ///< Priorities whose receivers answer marked packets (roce_np).
  std::vector<int> reacting;                  ///< Priorities whose senders slow down then (roce_rp).
  std::optional<std::uint64_t> marked, lost;  ///< Marked packets that came; gaps in sequences that peers reported.
  std::optional<std::uint64_t> notified;      ///< Notices of peers to which marked packets came from here.
};

/// A port of an RDMA device (InfiniBand, RoCE, EFA).
struct RdmaPort {
  std::string device;  ///< "mlx5_0"
  std::string board;   ///< Its chip and board; alike for NICs of one kind.
  std::string number;  ///< "1"
  std::string layer;   ///< "InfiniBand" or "Ethernet"
  std::string state;   ///< "4: ACTIVE"
  std::string physical_state;
  std::string rate;  ///< "400 Gb/sec (4X NDR)"
  std::optional<double> gigabits;
  std::string pci_address;
  std::string firmware;
  bool has_gid_types = false;  ///< False: Linux does not show the types of its GIDs, or no GIDs.
  std::vector<Gid> gids;
  std::string interface;  ///< The network interface of a RoCE port: "eth2".
  CongestionFacts congestion;
};

/// Returns true for the address of an IPv4 address mapped into IPv6.
bool is_mapped_ipv4(const Gid& gid);

/// The first index of RoCE v2 with an IPv4 address, which NCCL chooses by itself; else that of another address that
/// routers pass on, which NCCL chooses only with NCCL_IB_ADDR_FAMILY=AF_INET6.
std::optional<int> usable_gid_index(const RdmaPort& port);

/// True for a port over which RDMA on Ethernet runs now.
bool is_active_roce(const RdmaPort& port);

struct NodeFacts {
  std::string host;
  std::string kernel;
  std::string command_line;
  std::string driver;                    ///< Version of NVIDIA's kernel module; empty where it is not loaded.
  bool driver_is_open = false;           ///< The open kernel modules.
  std::vector<std::string> modules;      ///< Loaded, of those that GPUDirect RDMA needs.
  std::vector<std::string> iommu_units;  ///< "dmar0"; none: no IOMMU is on.
  int numa_nodes = 1;
  std::vector<PciPath> gpus, nics, switches;  ///< NICs that have RDMA; NVSwitches.
  std::vector<RdmaPort> ports;
  std::optional<int> gid_index;       ///< NCCL_IB_GID_INDEX of /etc/nccl.conf; `doctor` adds that of its environment.
  std::vector<AmdErrors> amd_errors;  ///< One for each AMD GPU that counts them.
  std::optional<std::vector<XidEvent>> xids;  ///< Nothing where the kernel's log cannot be read.
};

NodeFacts node_facts(const NodeFiles& files);

}  // namespace commfuse::validate
