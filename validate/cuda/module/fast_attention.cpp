// SPDX-License-Identifier: Apache-2.0
// For every sequence, column block and kv head: scores = q k^T / sqrt(head), weights = softmax(scores), and
// out = weights v. Each GEMM is batched over the query heads that share the kv head. Queries are processed in chunks,
// so that scores and weights fit in attention_room; a causal chunk uses only the keys up to the position of its last
// query.
#include "validate/cuda/module/fast_attention.h"

#include <algorithm>
#include <cmath>

#include "validate/cuda/attention_pieces.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/views.h"

namespace commfuse::validate {

namespace {

/// A chunk computes the scores of all its queries for the keys of its last query. In a larger causal chunk, too many of
/// these scores would be masked, because their keys come after the query.
constexpr std::int64_t causal_chunk = 1024;
/// Rows of scores begin at a multiple of this number of elements, so that they are aligned for tensor cores.
constexpr std::int64_t row_step = 64;

/// The queries of one sequence and kv head.
struct Group {
  Panel q, k, v, out;      // panels of its first head; rows are positions of the sequence
  std::int64_t heads = 1;  // heads that share k and v, `head` columns apart
  std::int64_t first_position = 0;
};

struct Chunk {
  std::int64_t first = 0, queries = 0, keys = 0;
};

class FastAttention {
 public:
  FastAttention(cudaStream_t stream, LibraryProducts& products, const Workspace& workspace,
                const std::function<void*(std::size_t)>& room, const AttentionLayout& layout)
      : stream_(stream), products_(products), workspace_(workspace), room_(room), layout_(layout) {}

  void run(const Group& group) const {
    const std::int64_t rows_per_chunk = chunk_rows(group);
    for (std::int64_t first = 0; first < group.q.rows; first += rows_per_chunk) {
      Chunk chunk{.first = first, .queries = std::min(rows_per_chunk, group.q.rows - first), .keys = group.k.rows};
      if (layout_.causal) {
        chunk.keys = std::min(chunk.keys, group.first_position + first + chunk.queries);
      }
      run(group, chunk);
    }
  }

 private:
  static std::int64_t stride_of(std::int64_t keys) { return groups_of(keys, row_step) * row_step; }
  static std::int64_t row_bytes(const Group& group) {
    return group.heads * stride_of(group.k.rows) * (bytes_of(DType::fp32) + bytes_of(group.q.dtype));
  }

  [[nodiscard]] std::int64_t chunk_rows(const Group& group) const {
    const std::int64_t fits = static_cast<std::int64_t>(attention_room) / std::max<std::int64_t>(row_bytes(group), 1);
    return std::max<std::int64_t>(std::min(fits, layout_.causal ? causal_chunk : fits), 1);
  }

  void run(const Group& group, const Chunk& chunk) const {
    const std::int64_t stride = stride_of(chunk.keys);
    const std::int64_t step = chunk.queries * stride;
    const std::int64_t score_bytes = group.heads * step * bytes_of(DType::fp32);
    const std::int64_t weight_bytes = group.heads * step * bytes_of(group.q.dtype);
    const auto scores_at = reinterpret_cast<Address>(room_(static_cast<std::size_t>(score_bytes + weight_bytes)));
    const Panel scores{scores_at, chunk.queries, chunk.keys, stride, DType::fp32};
    const Panel weights{scores_at + static_cast<Address>(score_bytes), chunk.queries, chunk.keys, stride,
                        group.q.dtype};
    const int heads = static_cast<int>(group.heads);
    products_.run(stream_, workspace_,
                  {.call = {.a = rows_of(group.q, chunk.first, chunk.queries),
                            .b = rows_of(group.k, 0, chunk.keys),
                            .out = scores,
                            .transpose_b = true},
                   .count = heads,
                   .step_a = layout_.head,
                   .step_out = step,
                   .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(layout_.head)))});
    launch_softmax(stream_, softmax_of(group, chunk, scores, weights));
    products_.run(stream_, workspace_,
                  {.call = {.a = weights,
                            .b = rows_of(group.v, 0, chunk.keys),
                            .out = rows_of(group.out, chunk.first, chunk.queries)},
                   .count = heads,
                   .step_a = step,
                   .step_out = layout_.head});
  }

  [[nodiscard]] SoftmaxCall softmax_of(const Group& group, const Chunk& chunk, const Panel& scores,
                                       const Panel& weights) const {
    return {.scores = reinterpret_cast<const float*>(scores.at),  // NOLINT(*-no-int-to-ptr): device memory
            .weights = reinterpret_cast<void*>(weights.at),       // NOLINT(*-no-int-to-ptr): as above
            .dtype = weights.dtype,
            .heads = group.heads,
            .queries = chunk.queries,
            .keys = chunk.keys,
            .stride = scores.stride,
            .first_position = group.first_position + chunk.first,
            .causal = layout_.causal};
  }

  static Panel rows_of(const Panel& of, std::int64_t first, std::int64_t count) {
    Panel rows = of;
    rows.at += static_cast<Address>(first * of.stride * bytes_of(of.dtype));
    rows.rows = count;
    return rows;
  }

  cudaStream_t stream_;
  LibraryProducts& products_;
  const Workspace& workspace_;
  const std::function<void*(std::size_t)>& room_;
  const AttentionLayout& layout_;
};

/// Returns the rows of one sequence, with the columns of one head.
Panel panel_of(Address at, std::int64_t rows, std::int64_t stride, DType dtype, const AttentionPieceShape& shape) {
  return {at, rows, shape.head, stride * shape.batch, dtype};
}

}  // namespace

void launch_fast_attention(cudaStream_t stream, LibraryProducts& products, const Workspace& workspace,
                           const std::function<void*(std::size_t)>& room, const AttentionCall& call) {
  const FastAttention attention(stream, products, workspace, room, call.layout);
  for (const AttentionPiece& piece : pieces_of(call, false)) {
    const AttentionPieceShape& shape = piece.shape;
    const std::int64_t shared = shape.heads / shape.kv_heads;
    const auto head = static_cast<Address>(shape.head * bytes_of(shape.dtype));
    const auto out_head = static_cast<Address>(shape.head * bytes_of(shape.out_dtype));
    for (Address kv = 0; kv < static_cast<Address>(shape.kv_heads); ++kv) {
      const Address first = kv * static_cast<Address>(shared);
      attention.run(
          {.q = panel_of(piece.queries + first * head, shape.queries, shape.query_stride, shape.dtype, shape),
           .k = panel_of(piece.keys + kv * head, shape.keys, shape.key_stride, shape.dtype, shape),
           .v = panel_of(piece.values + kv * head, shape.keys, shape.key_stride, shape.dtype, shape),
           .out = panel_of(piece.out + first * out_head, shape.queries, shape.out_stride, shape.out_dtype, shape),
           .heads = shared,
           .first_position = piece.first_position});
    }
  }
}

}  // namespace commfuse::validate
