// SPDX-License-Identifier: Apache-2.0
// Time of attention, by a fused (FlashAttention-like) kernel and by three kernels that write the scores to memory.
//
//   fused      = overhead + tiles + (query cost x (q, output) + key cost x (k, v)) bytes / HBM bandwidth
//   tiles      = max(shared + imbalance x min(longest, shared), lone tile x longest)
//                + ceil(number of tiles / sms) x tile overhead
//   shared     = heads x (number of scores + edges x masked width / 2) x score time / sms
//   score time = sms x ((4 head_dim / (dense peak x loop efficiency))^4 + (1 / exponentials)^4)^(1/4)
//   longest    = 128 x keys x score time
//   edges      = queries + queries that see only the last keys of a window; 0 without a causal mask
//
// GEMMs and exponentials of different tiles run concurrently, so the slower of the two nearly determines the time; the
// fourth root is this project's approximation. Heads no wider than 64 use other kernels and have an overhead of their
// own (narrow overhead). A tile that has an SM to itself (lone tile) cannot hide its exponentials behind the GEMMs of
// another tile. If keys are split, no tile counts as alone.
//
// FlashAttention-3 (split cost above 0) differs: a tile holds 128 query rows, counted over all heads that share keys,
// tiles start as SMs become free, and queries and output move while tiles run (fourth root of both times). A sequence
// of more than `unsplit keys` with fewer tiles than 0.8 times the SMs has its keys split: a score takes `split cost`
// times as long, and no tile is alone. This is the rule of its num_splits_heuristic, which assumes that all sequences
// but one are short.
//
// A tile is 128 queries of a head, as in Dao, "FlashAttention-2", 2023, section 3. Its exponentials limit it as its
// GEMMs do (Shah et al., "FlashAttention-3", 2024, section 3.2), and on B200 they limit it more than its GEMMs. Public
// tables time what a framework calls attention, which includes the write of keys and values to their cache, so the
// traffic is added.
#pragma once

#include <cstdint>

#include "model/dtype.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Largest width of a narrow head, in elements. Narrow heads have factors of their own on some times.
inline constexpr std::int64_t narrow_head = 64;

/// Size of the attention in one rank's heads. `seq` is the number of query rows, and of keys, per sequence.
struct AttentionSize {
  std::int64_t batch = 1;
  std::int64_t seq = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 128;
  bool causal = true;
  DType dtype = DType::bf16;
};

/// Returns the time of the fused kernel, never below the kernel floor. Requires 1 <= sms <= accelerator.sms.
Duration attention_time(const Accelerator& accelerator, const AttentionSize& size, int sms);

/// Returns what limits the fused kernel: latency if its time is at most twice its overhead, else few tiles if there is
/// at most one tile per SM, else the longer of traffic and scores.
Limit limit_of(const Accelerator& accelerator, const AttentionSize& size);

/// Keys that a query sees, including its own: the last `keys` keys (a sliding window) or, if `chunked`, the keys of its
/// own block of `keys` keys. 0: all keys. Sources: Beltagy et al., "Longformer", 2020; Jiang et al., "Mistral 7B",
/// 2023; Meta, Llama 4, 2025 (blocks).
struct AttentionWindow {
  std::int64_t keys = 0;
  bool chunked = false;
  friend bool operator==(const AttentionWindow&, const AttentionWindow&) = default;
};

AttentionWindow window_of(const LayerKind& kind);

/// Returns the approximate number of scores of the queries from `first` to `last` under a window, when each query sees
/// itself and the keys before it. A query is assumed to see half of its own row.
double scores_in_window(const AttentionWindow& window, double first, double last);

/// Returns how many of the queries from `first` to `last` see only some of the keys before them, under a sliding
/// window: the mask has a second edge for them. 0 for blocks, whose queries see every earlier key of their own block.
double queries_beyond(const AttentionWindow& window, double first, double last);

/// Some of the query rows of an attention, in all its heads.
struct QueryRows {
  std::int64_t queries = 0;  // per sequence
  std::int64_t keys = 0;     // per sequence: keys that some of the queries see
  double share = 0.0;  // unmasked scores of these rows, divided by seq x seq; for all rows together 1, or 1/2 if causal
  AttentionWindow window{};  // limits the keys that a tile visits
  double beyond = 0.0;       // queries with a second edge of the mask, behind the window
};

/// Returns the time for some of the query rows. Parts together take no less time than the whole, because every part has
/// its overhead and its longest tile, and reads its keys again.
Duration attention_time(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows, int sms);

/// Returns the time of attention as three kernels: the GEMM of queries and keys, a softmax that reads and writes every
/// score, and the GEMM with the values, as in Megatron-LM's core attention before FlashAttention (Korthikanti et al.,
/// 2022, figure 2). A mask saves nothing, since all `keys` are multiplied. Scores are 16 bits wide; softmax and dropout
/// move 8 bytes per score.
Duration unfused_attention_time(const Accelerator& accelerator, const AttentionSize& size, int sms);
Duration unfused_attention_time(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows,
                                int sms);

/// The kernel that computes attention.
enum class AttentionKernel : std::uint8_t { fused, unfused };

/// Returns `attention_time` or `unfused_attention_time`, according to `kernel`.
Duration attention_time(const Accelerator& accelerator, AttentionKernel kernel, const AttentionSize& size,
                        const QueryRows& rows, int sms);

}  // namespace commfuse
