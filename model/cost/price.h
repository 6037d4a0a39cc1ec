// SPDX-License-Identifier: Apache-2.0
// Prices every op of a program at given sizes on a machine.
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
/// communication that may run beside it, at any time, so that prices stay fixed. dynamic: prices are those of ops that
/// run alone, on SMs and wires; the run itself finds out which ops meet (fluid.h).
enum class Interference : std::uint8_t { none, constant, dynamic };

/// stream: the host issues op by op, and the device waits before each GEMM and memory-bound kernel. graph: one launch,
/// then a gap per node.
enum class Launch : std::uint8_t { stream, graph };

struct ImplementedSites;

struct PriceOptions {
  Interference interference = Interference::constant;
  Launch launch = Launch::stream;
  AttentionKernel attention = AttentionKernel::fused;
  /// Dtype of GEMMs; every other tensor keeps the program's dtype, as with Transformer Engine's fp8, where tensors
  /// between GEMMs, sums and wires have 16 bits. If omitted, GEMMs use the program's dtype too.
  std::optional<DType> products = std::nullopt;
  /// Window of causal fused attention; unfused attention computes all scores.
  AttentionWindow window{};
  double weight_bits = 0.0;  ///< GemmSize::weight_bits of the GEMMs
  /// Costs of an implementation's kernels compared with ideal ones (implemented.h); null for ideal kernels. Must
  /// outlive the options.
  const ImplementedSites* implementation = nullptr;
  friend bool operator==(const PriceOptions&, const PriceOptions&) = default;
};

/// Returns the costs. Exchanges of several lanes share the wires (wires.h), with and without interference, but not when
/// it is dynamic. Requires meetings_of(program), sizes bound to it, and a machine that supports the dtypes of its
/// GEMMs.
Costs price(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes, const Machine& machine,
            const PriceOptions& options);

/// Times of kernels, worked out once for prices on machines that differ in something else. Belongs to one program,
/// sizes and options.
struct KernelTimes {
  static constexpr Duration unknown{-1};
  /// Times of one attention op.
  struct Attention {
    Duration met = unknown;    ///< beside the ops that may run then
    Duration alone = unknown;  ///< beside no other op
  };
  std::vector<std::array<Duration, 4>> shapes;  ///< by shape, and whether it meets an exchange, a collective or both
  std::vector<Attention> attention;             ///< by op, on the first rank that takes part
  std::vector<Attention> attention_by_rank;     ///< by rank, then op, where queries differ by rank
  std::vector<Duration> unfused;                ///< by place in Program::unfused, beside no other op

  /// Forgets the times of GEMMs and attention, of attention, or of everything but transfers.
  void forget_products(const Program& program);
  void forget_attention(const Program& program);
  void forget_kernels(const Program& program);
  /// Forgets the times of exchanges and collectives.
  void forget_transfers(const Program& program);
};
/// Returns the same costs. Uses the times that are known, and adds those that are not. Requires interference that is
/// not dynamic.
Costs price(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes, const Machine& machine,
            const PriceOptions& options, KernelTimes& known);

/// Returns the SMs left to a kernel beside the communication that it may meet.
int sms_left(const Program& program, const Machine& machine, const Meetings& meetings, Interference interference);

/// Returns the FLOPs of a rank's unsliced GEMMs, which decide how hot the chip runs.
Flops unfused_products(const Program& program, const Sizes& sizes);

/// Returns the provenances of the parameters that the prices of a program depend on, by Provenance.
std::array<bool, all_provenances.size()> leans_on(const Program& program, const Machine& machine,
                                                  const PriceOptions& options);

}  // namespace commfuse
