// SPDX-License-Identifier: Apache-2.0
#include "model/cost/decode_attention.h"

#include <algorithm>

#include "model/cost/memory_bound.h"
#include "model/cost/op_time.h"

namespace commfuse {

Bytes cache_of(const AttentionSize& size) {
  return {2 * size.batch * size.seq * size.kv_heads * size.head_dim * bytes_of(size.dtype)};
}

Duration decode_attention_time(const Accelerator& accelerator, const AttentionSize& size) {
  const Bytes queries_and_output{2 * size.batch * size.heads * size.head_dim * bytes_of(size.dtype)};
  return accelerator.attention.overhead.value +
         memory_bound_time(accelerator, cache_of(size) + queries_and_output, accelerator.sms);
}

Duration latent_decode_time(const Accelerator& accelerator, const LatentDecodeSize& size) {
  const std::int64_t cached = size.shared ? size.key_width : size.heads * (size.key_width + size.value_width);
  const std::int64_t head_widths = size.heads * (size.key_width + size.value_width);
  const Bytes traffic{size.batch * (size.seq * cached + head_widths) * bytes_of(size.dtype)};
  const Flops gemms{2.0 * static_cast<double>(size.batch * size.seq) * static_cast<double>(head_widths)};
  const double rate = accelerator.dense_peak(size.dtype).value * accelerator.attention.loop_efficiency.value;
  return accelerator.attention.overhead.value + std::max(memory_bound_time(accelerator, traffic, accelerator.sms),
                                                         op_time(gemms.count / rate, "attention over a latent cache"));
}

}  // namespace commfuse
