// SPDX-License-Identifier: Apache-2.0
// The time of one matrix product on a budget of SMs.
//
//   time   = max(kernel floor, ramp + sqrt(loops^2 + memory^2) + join)        the smallest over a few tiles and k
//   splits loops  = waves x (2 tile_m tile_n k / splits / SM rate + wave overhead)   waves = ceil(tiles x splits / sms)
//   memory = (k n + cached share of m k + output cost x m n) bytes / HBM rate
//   join   = split overhead + partial products to and from HBM                only when the k loop is split
//
// Tile and wave quantisation: NVIDIA, "Matrix Multiplication Background User's Guide", 2023, sections 3.2 and 3.3.
// Splitting k over idle SMs: Osama et al., "Stream-K", PPoPP 2023, section 4. The root of squares in place of a maximum
// and the cached share are ours: near the ridge neither side hides all of the other, and activations were just written.
// A product that adds to its output also reads m n, at full price: what an earlier product left there has gone to HBM.
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
  bool accumulate = false;        ///< Adds to the output, so that it is read as well.
};

/// Everything the estimate went through, so that a report can say why.
struct GemmEstimate {
  Duration time{};  ///< On the device, launch not counted; never below the kernel floor.
  int tile_m = 0;   ///< The tile and the split are the fastest of a few.
  int tile_n = 0;
  int splits = 1;               ///< Parts the k loop is cut into, each on an SM of its own.
  std::int64_t waves = 0;       ///< Rounds over the SM budget, the last one perhaps not full.
  double last_wave_fill = 0.0;  ///< Share of the SM budget the last wave uses, in (0, 1].
  bool memory_bound = false;    ///< HBM traffic takes longer than the k loops.
};

/// Communication kernels hold SMs, so `sms` may be fewer than the accelerator has. Requires m, n, k >= 1,
/// 1 <= sms <= accelerator.sms, and the dtype supported. Throws ConfigError for a product over `longest_op_seconds`.
/// Allocates nothing and uses only correctly rounded arithmetic: the same picoseconds everywhere.
GemmEstimate estimate_gemm(const Accelerator& accelerator, const GemmSize& size, int sms);

/// Bytes a product reads and writes at least once: both inputs and the output, and the output again when it adds to it.
Bytes compulsory_traffic(const GemmSize& size);

}  // namespace commfuse
