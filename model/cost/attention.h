// SPDX-License-Identifier: Apache-2.0
// The time of a fused (FlashAttention-like) attention kernel.
#pragma once

#include <cstdint>

#include "model/dtype.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// One rank's heads, all query rows.
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

}  // namespace commfuse
