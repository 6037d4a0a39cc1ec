// SPDX-License-Identifier: Apache-2.0
// The time of attention: a fused (FlashAttention-like) kernel, and three kernels that write the scores out.
//
//   fused  = overhead + tiles + (query cost x (q, output) + key cost x (k, v)) bytes / HBM bandwidth
//   tiles  = max(all + imbalance x longest, lone tile x longest) + ceil(tiles / sms) x tile overhead
//   all    = heads x (scores + edges x masked width / 2) x a score / sms
//   a score = sms x ((4 head_dim / (dense peak x loop efficiency))^4 + (1 / exponentials)^4)^(1/4)
//   longest = 128 x keys x a score
//   edges   = queries, once more those that see only the last keys of a window; 0 without a causal mask
//
// Products and exponentials of different tiles run beside each other, so the slower of them counts, nearly: the fourth
// root is ours. Heads no wider than 64 have overheads of their own (narrow overhead): other kernels. A tile that has an
// SM to itself (lone tile) cannot hide its exponentials behind another's products, or its keys are split.
//
// FlashAttention-3 (split cost above 0) differs: a tile holds 128 queries of all heads that share keys, tiles are begun
// as SMs come free, and queries and output move beside the tiles (the fourth root of both). A sequence of more than
// `unsplit keys` whose tiles are fewer than 0.8 of the SMs has its keys split: a score takes `split cost` times as
// long, and no tile is alone. So says its num_splits_heuristic, which takes all sequences but one for short.
//
// A tile is 128 queries of a head, as in Dao, "FlashAttention-2", 2023, section 3; beside the products the exponentials
// bound it (Shah et al., "FlashAttention-3", 2024, section 3.2), on B200 more than the products do. Public tables time
// what a framework calls attention, with the write of keys and values to their cache: so traffic adds up.
#pragma once

#include <cstdint>

#include "model/dtype.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// One rank's heads. `seq`: query rows of a sequence, and keys.
struct AttentionSize {
  std::int64_t batch = 1;
  std::int64_t seq = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 128;
  bool causal = true;
  DType dtype = DType::bf16;
};

/// Never below the kernel floor. Requires 1 <= sms <= accelerator.sms.
Duration attention_time(const Accelerator& accelerator, const AttentionSize& size, int sms);

/// What limits the fused kernel: latency up to twice its overhead, then tiles that do not fill the SMs once, then the
/// longer of traffic and scores.
Limit limit_of(const Accelerator& accelerator, const AttentionSize& size);

/// Keys that a query sees, its own among them: the last so many, or those of its own block of so many. 0: all.
/// Sources: Beltagy et al., "Longformer", 2020; Jiang et al., "Mistral 7B", 2023; Meta, Llama 4, 2025 (blocks).
struct AttentionWindow {
  std::int64_t keys = 0;
  bool chunked = false;
  friend bool operator==(const AttentionWindow&, const AttentionWindow&) = default;
};

AttentionWindow window_of(const LayerKind& kind);

/// Scores of the queries from `first` to `last`, each of which sees itself and what is before it, behind a window:
/// the number of pairs, about (a query sees half of its own row).
double scores_in_window(const AttentionWindow& window, double first, double last);

/// How many of the queries from `first` to `last` see only some of the keys before them, behind a window that slides:
/// the mask has a second edge there. 0 for chunks, whose queries see all that is before them in their own.
double queries_beyond(const AttentionWindow& window, double first, double last);

/// Some of the query rows of an attention, all its heads.
struct QueryRows {
  std::int64_t queries = 0;  // of a sequence
  std::int64_t keys = 0;     // of a sequence: those that some of the queries see
  double share = 0.0;  // of the seq x seq scores: those that the mask leaves them; all rows have 1, or 1/2 if causal
  AttentionWindow window{};  // a tile walks no more keys
  double beyond = 0.0;       // of the queries: those that the mask has a second edge for, behind the window
};

/// The same for some of its query rows. Parts take no less time than the whole: every part has its overhead and its
/// longest tile, and reads its keys again.
Duration attention_time(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows, int sms);

/// Not fused: the product of queries and keys, a softmax that reads and writes every score, and the product with the
/// values, as Megatron-LM's core attention before FlashAttention (Korthikanti et al., 2022, figure 2). A mask saves
/// nothing: all `keys` are multiplied. Scores are 16 bits wide; 8 bytes of traffic a score: softmax and dropout.
Duration unfused_attention_time(const Accelerator& accelerator, const AttentionSize& size, int sms);
Duration unfused_attention_time(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows,
                                int sms);

/// Which of the two.
enum class AttentionKernel : std::uint8_t { fused, unfused };

/// `attention_time` or `unfused_attention_time`.
Duration attention_time(const Accelerator& accelerator, AttentionKernel kernel, const AttentionSize& size,
                        const QueryRows& rows, int sms);

}  // namespace commfuse
