// SPDX-License-Identifier: Apache-2.0
// From a program, sizes and a machine to what every op costs.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "model/cost/attention.h"
#include "model/cost/costs.h"
#include "model/dtype.h"
#include "model/hardware/machine.h"
#include "model/program/order.h"
#include "model/program/sizes.h"

namespace commfuse {

/// none: every kernel has all SMs; lanes still share the wires. constant ("static"): a kernel loses the SMs of
/// communication that may run beside it, whenever that is, so that prices stay fixed. dynamic: prices are those of ops
/// that run alone, on SMs and wires; who meets whom is found out during the run (fluid.h).
enum class Interference : std::uint8_t { none, constant, dynamic };

/// stream: the host issues op by op, and the device waits before each GEMM and memory-bound kernel. graph: one launch,
/// then a gap a node.
enum class Launch : std::uint8_t { stream, graph };

struct ImplementedSites;

struct PriceOptions {
  Interference interference = Interference::constant;
  Launch launch = Launch::stream;
  AttentionKernel attention = AttentionKernel::fused;
  /// Products are in it, and all else is in what the program says: as with Transformer Engine's fp8, where tensors
  /// between products, sums and wires have 16 bits. Left out: products too.
  std::optional<DType> products = std::nullopt;
  /// Of a causal attention that is fused; one that is not makes all scores.
  AttentionWindow window{};
  double weight_bits = 0.0;  ///< GemmSize::weight_bits of the products.
  /// What the kernels of an implementation cost beside the ideal ones (implemented.h); null: they are ideal. Lives as
  /// long as the options.
  const ImplementedSites* implementation = nullptr;
  friend bool operator==(const PriceOptions&, const PriceOptions&) = default;
};

/// Exchanges of several lanes share the wires (wires.h), with and without interference, but not where it is dynamic.
/// Requires meetings_of(program), sizes bound to it, and a machine that supports the dtypes of its products.
Costs price(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes, const Machine& machine,
            const PriceOptions& options);

/// Times of kernels, worked out once for prices on machines that differ in something else. Belongs to one program,
/// sizes and options.
struct KernelTimes {
  static constexpr Duration unknown{-1};
  /// Of an attention.
  struct Attention {
    Duration met = unknown;    ///< Beside what may run then.
    Duration alone = unknown;  ///< Beside nothing.
  };
  std::vector<std::array<Duration, 4>> shapes;  ///< By shape, and whether it meets an exchange, a collective, both.
  std::vector<Attention> attention;             ///< By op; of the first rank that takes part.
  std::vector<Attention> attention_by_rank;     ///< Of those whose queries differ by rank: by rank, then op.
  std::vector<Duration> unfused;                ///< Program::unfused, alone.

  /// Forgets the times of products, of attention or of everything but transfers.
  void forget_products(const Program& program);
  void forget_attention(const Program& program);
  void forget_kernels(const Program& program);
  /// Forgets those of exchanges and collectives.
  void forget_transfers(const Program& program);
};
/// The same: takes the times that are known, and adds those that are not. Interference is not dynamic.
Costs price(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes, const Machine& machine,
            const PriceOptions& options, KernelTimes& known);

/// SMs left to a kernel beside the communication it may meet.
int sms_left(const Program& program, const Machine& machine, const Meetings& meetings, Interference interference);

/// FLOPs of the products of a rank, uncut: how hot the chip runs.
Flops unfused_products(const Program& program, const Sizes& sizes);

/// Which kinds of parameters the prices of a program rest on, by Provenance.
std::array<bool, all_provenances.size()> leans_on(const Program& program, const Machine& machine,
                                                  const PriceOptions& options);

}  // namespace commfuse
