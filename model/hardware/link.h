// SPDX-License-Identifier: Apache-2.0
// Links between accelerators, as an exchange with one peer and as a collective use them.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "model/hardware/fit_scope.h"
#include "model/hardware/nccl_tuning.h"
#include "model/hardware/parameter.h"
#include "model/units.h"

namespace commfuse {

/// Protocol for messages up to a size: NCCL's LL, which has less latency and a lower rate.
struct SmallMessages {
  Parameter<Bytes> up_to;
  Parameter<Duration> latency;
  Parameter<BytesPerSecond> rate;
};

/// Parameters of an exchange with one peer.
struct PeerParameters {
  Parameter<Duration> latency;     ///< Time from the post of both ends until the first byte arrives, without launch.
  Parameter<BytesPerSecond> rate;  ///< Rate of a single peer in one direction, while both directions are busy.
  /// Rate of all peers of a rank together, in one direction. It equals the rate of one peer if the peers share a port,
  /// as on a switch (the default in a file), and is at most the sum of their rates if each has its own wire, as on a
  /// mesh. Sends and receives do not share it.
  Parameter<BytesPerSecond> aggregate_rate;
  Parameter<int> ctas;                                ///< SMs that the kernel holds while it runs; 0 for copy engines.
  Parameter<Duration> issue_cost;                     ///< Host time to issue one grouped send and receive.
  std::optional<SmallMessages> small = std::nullopt;  ///< Without it, `latency` and `rate` apply to every size.
  FitScope fit{};
};

/// Parameters of a collective whose steps go around a ring or to every peer in turn, with one protocol;
/// model/cost/communication.h gives the formula.
struct ProtocolParameters {
  Parameter<Duration> base_latency;         ///< Time per call, without host issue.
  Parameter<Duration> step_latency;         ///< Time per step.
  Parameter<BytesPerSecond> rate;           ///< Wire bytes per second that a rank sends, for very large sizes.
  Parameter<BytesPerSecond> own_copy_rate;  ///< Bytes per second of a rank's own share, copied from input to output.
  /// Filling the pipeline costs at most the time of this many wire bytes; at this message size it costs half of that.
  Parameter<Bytes> ramp_size;
};

/// Parameters of a ring with one protocol.
struct RingParameters : ProtocolParameters {
  /// Time added for each step in which a rank stores a finished block and passes it on, which a reduce-scatter does not
  /// do. Without it, a step of an all-gather takes as long as a step of a reduce-scatter.
  std::optional<Parameter<Duration>> forward_latency = std::nullopt;
  /// Bytes per second of a rank's own share in a reduce-scatter or all-reduce, which adds it to what arrives. Without
  /// it, the addition takes as long as the copy of an all-gather.
  std::optional<Parameter<BytesPerSecond>> own_sum_rate = std::nullopt;
  /// Smallest share of a rank for which the kernel uses all its channels, in bytes. Smaller shares, down to 1 / `ctas`
  /// of it, use fewer channels with as many bytes each, so they take as long as a share of `fill_size`. Without it, all
  /// channels are used for every size.
  std::optional<Parameter<Bytes>> fill_size = std::nullopt;
  /// Time added when all channels are used, relative to a single one. Has an effect only with `fill_size`.
  std::optional<Parameter<Duration>> channel_latency = std::nullopt;
};

/// Parameters of an all-reduce that sums in the switch (NVLS).
struct SwitchParameters {
  Parameter<Duration> base_latency;
  Parameter<BytesPerSecond> rate;  ///< Bytes of the tensor per second.
  /// Ramp size in bytes of the tensor, divided by the number of ranks: NCCL works in loops of channels x ranks x chunk
  /// (src/enqueue.cc, calcCollChunking), and the first loop fills the pipeline.
  Parameter<Bytes> ramp_size_per_rank;
};

/// Parameters of a tree of nodes with one protocol.
struct TreeProtocol {
  Parameter<Duration> base_latency;
  Parameter<Duration> level_latency;  ///< Time per doubling of the number of nodes.
  Parameter<BytesPerSecond> rate;     ///< Bytes of the tensor per second.
  /// Rate of a tree of two nodes, in which no node forwards data; without it, `rate` applies.
  std::optional<Parameter<BytesPerSecond>> two_nodes_rate = std::nullopt;
};

/// Returns the rate of a tree of this many nodes.
inline const Parameter<BytesPerSecond>& rate_over(const TreeProtocol& tree, int nodes) {
  return nodes == 2 && tree.two_nodes_rate ? *tree.two_nodes_rate : tree.rate;
}

/// Parameters of an all-reduce over a tree of nodes; the base class has the parameters of NCCL's Simple.
struct TreeParameters : TreeProtocol {
  Parameter<Bytes> ramp_size_per_rank;  ///< Like that of SwitchParameters, but divided by the ranks of a node.
  std::optional<TreeProtocol> ll;
  std::optional<TreeProtocol> ll128;
};

/// Parameters of grouped sends and receives: the bytes to one peer determine the protocol.
struct AllToAllParameters {
  Parameter<Bytes> small_up_to;  ///< Largest small message to one peer.
  ProtocolParameters small;
  ProtocolParameters large;
  /// Residual of all-to-alls; without it, they have that of the other collectives. Its measured sizes are not used.
  std::optional<FitScope> fit = std::nullopt;
};

/// Origin of the kernels that sum over the GPUs of a node: NCCL, or a serving framework.
enum class AllReduceKernel : std::uint8_t { nccl, vllm, sglang, trtllm };
inline constexpr std::array all_all_reduce_kernels{AllReduceKernel::nccl, AllReduceKernel::vllm,
                                                   AllReduceKernel::sglang, AllReduceKernel::trtllm};
/// Returns "nccl", "vllm", "sglang" or "trtllm", the keys of files and the words of settings.
constexpr std::string_view name_of(AllReduceKernel kernel) {
  constexpr std::array<std::string_view, all_all_reduce_kernels.size()> names{"nccl", "vllm", "sglang", "trtllm"};
  return names[static_cast<std::size_t>(kernel)];
}

/// Parameters of one framework's all-reduce in a node, in which ranks read each other's memory. With one shot, each
/// rank reads the tensors of all other ranks. With two shots, each rank reads its share of these tensors, then the sums
/// of the other ranks. model/cost/communication.h gives the formula.
struct CustomAllReduce {
  Parameter<Bytes> up_to;                ///< Largest tensor; NCCL sums larger ones.
  Parameter<Duration> one_shot_latency;  ///< Time per call, with its barriers.
  Parameter<Duration> one_shot_step;     ///< Time for each rank that is read.
  Parameter<BytesPerSecond> one_shot_rate;
  Parameter<Duration> two_shot_latency;
  Parameter<Duration> two_shot_step;
  Parameter<BytesPerSecond> two_shot_rate;
};

/// Kernels of each framework in AllReduceKernel; absent without measurements.
struct CustomAllReduces {
  std::optional<CustomAllReduce> vllm;
  std::optional<CustomAllReduce> sglang;
  std::optional<CustomAllReduce> trtllm;
};

/// Returns the member of a framework; null for NCCL.
template <class Kernels>
auto* of_framework(Kernels& kernels, AllReduceKernel framework) {
  using Member = std::remove_reference_t<decltype((kernels.vllm))>;
  switch (framework) {
    case AllReduceKernel::nccl: return static_cast<Member*>(nullptr);
    case AllReduceKernel::vllm: return &kernels.vllm;
    case AllReduceKernel::sglang: return &kernels.sglang;
    case AllReduceKernel::trtllm: return &kernels.trtllm;
  }
  return static_cast<Member*>(nullptr);
}

/// Returns the parameters of a framework; null for NCCL, and for a framework without measurements.
inline const CustomAllReduce* kernels_of(const CustomAllReduces& kernels, AllReduceKernel framework) {
  const auto* member = of_framework(kernels, framework);
  return member != nullptr && *member ? &**member : nullptr;
}

/// Kernels from which NCCL chooses by its own estimates.
struct NcclKernels {
  NcclTuning tuning;
  RingParameters ll;
  std::optional<RingParameters> ll128;   ///< Present over NVLink, and across nodes if `tuning.ll128_across`.
  std::optional<SwitchParameters> nvls;  ///< Present on a switch that sums.
};

/// Parameters of collectives. The base class is a ring with one protocol: NCCL's Simple if `nccl` has other protocols.
struct CollectiveParameters : RingParameters {
  Parameter<int> ctas;             ///< SMs that the kernel holds while it runs; 0 for copy engines.
  Parameter<Duration> issue_cost;  ///< Host time to issue one collective.
  // Shared pointers, because a machine is copied for every point and these parts never change. Null: the ring above.
  std::shared_ptr<const NcclKernels> nccl = nullptr;
  std::shared_ptr<const AllToAllParameters> all_to_all = nullptr;
  std::shared_ptr<const TreeParameters> tree = nullptr;  ///< Only in a network.
  std::shared_ptr<const CustomAllReduces> custom_all_reduce = nullptr;
  /// Framework whose kernels an all-reduce inside a node may use besides NCCL's; `custom_all_reduce` has their
  /// parameters.
  AllReduceKernel all_reduce_kernel = AllReduceKernel::nccl;
  FitScope fit{};
};

/// Returns true if NCCL's estimates choose between tree and ring; otherwise an all-reduce across nodes uses the tree if
/// there is one.
inline bool nccl_chooses_trees(const CollectiveParameters& collective) {
  return collective.nccl != nullptr && collective.nccl->tuning.tree_channels > 0;
}

/// Capacity of wires without a known limit.
inline constexpr BytesPerSecond unlimited{std::numeric_limits<double>::infinity()};

struct Link {
  std::string name;
  /// Nominal rate in one direction, from a data sheet. Prices use it only for bounds and for implementations.
  Parameter<BytesPerSecond> nominal_rate;
  PeerParameters peer;
  CollectiveParameters collective;
  /// Physical rate of the wires (width times generation); for a machine from a file, its `nominal_rate`. No result is
  /// faster (model/cost/cut_bound.h). Infinite if unknown, and in a machine that only serves to measure the effect of a
  /// parameter.
  BytesPerSecond capacity = unlimited;
};

}  // namespace commfuse
