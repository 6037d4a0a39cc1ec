// SPDX-License-Identifier: Apache-2.0
#include "model/cost/shape_sizes.h"

namespace commfuse {

namespace {

Bytes load(const Sizes& sizes, Extent rows, Extent columns, DType wire) {
  return {sizes.elements(rows) * sizes.elements(columns) * bytes_of(wire)};
}

}  // namespace

GemmSize gemm_size(const GemmShape& gemm, const Sizes& sizes) {
  return {.m = sizes.elements(gemm.kernel_m.blocks == 0 ? gemm.m : gemm.kernel_m),
          .n = sizes.elements(gemm.kernel_n.blocks == 0 ? gemm.n : gemm.kernel_n),
          .k = sizes.elements(gemm.k),
          .dtype = gemm.dtype,
          .out = gemm.out,
          .accumulate = gemm.accumulate,
          .converts = false};
}

GemmSize with_factors(GemmSize size, const std::optional<DType>& factors) {
  if (factors) {
    size.out = size.out.value_or(size.dtype);
    size.dtype = *factors;
    size.converts = true;
  }
  return size;
}

AttentionSize attention_size(const AttentionShape& attention, const Sizes& sizes) {
  const std::int64_t head = sizes.block[position(attention.head)];
  const std::int64_t batch = sizes.block[position(attention.batch)];
  const std::int64_t width = sizes.elements(attention.columns);
  return {.batch = batch,
          .seq = sizes.elements(attention.keys) / batch,
          .heads = width / head,
          .kv_heads = (sizes.elements(attention.qkv) - width) / 2 / head,
          .head_dim = head,
          .causal = attention.causal,
          .dtype = attention.dtype};
}

Bytes traffic_of(const ElementwiseShape& elementwise, const Sizes& sizes) {
  const std::int64_t out = sizes.elements(elementwise.rows) * sizes.elements(elementwise.columns);
  const std::int64_t width = elementwise.function == Function::swiglu ? 2 : 1;
  const std::int64_t read = elementwise.inputs * width;
  return {(read + 1) * out * bytes_of(elementwise.dtype)};
}

Bytes load_of(const ExchangeShape& exchange, const Sizes& sizes) {
  return load(sizes, exchange.rows, exchange.columns, exchange.wire);
}

Bytes load_of(const CollectiveShape& collective, const Sizes& sizes) {
  return load(sizes, collective.rows, collective.columns, collective.wire);
}

}  // namespace commfuse
