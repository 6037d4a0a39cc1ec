// SPDX-License-Identifier: Apache-2.0
#include "reports/op_totals.h"

#include <initializer_list>
#include <limits>

#include "model/cost/gemm.h"

namespace commfuse::reports {

namespace {

/// Returns the product of these factors, none of which is negative; the largest number if the product exceeds it.
std::int64_t product_of(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (factor > 0 && product > std::numeric_limits<std::int64_t>::max() / factor) {
      return std::numeric_limits<std::int64_t>::max();
    }
    product *= factor;
  }
  return product;
}

struct Measure {
  const Sizes& sizes;

  OpTotals operator()(const GemmShape& gemm) const {
    const GemmSize size{sizes.elements(gemm.m), sizes.elements(gemm.n), sizes.elements(gemm.k), gemm.dtype};
    return {product_of({2, size.m, size.n, size.k}), compulsory_traffic(size)};
  }

  /// Counts two GEMMs for every sequence: queries by keys, and scores by values.
  OpTotals operator()(const AttentionShape& attention) const {
    const std::int64_t queries = sizes.elements(attention.queries);
    const std::int64_t keys = sizes.elements(attention.keys);
    const std::int64_t width = sizes.elements(attention.columns);
    const std::int64_t batch = sizes.block[position(attention.batch)];
    const std::int64_t in = keys * sizes.elements(attention.qkv);
    return {product_of({attention.causal ? 2 : 4, queries, keys / batch, width}),
            {(in + queries * width) * bytes_of(attention.dtype)}};
  }

  OpTotals operator()(const ElementwiseShape& elementwise) const {
    const std::int64_t out = sizes.elements(elementwise.rows) * sizes.elements(elementwise.columns);
    const std::int64_t width = elementwise.function == Function::swiglu ? 2 : 1;
    const std::int64_t read = elementwise.inputs * width;
    const std::int64_t per_element = elementwise.function == Function::copy ? 0 : read;
    return {per_element * out, {(read + 1) * out * bytes_of(elementwise.dtype)}};
  }

  OpTotals operator()(const ExchangeShape&) const { return {}; }
  OpTotals operator()(const CollectiveShape&) const { return {}; }
};

}  // namespace

OpTotals totals_of(const Sizes& sizes, const Shape& shape) { return std::visit(Measure{sizes}, shape); }

}  // namespace commfuse::reports
