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

/// A PCI function. Facts that Linux does not report are empty.
struct PciFunction {
  std::string address;  ///< "0000:1b:00.0"
  PciKind kind = PciKind::other;
  bool is_nvidia = false;
  bool is_amd = false;
  std::optional<double> speed;  ///< Current speed of its link, in GT/s.
  std::optional<double> max_speed;
  std::optional<int> width;  ///< In lanes.
  std::optional<int> max_width;
  std::optional<int> numa_node;
  std::string driver;                   ///< The driver bound to it; empty if none is.
  std::string translation;              ///< The type of its IOMMU group: "identity", "DMA", "DMA-FQ".
  std::optional<bool> redirects_peers;  ///< True for a bridge whose ACS sends requests between devices to the root.
};

/// Errors in a GPU's memory and other blocks, counted by the amdgpu driver since it was loaded.
struct AmdErrors {
  std::string address;
  std::uint64_t uncorrected = 0;
};

/// The PCI functions from a device to the processor: the device, its port, ..., the root port.
struct PciPath {
  std::vector<PciFunction> steps;  ///< At least the device.
  [[nodiscard]] const PciFunction& device() const { return steps.front(); }
};

/// Returns "PCIe generation 5" for 32 GT/s, and the rate itself, such as "3.5 GT/s", if no generation has this rate.
std::string generation_in_words(double speed);

/// An entry of a port's table of addresses (GIDs). RdmaPort omits entries without an address.
struct Gid {
  int index = 0;        ///< The number for NCCL_IB_GID_INDEX.
  std::string address;  ///< "0000:0000:0000:0000:0000:ffff:0a00:0001"
  std::string type;     ///< "IB/RoCE v1", "RoCE v2"; empty if Linux does not report it.
};

inline constexpr std::string_view roce_version_2 = "RoCE v2";

/// Congestion control of a RoCE port, as far as /sys shows it. The drivers of MLNX_OFED and DOCA report trust and ECN;
/// mlx5 reports the counts. No file shows priority flow control (PFC), which Linux reports only over netlink.
struct CongestionFacts {
  std::string trust;     ///< The field that sets a packet's priority: "dscp", "pcp" (the VLAN tag); empty: unknown.
  bool has_ecn = false;  ///< False if the driver does not report `notifying` and `reacting`.
  std::vector<int> notifying;                 ///< Priorities whose receivers send a CNP for a marked packet (roce_np).
  std::vector<int> reacting;                  ///< Priorities whose senders slow down after a CNP (roce_rp).
  std::optional<std::uint64_t> marked, lost;  ///< ECN-marked packets received; sequence gaps that peers reported.
  std::optional<std::uint64_t> notified;      ///< CNPs received for marked packets that this port sent.
};

/// A port of an RDMA device (InfiniBand, RoCE, EFA).
struct RdmaPort {
  std::string device;  ///< "mlx5_0"
  std::string board;   ///< Its chip and board; equal for NICs of the same model.
  std::string number;  ///< "1"
  std::string layer;   ///< "InfiniBand" or "Ethernet"
  std::string state;   ///< "4: ACTIVE"
  std::string physical_state;
  std::string rate;  ///< "400 Gb/sec (4X NDR)"
  std::optional<double> gigabits;
  std::string pci_address;
  std::string firmware;
  bool has_gid_types = false;  ///< False if Linux shows no GIDs, or no types for them.
  std::vector<Gid> gids;
  std::string interface;  ///< The network interface of a RoCE port: "eth2".
  CongestionFacts congestion;
};

/// Returns true if the GID is an IPv4 address mapped into IPv6.
bool is_mapped_ipv4(const Gid& gid);

/// Returns true if the GID is a RoCE v2 address that routers forward.
bool is_routable(const Gid& gid);

/// Returns the first RoCE v2 index with an IPv4 address, which NCCL chooses by default. Without one, returns the first
/// with another routable address, which NCCL chooses only with NCCL_IB_ADDR_FAMILY=AF_INET6.
std::optional<int> usable_gid_index(const RdmaPort& port);

/// Returns true if the port is up and runs RDMA over Ethernet.
bool is_active_roce(const RdmaPort& port);

struct NodeFacts {
  std::string host;
  std::string kernel;
  std::string command_line;
  std::string driver;                    ///< Version of NVIDIA's kernel module; empty if it is not loaded.
  bool driver_is_open = false;           ///< True for NVIDIA's open kernel modules.
  std::vector<std::string> modules;      ///< Loaded modules among those that GPUDirect RDMA needs.
  std::vector<std::string> iommu_units;  ///< "dmar0"; empty if no IOMMU is on.
  int numa_nodes = 1;
  std::vector<PciPath> gpus, nics, switches;  ///< NICs without RDMA are omitted; switches are NVSwitches.
  std::vector<RdmaPort> ports;
  std::optional<int> gid_index;  ///< NCCL_IB_GID_INDEX of /etc/nccl.conf; `doctor` overrides it from its environment.
  std::vector<AmdErrors> amd_errors;          ///< One element for each AMD GPU that counts errors.
  std::optional<std::vector<XidEvent>> xids;  ///< Nothing if the kernel's log cannot be read.
};

NodeFacts node_facts(const NodeFiles& files);

}  // namespace commfuse::validate
