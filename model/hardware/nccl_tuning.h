// SPDX-License-Identifier: Apache-2.0
// NCCL's own estimate of its kernels, by which it chooses among them: the prior for machines that nobody measured.
// Source: NVIDIA/nccl 2.28.9, src/graph/tuning.cc (latencies, rates a channel, the choice, its corrections of trees);
// switch sums from five ranks on as measured on H200 and B200 nodes (stas00/ml-engineering, network).
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
/// Of the steps of a ring: `network` between nodes, with NVLink inside them.
enum class NcclWire : std::uint8_t { nvlink, pcie, network };
/// Of a ring; sums in the switch; of a tree of nodes.
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

/// What NCCL finds out about one node, or about several: what NCCL_DEBUG_SUBSYS=GRAPH,TUNING prints.
struct NcclTuning {
  NcclGeneration generation = NcclGeneration::hopper;
  NcclWire wire = NcclWire::nvlink;
  int channels = 1;             ///< Of the ring, as its search finds them.
  BytesPerSecond channel_rate;  ///< Of one of them.
  /// Rates of hypothetical links over those that NCCL found: 1 of a real machine.
  double hypothetical = 1.0;
  // Of a network:
  int tree_channels = 0;     ///< Of the tree, each of the same rate; 0 where NCCL takes no tree.
  bool ll128_across = true;  ///< Not where a NIC is behind the CPU.
  bool amd_hosts = false;    ///< Their CPUs limit LL more than Intel's.
  /// A step of the tree by Simple, inside a node and between: 2.17 counted 28 us for both.
  Duration tree_step = std::chrono::microseconds{4};
  Duration tree_node_step = std::chrono::microseconds{14};
};

/// Of one kernel, as NCCL's table has it.
struct NcclEstimate {
  Duration base_latency{};
  Duration step_latency{};  ///< Once a step of the ring; of the switch none.
  BytesPerSecond rate;      ///< Wire bytes a rank sends; of the switch bytes of the tensor, times ranks / (ranks - 1).
};

/// Of a ring or the switch. Nothing where NCCL has no such kernel: LL128 without NVLink, sums in a switch that has
/// none; nor of trees, whose steps differ.
std::optional<NcclEstimate> nccl_estimate(const NcclTuning& tuning, NcclKernel kernel);

/// What is to be done: `passes` round the ring, 2 of an all-reduce; bytes in all, nccl-tests' size.
struct NcclTask {
  int ranks = 1;
  int passes = 1;
  double total = 0.0;
  int nodes = 1;
};

/// The kernel of the least estimate, the first on ties, on the links that NCCL found. Requires at least two ranks.
NcclKernel nccl_choice(const NcclTuning& tuning, const NcclTask& task);

/// A kernel that NCCL would choose for some size, and the least size from which it does.
struct NcclOffer {
  NcclKernel kernel = NcclKernel::simple;
  double total = 0.0;
};

struct NcclOffers {
  std::array<NcclOffer, all_nccl_kernels.size()> kernels;
  std::size_t count = 0;  ///< Of `kernels`; at least one.
  double until = 0.0;     ///< The size that ends what was looked at; infinite where no tree is corrected beyond.
};

/// The kernels that NCCL would choose for sizes from the task's up to `until`, on the links that it found. Requires at
/// least two ranks.
NcclOffers nccl_offers(const NcclTuning& tuning, const NcclTask& task);

/// How many times as long a message takes at most as a larger one that NCCL gives to another kernel, as measured: over
/// NVLink no table shows such a step; on eight RTX PRO 6000 an all-gather of 512 KiB takes 1.21 times as long as one of
/// 1 MiB, and an all-to-all of 128 KiB 1.57 times as long as one of 256 (NVIDIA aiconfigurator); across nodes an
/// all-reduce of 20.2 MB takes 1.94 times as long as one of 21.1 (Vidur, sixteen A100), an all-gather of 2 MiB 1.88
/// times as long as one of 4 (two GKE nodes of B200).
double measured_step(NcclWire wire);

}  // namespace commfuse
