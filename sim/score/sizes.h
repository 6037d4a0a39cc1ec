// SPDX-License-Identifier: Apache-2.0
// What the cells of a row say was measured: the sizes of a product or an attention.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/cost/attention.h"
#include "model/cost/gemm.h"
#include "model/dtype.h"
#include "sim/score/row.h"
#include "sim/score/table.h"

namespace commfuse::score {

/// Our name of what tables call bfloat16, float16, half, fp8_e4m3 and so on; nothing for other formats.
std::optional<DType> dtype_in_table(std::string_view word);

/// The columns of a product; `size` takes bf16 for a dtype that we have not.
struct ProductColumns {
  /// A table whose `# software:` speaks of weight copies was timed over at most five of them in turn, as
  /// aiconfigurator's collectors do.
  explicit ProductColumns(const Table& table);
  /// Products of fp8 write bf16, as frameworks do; the others write what they read.
  [[nodiscard]] GemmSize size(Row& row) const;
  Column hw, dtype, m, n, k;
  int weight_copies = 0;
};

/// The columns of a causal prefill attention; without a dtype it is bf16, and one that we have not reads as bf16.
struct AttentionColumns {
  explicit AttentionColumns(const Table& table);
  [[nodiscard]] AttentionSize size(Row& row) const;
  Column hw, batch, seq, heads, kv_heads, head_dim, dtype;
};

}  // namespace commfuse::score
