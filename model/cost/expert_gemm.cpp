// SPDX-License-Identifier: Apache-2.0
#include "model/cost/expert_gemm.h"

#include <algorithm>
#include <variant>

#include "model/cost/shape_sizes.h"

namespace commfuse {

namespace {

std::int64_t divided_up(std::int64_t amount, std::int64_t parts) { return (amount + parts - 1) / parts; }

bool cuts_columns(const ExpertSplit& experts) { return experts.cut == WeightCut::columns; }

/// Returns the number of copies of a site's buffer that a rank holds with experts. The rank holds as many weights as if
/// it had its share of every expert; a buffer with the extent that the ranks share has the rows of the rank's experts.
std::int64_t copies_of(const Buffer& buffer, const GemmShape& gemm, const ExpertSplit& experts) {
  if (buffer.role == BufferRole::weight) {
    return experts.count;
  }
  const DimensionId shared = cuts_columns(experts) ? gemm.n.dimension : gemm.k.dimension;
  return buffer.columns.dimension == shared ? experts.active : 1;
}

}  // namespace

std::int64_t routed_rows(const ExpertSplit& experts, std::int64_t tokens) {
  return divided_up(tokens * experts.active, experts.ranks);
}

GemmSize grouped(const ExpertSplit& experts, const GemmSize& size) {
  if (experts.count == 0) {
    return size;
  }
  GemmSize kernel = size;
  const std::int64_t rows = routed_rows(experts, size.m);
  kernel.groups = std::min(experts.count / experts.ranks, rows);
  kernel.m = divided_up(rows, kernel.groups);
  (cuts_columns(experts) ? kernel.n : kernel.k) *= experts.ranks;
  return kernel;
}

Bytes routing_traffic(const ExpertSplit& experts, const GemmSize& size) {
  if (experts.count == 0) {
    return {};
  }
  const std::int64_t rows = routed_rows(experts, size.m);
  return cuts_columns(experts) ? Bytes{2 * rows * size.k * bytes_of(size.dtype)}
                               : Bytes{(rows + size.m) * size.n * bytes_of(size.out.value_or(size.dtype))};
}

Bytes bytes_per_rank(const Program& program, const Sizes& sizes, const ExpertSplit& experts) {
  if (experts.count == 0) {
    return bytes_per_rank(program, sizes);
  }
  Bytes total{};
  for (const Shape& shape : program.unfused) {
    const auto* gemm = std::get_if<GemmShape>(&shape);
    if (gemm == nullptr) {
      continue;
    }
    for (const Buffer& buffer : program.buffers) {
      const Bytes of_expert{sizes.elements(buffer.rows) * sizes.elements(buffer.columns) * bytes_of(buffer.dtype)};
      total += copies_of(buffer, *gemm, experts) * of_expert;
    }
    const GemmSize size = gemm_size(*gemm, sizes);
    total += Bytes{routed_rows(experts, size.m) * (cuts_columns(experts) ? size.k : size.n) * bytes_of(size.dtype)};
  }
  return total;
}

}  // namespace commfuse
