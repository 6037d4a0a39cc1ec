// SPDX-License-Identifier: Apache-2.0
// Tables of the products and memory-bound kernels of one framework layer: what their rows say was run.
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

/// Of one degree of tensor parallelism, in elements a row; 0: no product told.
struct LayerWidths {
  std::int64_t hidden = 0;
  std::int64_t heads_and_kv = 0;  ///< What QKV writes.
  std::int64_t heads = 0;
  std::int64_t inner = 0;
};

/// By degree of tensor parallelism. Memory-bound rows do not say how wide they are; the products of the same degree do:
/// QKV reads the hidden size and writes all heads, the down projection reads a shard of the MLP's inner size.
std::map<std::int64_t, LayerWidths> layer_widths_in(const Table& table);

/// What `rows` rows of the op move, every byte once; nothing for an op that the model does not have, or where no
/// product told the width.
std::optional<FrameworkKernelSize> framework_kernel_of(std::string_view op, std::int64_t rows,
                                                       const LayerWidths& widths, DType dtype);

/// Of all rows: fp16 where the comments say so, else bf16.
DType dtype_of_layer(const Table& table);

}  // namespace commfuse::score
