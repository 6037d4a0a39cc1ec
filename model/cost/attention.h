// SPDX-License-Identifier: Apache-2.0
// The time of a fused (FlashAttention-like) attention kernel.
#pragma once

#include <cstdint>

#include "model/dtype.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

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

/// FLOPs over peak x efficiency, where efficiency = most x seq / (seq + half_seq), or the traffic of q, k, v and the
/// output over HBM where that is longer; never below the kernel floor. Requires 1 <= sms <= accelerator.sms.
Duration attention_time(const Accelerator& accelerator, const AttentionSize& size, int sms);

/// Some of the query rows of an attention, all its heads.
struct QueryRows {
  std::int64_t queries = 0;  // of a sequence
  std::int64_t keys = 0;     // of a sequence: those that some of the queries see
  double share = 0.0;  // of the seq x seq scores: those that the mask leaves them; all rows have 1, or 1/2 if causal
};

/// The same for some of its query rows. They are as efficient as all rows of a shorter sequence with as many scores, of
/// length seq sqrt(share) (causal: seq sqrt(2 share)). Parts take no less time than the whole: the time of s scores
/// goes with s + constant sqrt(s), which is concave, and every part reads its keys again.
Duration attention_time(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows, int sms);

}  // namespace commfuse
