// SPDX-License-Identifier: Apache-2.0
// The time of one matrix product on a budget of SMs, the smallest over a few tiles and splits of the k loop:
//
//   time   = max(kernel floor, ramp + conversion + (work beside memory) + join)
//   work   = (loops^4 + power^4)^(1/4)
//   loops  = waves x tile_m tile_n x (2 k / splits / the tile's rate + wave overhead / 128^2)
//   waves  = f + wave quantum x (ceil(f) - f)                            f = tiles x splits / sms, at least 1
//   power  = 2 m n k / (dense peak x burst efficiency x s)               s falls from 1 to the sustained share
//   memory = (cached share of k n + cached share of m k + output cost x m n) bytes / HBM rate
//   beside: greater + unhidden x lesser^2 / greater
//   join   = split overhead + join cost x partial products / HBM rate    only when the k loop is split
//   conversion = conversion passes x m k bytes / HBM rate                of the activations, into this dtype
//
// Weights are cold but in benchmarks that take few copies in turn: up to `resident_share` of the L2 these stay there
// with input and output, and from a tenth above none does. Between both, as they fill it.
//
// s = (burst time + sustained share x t) / (burst time + t), t = FLOPs / dense peak of the product, or of all products
// of its run: long ones run hot, and cutting a product does not cool the chip.
//
// Tile and wave quantisation: NVIDIA, "Matrix Multiplication Background User's Guide", 2023, sections 3.2 and 3.3.
// Splitting k over idle SMs: Osama et al., "Stream-K", PPoPP 2023, section 4. The k loop is split over SMs that would
// idle, or into parts at least 2560 deep: public A100 times jump there from whole waves to half ones. Power, in place
// of full waves, limits large products on H100 and B200: they show hardly any steps. The fourth roots, what `beside`
// leaves to see and the cached share are ours. A product that adds to its output also reads m n, at full price: what an
// earlier product left there has gone to HBM.
#pragma once

#include <cstdint>
#include <optional>

#include "model/dtype.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// An m x k times k x n product (activations times weight). Whether a factor lies transposed in memory does not matter:
/// the matrix units take both orders.
struct GemmSize {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType dtype = DType::bf16;      ///< Of the inputs.
  std::optional<DType> out = {};  ///< Of the output, where it differs.
  double weight_bits = 0.0;       ///< Of a weight as it lies in memory; 0: those of dtype.
  bool accumulate = false;        ///< Adds to the output, so that it is read as well.
  Flops run{};  ///< Of the products that run back to back, where it is one of several; how hot the chip is hangs on it.
  /// A benchmark repeats the product with as many copies of the weights as fill the L2, in turn, but with no more than
  /// this many. 0: the weights are cold, as in a model.
  int weight_copies = 0;
};

/// Everything the estimate went through, so that a report can say why.
struct GemmEstimate {
  Duration time{};  ///< On the device, launch not counted; never below the kernel floor.
  int tile_m = 0;   ///< The tile and the split are the fastest of a few.
  int tile_n = 0;
  int splits = 1;               ///< Parts the k loop is cut into, each on an SM of its own.
  std::int64_t waves = 0;       ///< Rounds over the SM budget, the last one perhaps not full.
  double last_wave_fill = 0.0;  ///< Share of the SM budget the last wave uses, in (0, 1].
  bool memory_bound = false;    ///< HBM traffic takes longer than the k loops and than power asks for.
  bool power_bound = false;     ///< Power asks for longer than the k loops and HBM traffic take.
};

/// Communication kernels hold SMs, so `sms` may be fewer than the accelerator has. Requires m, n, k >= 1,
/// 1 <= sms <= accelerator.sms, and the dtype supported. Throws ConfigError for a product over `longest_op_seconds`.
/// Allocates nothing and uses only correctly rounded arithmetic: the same picoseconds everywhere.
GemmEstimate estimate_gemm(const Accelerator& accelerator, const GemmSize& size, int sms);

/// What limits such a product: latency up to twice the longer of the ramp and the kernel floor, then HBM traffic, then
/// tiles that do not fill the SMs once.
Limit limit_of(const Accelerator& accelerator, const GemmEstimate& estimate, DType dtype);

/// 2 m n k.
Flops flops_of(const GemmSize& size);

/// Bytes a product reads and writes at least once: both inputs and the output, and the output again when it adds to it.
Bytes compulsory_traffic(const GemmSize& size);

}  // namespace commfuse
