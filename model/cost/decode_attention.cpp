// SPDX-License-Identifier: Apache-2.0
#include "model/cost/decode_attention.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "model/cost/memory_bound.h"
#include "model/cost/op_time.h"

namespace commfuse {

namespace {

constexpr double least_keys = 256.0;  // Fewest keys of a block when keys are split.

/// Seconds of the parts of a kernel's time, of which the longest hides most of the others.
struct DecodeParts {
  double start = 0.0;
  double blocks = 0.0;
  double keys = 0.0;
  double traffic = 0.0;  // above 0

  [[nodiscard]] double seconds() const {
    return root_of_fourths(root_of_fourths(root_of_fourths(traffic, start), blocks), keys);
  }
};

Bytes bytes_moved(const AttentionSize& size) {
  const std::int64_t width = std::max<std::int64_t>(bytes_of(DType::bf16), bytes_of(size.dtype));
  return cache_of(size) + Bytes{2 * size.batch * size.heads * size.head_dim * width};
}

double ramp_seconds(const Accelerator& accelerator, const DecodeAttention& fitted, const AttentionSize& size) {
  const double share =
      static_cast<double>(bytes_moved(size).count) / static_cast<double>(accelerator.l2_capacity.count);
  return to_seconds(fitted.memory_ramp.value) * std::min(1.0, share);
}

/// Seconds of a kernel's parts, each for one block, and the number of blocks before keys are split.
struct BlockTimes {
  double count = 1.0;
  double start = 0.0;
  double block = 0.0;
  double keys = 0.0;  // for 256 keys
};

DecodeParts parts_of(const Accelerator& accelerator, const DecodeAttention& fitted, const AttentionSize& size,
                     const BlockTimes& times) {
  const auto seq = static_cast<double>(size.seq);
  const auto sms = static_cast<double>(accelerator.sms);
  const double most_parts = std::clamp(seq / least_keys, 1.0, fitted.most_parts.value);
  const double splits = std::clamp(std::floor(sms / times.count), 1.0, most_parts);
  const auto bytes = static_cast<double>(bytes_moved(size).count);
  const double rate = std::min(accelerator.hbm_bandwidth.value.value * fitted.hbm_efficiency.value,
                               std::min(sms, times.count * splits) * accelerator.sm_bandwidth.value.value);
  const double narrow = size.head_dim <= narrow_head ? fitted.narrow_time.value : 1.0;
  return {.start = narrow * times.start,
          .blocks = narrow * times.count * times.block / sms,
          .keys = narrow * times.keys * std::sqrt(seq / splits / least_keys),
          .traffic = bytes / rate};
}

DecodeParts packed_parts(const Accelerator& accelerator, const DecodeAttention& fitted, const AttentionSize& size) {
  const double shared = static_cast<double>(size.heads) / static_cast<double>(size.kv_heads);
  return parts_of(accelerator, fitted, size,
                  {.count = static_cast<double>(size.batch * size.kv_heads),
                   .start = to_seconds(fitted.packed_start.value),
                   .block = to_seconds(fitted.packed_block.value) + shared * to_seconds(fitted.packed_head.value),
                   .keys = to_seconds(fitted.packed_keys.value)});
}

DecodeParts unpacked_parts(const Accelerator& accelerator, const DecodeAttention& fitted, const AttentionSize& size) {
  const auto heads = static_cast<double>(size.batch * size.heads);
  DecodeParts parts = parts_of(accelerator, fitted, size,
                               {.count = heads,
                                .start = to_seconds(fitted.unpacked_start.value),
                                .block = to_seconds(fitted.unpacked_block.value),
                                .keys = to_seconds(fitted.unpacked_keys.value)});
  if (const double rate = fitted.vector_rate.value.value; rate > 0.0) {
    const double flops = 4.0 * heads * static_cast<double>(size.seq * size.head_dim);
    parts.blocks = root_of_fourths(parts.blocks, flops / rate);
  }
  return parts;
}

/// Returns the parts of the kernel that runs: the faster one where both can.
DecodeParts decode_parts(const Accelerator& accelerator, const DecodeAttention& fitted, const AttentionSize& size) {
  const bool has_unpacked = fitted.unpacked_block.value > Duration::zero();
  const double shared = static_cast<double>(size.heads) / static_cast<double>(size.kv_heads);
  const bool may_pack = !has_unpacked || (size.heads > size.kv_heads && shared <= fitted.most_packed.value);
  if (!may_pack) {
    return unpacked_parts(accelerator, fitted, size);
  }
  const DecodeParts packed = packed_parts(accelerator, fitted, size);
  if (!has_unpacked) {
    return packed;
  }
  const DecodeParts unpacked = unpacked_parts(accelerator, fitted, size);
  return packed.seconds() <= unpacked.seconds() ? packed : unpacked;
}

}  // namespace

Bytes cache_of(const AttentionSize& size) {
  return {2 * size.batch * size.seq * size.kv_heads * size.head_dim * bytes_of(size.dtype)};
}

const DecodeAttention* decode_attention_of(const Accelerator& accelerator, DType dtype) {
  const std::optional<DecodeAttention>& fitted =
      dtype == DType::fp8 ? accelerator.decode_attention_fp8 : accelerator.decode_attention;
  return fitted ? &*fitted : nullptr;
}

Duration decode_attention_time(const Accelerator& accelerator, const AttentionSize& size) {
  const DecodeAttention* const fitted = decode_attention_of(accelerator, size.dtype);
  if (fitted == nullptr) {
    return accelerator.attention.overhead.value + memory_bound_time(accelerator, bytes_moved(size), accelerator.sms);
  }
  const DecodeParts parts = decode_parts(accelerator, *fitted, size);
  return std::max(accelerator.kernel_floor.value,
                  op_time(to_seconds(fitted->call.value) + parts.seconds() + ramp_seconds(accelerator, *fitted, size),
                          "decode attention"));
}

Limit decode_limit_of(const Accelerator& accelerator, const AttentionSize& size) {
  const DecodeAttention* const fitted = decode_attention_of(accelerator, size.dtype);
  check(fitted != nullptr, "the accelerator has fitted parameters for this cache");
  const DecodeParts parts = decode_parts(accelerator, *fitted, size);
  const double traffic = parts.traffic + ramp_seconds(accelerator, *fitted, size);
  if (std::max({parts.blocks, parts.keys, traffic}) <= to_seconds(fitted->call.value) + parts.start) {
    return Limit::latency;
  }
  if (parts.keys >= std::max(parts.blocks, traffic)) {
    return Limit::few_tiles;
  }
  return traffic >= parts.blocks ? Limit::bandwidth : Limit::compute;
}

}  // namespace commfuse
