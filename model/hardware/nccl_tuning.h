// SPDX-License-Identifier: Apache-2.0
// NCCL's own estimates of its kernels, with which NCCL chooses a kernel. They are the prior for machines without
// measurements. Source: NVIDIA/nccl 2.28.9, src/graph/tuning.cc (latencies, rates per channel, the choice, its
// corrections of trees); NCCL sums in the switch from five ranks up, as measured on H200 and B200 nodes
// (stas00/ml-engineering, network).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/units.h"

namespace commfuse {

enum class NcclGeneration : std::uint8_t { volta, ampere, hopper, blackwell };
/// Wires that the steps of a ring use; `network` is between nodes that have NVLink inside.
enum class NcclWire : std::uint8_t { nvlink, pcie, network };
/// Kernels over a ring (ll to simple), sums in the switch (nvls), and kernels over a tree of nodes.
enum class NcclKernel : std::uint8_t { ll, ll128, simple, nvls, tree_ll, tree_ll128, tree_simple };

inline constexpr std::array all_nccl_generations{NcclGeneration::volta, NcclGeneration::ampere, NcclGeneration::hopper,
                                                 NcclGeneration::blackwell};
inline constexpr std::array all_nccl_kernels{NcclKernel::ll,         NcclKernel::ll128,   NcclKernel::simple,
                                             NcclKernel::nvls,       NcclKernel::tree_ll, NcclKernel::tree_ll128,
                                             NcclKernel::tree_simple};
inline constexpr std::array all_nccl_wires{NcclWire::nvlink, NcclWire::pcie, NcclWire::network};

std::string_view name_of(NcclGeneration generation);
std::optional<NcclGeneration> nccl_generation_named(std::string_view name);
std::string_view name_of(NcclWire wire);
std::optional<NcclWire> nccl_wire_named(std::string_view name);
std::string_view name_of(NcclKernel kernel);

/// Properties of one node or of several nodes, as NCCL sees them. NCCL prints them with NCCL_DEBUG_SUBSYS=GRAPH,TUNING.
struct NcclTuning {
  NcclGeneration generation = NcclGeneration::hopper;
  NcclWire wire = NcclWire::nvlink;
  int channels = 1;             ///< Channels of the ring that NCCL's search finds.
  BytesPerSecond channel_rate;  ///< Rate of one channel.
  /// True for RCCL, AMD's port with the same kernels; the generation is then NVIDIA's most similar one.
  bool rccl = false;
  /// Rates of hypothetical links relative to those that NCCL found; 1 for a real machine.
  double hypothetical = 1.0;
  // For a network:
  int tree_channels = 0;     ///< Channels of the tree, with the same rate; 0 if NCCL uses no tree.
  bool ll128_across = true;  ///< False if data reach a NIC through the CPU.
  bool amd_hosts = false;    ///< True if hosts have AMD CPUs, which limit LL more than Intel's.
  /// Latency of one step of a tree with Simple, inside a node and between nodes. NCCL 2.17 used 28 us for both.
  Duration tree_step = std::chrono::microseconds{4};
  Duration tree_node_step = std::chrono::microseconds{14};
};

/// NCCL's estimate of one kernel.
struct NcclEstimate {
  Duration base_latency{};
  Duration step_latency{};  ///< Time per step of the ring (for a network, per step inside a node); 0 for the switch.
  /// Wire bytes per second that a rank sends; for the switch, bytes of the tensor per second, times ranks / (ranks -
  /// 1).
  BytesPerSecond rate;
};

/// Returns the estimate of a ring or the switch. Returns nullopt if NCCL lacks the kernel (LL128 over PCIe, or across
/// nodes without `ll128_across`; NVLS over PCIe, across nodes or on a switch that cannot sum), and for trees, whose
/// steps differ.
std::optional<NcclEstimate> nccl_estimate(const NcclTuning& tuning, NcclKernel kernel);

/// Collective for which NCCL chooses a kernel: `passes` around the ring (2 for an all-reduce) and `total` bytes (the
/// size that nccl-tests prints).
struct NcclTask {
  int ranks = 1;
  int passes = 1;
  double total = 0.0;
  int nodes = 1;
  bool gathers = false;  ///< The last or only pass forwards finished blocks: all-gather and all-reduce.
  bool copies = false;   ///< Nothing is added, although the last pass forwards no finished blocks: all-to-all.
};

/// Returns the kernel with the smallest estimate, the first on ties, on the links that NCCL found. Requires at least
/// two ranks.
NcclKernel nccl_choice(const NcclTuning& tuning, const NcclTask& task);

/// Kernel that NCCL would choose for some sizes, and the smallest of these sizes.
struct NcclOffer {
  NcclKernel kernel = NcclKernel::simple;
  double total = 0.0;
};

struct NcclOffers {
  std::array<NcclOffer, all_nccl_kernels.size()> kernels;
  std::size_t count = 0;  ///< Used entries of `kernels`; at least one.
  /// End of the range of sizes that `kernels` covers; infinite if no correction of trees changes beyond the task's
  /// size.
  double until = 0.0;
};

/// Returns the kernels that NCCL would choose for sizes from the task's up to `until`, on the links that NCCL found.
/// Requires at least two ranks.
NcclOffers nccl_offers(const NcclTuning& tuning, const NcclTask& task);

/// Returns the largest measured ratio, rounded up, of the time of a message to the time of a larger message for which
/// NCCL chooses another kernel. Over NVLink no table shows such a step. On eight RTX PRO 6000, an all-gather of 512 KiB
/// takes 1.21 times as long as one of 1 MiB, and an all-to-all of 128 KiB 1.57 times as long as one of 256 KiB (NVIDIA
/// aiconfigurator). Across nodes, an all-reduce of 20.2 MB takes 1.94 times as long as one of 21.1 MB (Vidur, sixteen
/// A100), and an all-gather of 2 MiB 1.88 times as long as one of 4 MiB (two GKE nodes of B200).
double measured_step(NcclWire wire);

}  // namespace commfuse
