// SPDX-License-Identifier: Apache-2.0
#include "model/cost/attention.h"

#include <algorithm>

#include "model/check.h"
#include "model/cost/memory_bound.h"
#include "model/cost/op_time.h"

namespace commfuse {

namespace {

// Prior, from prefill kernels on H100 (hardware surveys of 2026): 140-200 TFLOP/s at 1K, 330-420 at 4K, 510-540 at 16K
// of a peak of 989. A100 and B200 rise alike as a share of their peaks.
constexpr double most_efficiency = 0.6;
constexpr double half_seq = 2500.0;

}  // namespace

Duration attention_time(const Accelerator& accelerator, const AttentionSize& size, int sms) {
  check(sms >= 1 && sms <= accelerator.sms, "the SM budget lies between 1 and what the accelerator has");
  const auto seq = static_cast<double>(size.seq);
  const auto tokens = static_cast<double>(size.batch) * seq;
  const double full = 4.0 * tokens * seq * static_cast<double>(size.heads * size.head_dim);
  const double work = size.causal ? full / 2.0 : full;
  const double share = static_cast<double>(sms) / accelerator.sms;
  const double rate = accelerator.dense_peak(size.dtype).value * share * most_efficiency * seq / (seq + half_seq);
  const std::int64_t columns = (2 * size.heads + 2 * size.kv_heads) * size.head_dim;
  const Bytes traffic{size.batch * size.seq * columns * bytes_of(size.dtype)};
  return std::max(op_time(work / rate, "attention"), memory_bound_time(accelerator, traffic, sms));
}

}  // namespace commfuse
