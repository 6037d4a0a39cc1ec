// SPDX-License-Identifier: Apache-2.0
#include "model/cost/attention.h"

#include <algorithm>
#include <cmath>

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
  return attention_time(accelerator, size, {size.seq, size.seq, size.causal ? 0.5 : 1.0}, sms);
}

Duration attention_time(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows, int sms) {
  check(sms >= 1 && sms <= accelerator.sms, "the SM budget lies between 1 and what the accelerator has");
  const auto seq = static_cast<double>(size.seq);
  const auto tokens = static_cast<double>(size.batch) * seq;
  const double full = 4.0 * tokens * seq * static_cast<double>(size.heads * size.head_dim);
  const double work = full * rows.share;
  const double length = seq * std::sqrt(size.causal ? 2.0 * rows.share : rows.share);
  const double sm_share = static_cast<double>(sms) / accelerator.sms;
  const double rate =
      accelerator.dense_peak(size.dtype).value * sm_share * most_efficiency * length / (length + half_seq);
  const std::int64_t columns = 2 * rows.queries * size.heads + 2 * rows.keys * size.kv_heads;
  const Bytes traffic{size.batch * columns * size.head_dim * bytes_of(size.dtype)};
  return std::max(op_time(work / rate, "attention"), memory_bound_time(accelerator, traffic, sms));
}

}  // namespace commfuse
