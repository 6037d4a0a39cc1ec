// SPDX-License-Identifier: Apache-2.0
// Reads the sizes of a measured GEMM, attention, expert layer or quantization from a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/cost/attention.h"
#include "model/cost/expert_layer.h"
#include "model/cost/gemm.h"
#include "model/cost/latent_decode.h"
#include "model/cost/quantization.h"
#include "model/dtype.h"
#include "sim/score/row.h"
#include "sim/score/table.h"

namespace commfuse::score {

/// Converts the dtype names of tables, such as bfloat16, float16, half and fp8_e4m3. Returns nothing for other formats.
std::optional<DType> dtype_in_table(std::string_view word);

/// The columns of a GEMM; `size` reads an unknown dtype as bf16.
struct ProductColumns {
  /// If the table's `# software:` mentions weight copies, the timed runs alternate between up to five copies of the
  /// weight, as in aiconfigurator's collectors.
  explicit ProductColumns(const Table& table);
  /// GEMMs in fp8 write bf16, as in frameworks; other GEMMs write their input dtype.
  [[nodiscard]] GemmSize size(Row& row) const;
  Column hw, dtype, m, n, k;
  int weight_copies = 0;
};

/// The columns of a causal prefill attention; a missing or unknown dtype reads as bf16.
struct AttentionColumns {
  explicit AttentionColumns(const Table& table);
  [[nodiscard]] AttentionSize size(Row& row) const;
  Column hw, batch, seq, heads, kv_heads, head_dim, dtype;
};

/// The columns of attention in decoding. In the size, `seq` counts the keys of a sequence (kv_len), and `dtype` is the
/// dtype of the cache (kv_dtype); a missing or unknown dtype reads as bf16.
struct DecodeColumns {
  explicit DecodeColumns(const Table& table);
  [[nodiscard]] AttentionSize size(Row& row) const;
  Column hw, batch, keys, heads, kv_heads, head_dim, cache;
};

/// The columns of latent attention in decoding over keys of DeepSeek's width, which heads share. An unknown dtype of
/// the cache reads as bf16.
struct LatentDecodeColumns {
  explicit LatentDecodeColumns(const Table& table);
  [[nodiscard]] LatentDecodeSize size(Row& row) const;
  Column hw, batch, keys, heads, cache;
};

/// The columns of an expert layer on one GPU; a missing or unknown dtype reads as bf16. A kernel whose name contains
/// "nongated" has one weight before the activation.
struct ExpertColumns {
  explicit ExpertColumns(const Table& table);
  [[nodiscard]] ExpertLayerSize size(Row& row) const;
  /// Returns why no setting describes the row; empty if one does.
  [[nodiscard]] std::string why_not(const Row& row) const;
  Column hw, dtype, kernel, tokens, hidden, ffn, active, experts, tp, ep, distribution;
};

/// The columns of a quantization of m x k activations. `op` is scale_matrix for a conversion with a given scale, and
/// compute_scale for the additional time to find the scale.
struct QuantizationColumns {
  explicit QuantizationColumns(const Table& table);
  [[nodiscard]] QuantizationSize size(Row& row) const;
  /// Returns why no setting describes the row; empty if one does.
  [[nodiscard]] std::string why_not(const Row& row) const;
  Column hw, op, m, k, input, output;
};

}  // namespace commfuse::score
