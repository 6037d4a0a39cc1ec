// SPDX-License-Identifier: Apache-2.0
#include "model/cost/decode_attention.h"

#include "model/cost/memory_bound.h"

namespace commfuse {

Bytes cache_of(const AttentionSize& size) {
  return {2 * size.batch * size.seq * size.kv_heads * size.head_dim * bytes_of(size.dtype)};
}

Duration decode_attention_time(const Accelerator& accelerator, const AttentionSize& size) {
  const Bytes queries_and_output{2 * size.batch * size.heads * size.head_dim * bytes_of(size.dtype)};
  return accelerator.attention.overhead.value +
         memory_bound_time(accelerator, cache_of(size) + queries_and_output, accelerator.sms);
}

}  // namespace commfuse
