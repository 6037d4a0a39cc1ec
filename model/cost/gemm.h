// SPDX-License-Identifier: Apache-2.0
// Time of one GEMM on a budget of SMs, with the tile and the split of the k loop that are fastest on all SMs.
//
//   time   = max(kernel floor, conversion + choice x (ramp + overlapped(work, memory) + join))
//   work   = (loops^4 + power^4)^(1/4)
//   loops  = tile_m tile_n x (sqrt(multiplied^2 + fed^2) + waves x wave overhead / 128^2)
//   multiplied = waves x 2 k / splits / the tile's rate
//   fed    = tiles x 2 k x o / (operand feed x dense peak),  o = (1 / tile_m + 1 / tile_n) / (1 / 256 + 1 / 128)
//   waves  = f + wave quantum x (ceil(f) - f)                            f = tiles x splits / sms, at least 1
//   power  = 2 m n k / (dense peak x burst efficiency x s)               s falls from 1 to the sustained share
//   memory = (cached share of k n + cached share of m k + cost of m n) bytes / HBM rate
//   overlapped(a, b) = greater + unhidden x lesser^2 / greater
//   join   = split overhead + join cost x partial results / HBM rate    only when the k loop is split
//   conversion = conversion passes x cost of a byte x m k bytes / HBM rate    of the activations, into this dtype
//
// A GEMM whose activations already have this dtype has no conversion. The fitted ramp of fp8 contains the calls of
// the conversion, so without a conversion the ramp is at most that of bf16.
//
// Weights are cold except in benchmarks that alternate between a few copies. Copies that fit into `resident_share` of
// the L2 together with input and output stay there; from a tenth above that size nothing stays, and the share falls
// linearly in between. By the same rule an output stays in the L2 if it fits into `resident_output_share` with input
// and weights. A byte of the output then costs `cached_output_cost` instead of `output_cost`. Public times of GDDR GPUs
// jump at three quarters of the L2.
//
// Operands reach the SMs from the L2 at a limited rate, which all busy SMs share. A small tile needs more operands per
// FLOP, so it runs near the peak on a few SMs and far below the peak on all SMs.
//
// choice is the time of the kernel that the library chooses, relative to the fastest kernel of the formula. It comes
// from a table (model/hardware/kernel_choice.h) by tiles of 128 x 128 per SM, k and m, and for fewer than 128 columns
// from another by n, k and m; it is 1 where no library was measured.
//
// s = (burst time + sustained share x t) / (burst time + t), t = FLOPs / dense peak of the GEMM, or of all GEMMs of its
// run: long runs heat the chip, and slicing a GEMM does not cool it.
//
// Communication may hold some of the SMs. The kernel is still the fastest one on all SMs, because the library does not
// know how many are free, and its time on the SMs that are left is at least
//
//   ceil(tiles x splits / sms left) x 2 tile_m tile_n k / splits x all sms / dense peak
//
// because no SM runs faster than its share of the peak (docs/decisions/0117).
//
// Tile and wave quantization: NVIDIA, "Matrix Multiplication Background User's Guide", 2023, sections 3.2 and 3.3.
// Splitting k over idle SMs: Osama et al., "Stream-K", PPoPP 2023, section 4. The k loop is split over SMs that would
// idle, or into parts at least 2,560 deep: from that depth, public A100 times step by half waves instead of whole ones.
// Power, not full waves, limits large GEMMs on H100 and B200, whose times show hardly any steps. The roots, the
// form of `overlapped` and the cached share are this project's approximations. A GEMM that adds to its output also
// reads m n elements from HBM at full cost, because the L2 no longer holds what an earlier GEMM wrote.
#pragma once

#include <cstdint>
#include <optional>

#include "model/dtype.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// GEMM of m x k times k x n (activations times weight). A factor may be transposed in memory, because the matrix units
/// support both orders.
struct GemmSize {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType dtype = DType::bf16;      ///< Dtype of the inputs.
  std::optional<DType> out = {};  ///< Dtype of the output, if it differs.
  double weight_bits = 0.0;       ///< Bits of a weight in memory; 0: the bits of dtype.
  bool accumulate = false;        ///< Adds to the output, which is therefore read as well.
  /// True: activations are converted from 16 bits, if the parameters of dtype include a conversion. False: they already
  /// have this dtype.
  bool converts = true;
  Flops run{};  ///< FLOPs of the run of back-to-back GEMMs that includes this one; they set how hot the chip is.
  /// Largest number of copies of the weights between which a benchmark alternates; it uses as many as fill the L2. 0:
  /// the weights are cold, as in a model.
  int weight_copies = 0;
  /// Number of GEMMs of this size, each with its own inputs, weight and output, that one kernel computes (a grouped
  /// GEMM): their tiles fill waves together.
  std::int64_t groups = 1;
};

/// The estimate with its intermediate results, so that a report can explain it.
struct GemmEstimate {
  Duration time{};  ///< Time on the device without launch time; never below the kernel floor.
  int tile_m = 0;   ///< Rows of the tile. Tile and split are the fastest of a few on all SMs.
  int tile_n = 0;
  int splits = 1;               ///< Parts of the k loop, each on a separate SM.
  std::int64_t waves = 0;       ///< Rounds over the SM budget; the last one may be partly full.
  double last_wave_fill = 0.0;  ///< Share of the SM budget that the last wave uses, in (0, 1].
  bool memory_bound = false;    ///< HBM traffic takes longer than the k loops and than the power limit.
  bool power_bound = false;     ///< The power limit takes longer than the k loops and HBM traffic.
};

/// Estimates a GEMM. Communication kernels hold SMs, so `sms` may be fewer than the accelerator has. Requires m, n, k
/// and groups >= 1, 1 <= sms <= accelerator.sms, and a supported dtype. Throws ConfigError for a GEMM over
/// `longest_op_seconds`. Allocates nothing and uses only correctly rounded arithmetic, so every machine computes the
/// same picoseconds.
GemmEstimate estimate_gemm(const Accelerator& accelerator, const GemmSize& size, int sms);

/// Returns what limits the GEMM: latency up to twice the longer of the ramp and the kernel floor, then HBM traffic,
/// then few tiles (one wave, or a split k loop), else compute.
Limit limit_of(const Accelerator& accelerator, const GemmEstimate& estimate, DType dtype);

/// Returns the number of tiles of 128 x 128 that cover the outputs of all groups.
std::int64_t tiles_of_128(const GemmSize& size);

/// Returns 2 m n k, times the groups.
Flops flops_of(const GemmSize& size);

/// Returns the bytes that a GEMM reads and writes at least once: both inputs and the output, and the output once more
/// if the GEMM adds to it.
Bytes compulsory_traffic(const GemmSize& size);

}  // namespace commfuse
