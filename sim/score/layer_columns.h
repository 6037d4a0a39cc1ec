// SPDX-License-Identifier: Apache-2.0
// Reads tables of the GEMMs and memory-bound kernels of one framework layer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "model/cost/framework_kernel.h"
#include "model/dtype.h"
#include "sim/score/row.h"
#include "sim/score/table.h"

namespace commfuse::score {

struct LayerColumns {
  explicit LayerColumns(const Table& table);
  Column hw, op, tp, m, n, k, time;
};

/// Widths at one degree of tensor parallelism, in elements per row; 0 if no GEMM determines the width.
struct LayerWidths {
  std::int64_t hidden = 0;
  std::int64_t heads_and_kv = 0;  ///< Output width of QKV.
  std::int64_t heads = 0;
  std::int64_t inner = 0;
};

/// Returns the widths by degree of tensor parallelism. Memory-bound rows do not state their width, so it is taken from
/// GEMMs of the same degree: QKV reads the hidden size and writes the rank's heads, and the down projection reads a
/// shard of the MLP's inner size.
std::map<std::int64_t, LayerWidths> layer_widths_in(const Table& table);

/// Returns the kernel that runs `op` on `rows` rows; its traffic counts every byte once. Returns nothing if no kernel
/// is known for `op` or no GEMM determines the width.
std::optional<FrameworkKernelSize> framework_kernel_of(std::string_view op, std::int64_t rows,
                                                       const LayerWidths& widths, DType dtype);

/// Returns the dtype of all rows: fp16 if a comment mentions it, otherwise bf16.
DType dtype_of_layer(const Table& table);

}  // namespace commfuse::score
