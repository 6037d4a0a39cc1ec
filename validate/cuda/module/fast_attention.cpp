// SPDX-License-Identifier: Apache-2.0
// For every sequence, column block and kv head: scores = q k^T / sqrt(head), weights = softmax(scores), out = weights
// v, the query heads that share the kv head side by side. Queries go in chunks, so that the scores fit where they are
// kept, and causal ones see no more keys than the last of their chunk.
#include "validate/cuda/module/fast_attention.h"

#include <algorithm>
#include <cmath>

#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/views.h"

namespace commfuse::validate {

namespace {

/// Beyond, a chunk of causal queries computes too much that none of them sees.
constexpr std::int64_t causal_chunk = 1024;
/// Rows of scores begin at a multiple of so many, which tensor cores want of bf16.
constexpr std::int64_t row_step = 64;

/// The queries of one sequence and kv head.
struct Group {
  Panel q, k, v, out;      // of its first head; rows are positions of the sequence
  std::int64_t heads = 1;  // that share k and v, `head` columns apart
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
    const std::int64_t most = chunk_rows(group);
    for (std::int64_t first = 0; first < group.q.rows; first += most) {
      Chunk chunk{.first = first, .queries = std::min(most, group.q.rows - first), .keys = group.k.rows};
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
            .weights = reinterpret_cast<void*>(weights.at),       // NOLINT(*-no-int-to-ptr)
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

/// Every batch-th row from `first` on, and some of the columns.
Panel sequence_of(const Panel& of, std::int64_t first, std::int64_t batch, std::int64_t column, std::int64_t columns) {
  return {of.at + static_cast<Address>((first * of.stride + column) * bytes_of(of.dtype)),
          first < of.rows ? groups_of(of.rows - first, batch) : 0, columns, of.stride * batch, of.dtype};
}

}  // namespace

void launch_fast_attention(cudaStream_t stream, LibraryProducts& products, const Workspace& workspace,
                           const std::function<void*(std::size_t)>& room, const AttentionCall& call) {
  require(call.functions == Functions::real, "fast attention is of real functions");
  const AttentionLayout& layout = call.layout;
  const std::int64_t kv_heads = (layout.qkv - layout.out) / 2 / layout.head;
  const std::int64_t shared = layout.out / layout.head / kv_heads;
  const FastAttention attention(stream, products, workspace, room, layout);
  for (const AttentionCall::Part& part : call.parts) {
    for (std::int64_t sequence = 0; sequence < layout.batch; ++sequence) {
      // The first of the part's rows that belongs to this sequence.
      const std::int64_t first = (sequence - part.first_row % layout.batch + layout.batch) % layout.batch;
      for (std::int64_t i = 0; i < part.queries.columns / layout.qkv * kv_heads; ++i) {
        const std::int64_t block = i / kv_heads;
        const std::int64_t q = i % kv_heads * shared * layout.head;
        const std::int64_t k = block * layout.qkv + layout.out + i % kv_heads * layout.head;
        const std::int64_t v = k + kv_heads * layout.head;
        attention.run({.q = sequence_of(part.queries, first, layout.batch, block * layout.qkv + q, layout.head),
                       .k = sequence_of(call.keys, sequence, layout.batch, k, layout.head),
                       .v = sequence_of(call.keys, sequence, layout.batch, v, layout.head),
                       .out = sequence_of(part.out, first, layout.batch, block * layout.out + q, layout.head),
                       .heads = shared,
                       .first_position = (part.first_row + first) / layout.batch});
      }
    }
  }
}

}  // namespace commfuse::validate
