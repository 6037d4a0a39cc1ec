// SPDX-License-Identifier: Apache-2.0
// NCCL's own estimate of its kernels, by which it chooses among them: the prior for machines that nobody measured.
// Source: NVIDIA/nccl 2.28.9, src/graph/tuning.cc (latencies, rates a channel, the choice, its corrections of trees);
// switch sums from five ranks on as measured on H200 and B200 nodes (stas00/ml-engineering, network).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/units.h"

namespace commfuse {

enum class NcclGeneration : std::uint8_t { volta, ampere, hopper, blackwell };
/// Of the steps of a ring: `network` between nodes, with NVLink inside them.
enum class NcclWire : std::uint8_t { nvlink, pcie, network };
/// Of a ring; sums in the switch; of a tree of nodes.
enum class NcclKernel : std::uint8_t { ll, ll128, simple, nvls, tree_ll, tree_ll128, tree_simple };

inline constexpr std::array all_nccl_generations{NcclGeneration::volta, NcclGeneration::ampere, NcclGeneration::hopper,
                                                 NcclGeneration::blackwell};
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

/// The kernels that NCCL would choose on its way from the links that it found to the hypothetical ones: of links that
/// are not faster, just its choice on those it found. A faster link has all kernels of a slower one, so the cheapest of
/// them never takes longer.
std::vector<NcclKernel> nccl_choices(const NcclTuning& tuning, const NcclTask& task);

}  // namespace commfuse
