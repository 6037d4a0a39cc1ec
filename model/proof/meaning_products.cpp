// SPDX-License-Identifier: Apache-2.0
// GEMMs of symbolic values.
#include <fmt/format.h>

#include <array>

#include "model/proof/meaning.h"

namespace commfuse {

namespace {

/// Returns the transpose of a matrix with `columns` blocks per row.
CellValues transposed(const CellValues& values, std::size_t columns) {
  CellValues result;
  result.reserve(values.size());
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t at = column; at < values.size(); at += columns) {
      result.push_back(values[at]);
    }
  }
  return result;
}

/// A factor in the order of its GEMM: `outer` is its position in the result, `inner` its position along the
/// contraction.
struct Factor {
  const CellValue& value;
  std::int32_t outer;
  std::int32_t inner;
};
Factor left(const CellValue& value, bool transposed) {
  return transposed ? Factor{value, value.column, value.row} : Factor{value, value.row, value.column};
}
Factor right(const CellValue& value, bool transposed) { return left(value, !transposed); }

}  // namespace

void Meaning::multiply(Where where, const GemmShape& shape, CellValues& a, CellValues& b, const CellValues& old,
                       CellValues& out) {
  const auto m = static_cast<std::size_t>(shape.m.blocks);
  const auto k = static_cast<std::size_t>(shape.k.blocks);
  const auto n = static_cast<std::size_t>(shape.n.blocks);
  if (shape.transpose_a) {
    a = transposed(a, m);
  }
  if (shape.transpose_b) {
    b = transposed(b, k);
  }
  out.clear();
  out.reserve(m * n);
  std::span<const CellValue> column(b);  // already in order if there is only one column
  if (n > 1) {
    column_.resize(k);
    column = column_;
  }
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t t = 0; n > 1 && t < k; ++t) {
        column_[t] = b[t * n + j];
      }
      const CellValue product = contract(where, shape, std::span<const CellValue>(a).subspan(i * k, k), column);
      out.push_back(old.empty() ? product : sum(where, std::array{old[out.size()], product}));
    }
  }
}

CellValue Meaning::multiply(Where where, const GemmShape& shape, const CellValue& a, const CellValue& b) {
  const Factor factor_a = left(a, shape.transpose_a);
  const Factor factor_b = right(b, shape.transpose_b);
  if (complete(a) && complete(b) && factor_a.inner == factor_b.inner) {
    const TensorId product = product_of(shape, a.tensor, b.tensor);
    if (product != no_tensor) {
      return {product, factor_a.outer, factor_b.outer, sums_.range(factor_a.inner, factor_a.inner + 1)};
    }
  }
  return contract(where, shape, {&a, 1}, {&b, 1});  // reports the mistake
}

CellValue Meaning::contract(Where where, const GemmShape& shape, std::span<const CellValue> a,
                            std::span<const CellValue> b) {
  parts_.clear();
  const Factor first_a = left(a[0], shape.transpose_a);
  const Factor first_b = right(b[0], shape.transpose_b);
  for (std::size_t t = 0; t < a.size(); ++t) {
    if (is_wrong(a[t]) || is_wrong(b[t])) {
      return wrong_value;
    }
    for (const CellValue* factor : {&a[t], &b[t]}) {
      if (!complete(*factor)) {
        return wrong(where, [&] { return fmt::format("multiplies {}, which is not complete", words(*factor)); });
      }
    }
    const Factor factor_a = left(a[t], shape.transpose_a);
    const Factor factor_b = right(b[t], shape.transpose_b);
    if (a[t].tensor != a[0].tensor || factor_a.outer != first_a.outer || b[t].tensor != b[0].tensor ||
        factor_b.outer != first_b.outer) {
      return wrong(where, [&] {
        return fmt::format("adds up {} and {}", times(shape, a[0], b[0], " times "),
                           times(shape, a[t], b[t], " times "));
      });
    }
    if (factor_a.inner != factor_b.inner) {
      return wrong(where, [&] {
        return fmt::format("multiplies {}, which are different blocks of the contraction",
                           times(shape, a[t], b[t], " by "));
      });
    }
    parts_.push_back(sums_.range(factor_a.inner, factor_a.inner + 1));
  }
  const TensorId product = product_of(shape, a[0].tensor, b[0].tensor);
  if (product == no_tensor) {
    return wrong(where, [&] {
      return fmt::format("multiplies {}, which is not a product of the operation", times(shape, a[0], b[0], " by "));
    });
  }
  return united(where, {product, first_a.outer, first_b.outer, 0});
}

std::string Meaning::times(const GemmShape& shape, const CellValue& a, const CellValue& b, const char* between) const {
  return fmt::format("{}{}{}{}{}", words(a), shape.transpose_a ? "^T" : "", between, words(b),
                     shape.transpose_b ? "^T" : "");
}

TensorId Meaning::product_of(const GemmShape& shape, TensorId a, TensorId b) const {
  for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
    const Tensor& tensor = program_.tensors[i];
    if (tensor.definition == Tensor::Definition::product && tensor.a == a && tensor.b == b &&
        tensor.transpose_a == shape.transpose_a && tensor.transpose_b == shape.transpose_b) {
      return TensorId{static_cast<std::int32_t>(i)};
    }
  }
  return no_tensor;
}

}  // namespace commfuse
