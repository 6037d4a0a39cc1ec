// SPDX-License-Identifier: Apache-2.0
#include "sim/score/layer_columns.h"

namespace commfuse::score {

LayerColumns::LayerColumns(const Table& table)
    : hw(table.column("hw")),
      op(table.column("op")),
      tp(table.column("tp")),
      m(table.column("m")),
      n(table.column("n")),
      k(table.column("k")),
      time(table.column("median_us")) {}

std::map<std::int64_t, LayerWidths> layer_widths_in(const Table& table) {
  const LayerColumns columns(table);
  std::map<std::int64_t, LayerWidths> by_degree;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    if (!row.is_sound() || !row.has(columns.n) || !row.has(columns.k)) {
      continue;
    }
    const std::string_view op = row.text(columns.op);
    const std::int64_t n = row.count(columns.n);
    const std::int64_t k = row.count(columns.k);
    LayerWidths& widths = by_degree[row.count(columns.tp)];
    if (row.is_sound() && op == "attn_pre_proj") {
      widths.hidden = k;
      widths.heads_and_kv = n;
    } else if (row.is_sound() && op == "attn_post_proj") {
      widths.heads = k;
    } else if (row.is_sound() && op == "mlp_down_proj") {
      widths.inner = k;
    }
  }
  return by_degree;
}

std::optional<FrameworkKernelSize> framework_kernel_of(std::string_view op, std::int64_t rows,
                                                       const LayerWidths& widths, DType dtype) {
  const auto kernel = [&](FrameworkKernel which, std::int64_t width, std::int64_t tensors_moved) {
    const FrameworkKernelSize size{
        .kernel = which, .rows = rows, .width = width, .traffic = {tensors_moved * rows * width * bytes_of(dtype)}};
    return width > 0 ? std::optional(size) : std::nullopt;
  };
  const std::int64_t kv = (widths.heads_and_kv - widths.heads) / 2;
  if (op == "add") {
    return kernel(FrameworkKernel::sum, widths.hidden, 3);
  }
  if (op == "input_layernorm" || op == "post_attention_layernorm") {
    return kernel(FrameworkKernel::norm, widths.hidden, 2);
  }
  if (op == "mlp_act") {
    return kernel(FrameworkKernel::activation, widths.inner, 3);  // reads gate and up, writes their elementwise product
  }
  if (op == "attn_rope") {
    const bool is_known = widths.heads > 0 && kv > 0;
    return kernel(FrameworkKernel::rotation, is_known ? widths.heads + kv : 0, 2);  // queries and keys, in place
  }
  return std::nullopt;
}

DType dtype_of_layer(const Table& table) { return table.comments_say("fp16") ? DType::fp16 : DType::bf16; }

}  // namespace commfuse::score
