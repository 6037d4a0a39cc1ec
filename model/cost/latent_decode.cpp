// SPDX-License-Identifier: Apache-2.0
#include "model/cost/latent_decode.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "model/cost/memory_bound.h"
#include "model/cost/op_time.h"

namespace commfuse {

namespace {

constexpr double least_latent_keys = 256.0;  // Fewest keys of a block when keys are split.
constexpr std::int64_t wide_block = 64;      // Heads of a block.
constexpr std::int64_t narrow_block = 16;    // Heads of a block of TensorRT-LLM's Blackwell kernel for few heads.
constexpr std::int64_t few_heads = 32;
constexpr double bytes_of_joined_value = 8.0;  // A partial output is written and read in 32 bits.

/// Division of a sequence's heads and keys into blocks.
struct LatentBlocks {
  std::int64_t heads = wide_block;  ///< Rows of a block; a block may have fewer heads.
  std::int64_t per_sequence = 1;    ///< Blocks of a sequence whose keys are not split.
  double parts = 1.0;               ///< Blocks over which keys are split.
};

/// Seconds of the parts of a kernel's time.
struct LatentParts {
  double start = 0.0;
  double blocks = 0.0;
  double keys = 0.0;
  double gemms = 0.0;
  double traffic = 0.0;  // above 0
  double join = 0.0;
  double ramp = 0.0;

  [[nodiscard]] double seconds() const {
    const double compute = root_of_fourths(root_of_fourths(root_of_fourths(traffic, gemms), blocks), keys);
    return root_of_fourths(compute, start) + join + ramp;
  }
};

LatentBlocks blocks_of(const Accelerator& accelerator, const LatentDecodeKernel& fitted, const LatentDecodeSize& size) {
  LatentBlocks blocks;
  if (fitted.reread.value > 0.0 && size.heads <= few_heads) {
    blocks.heads = narrow_block;
  }
  blocks.per_sequence = (size.heads + blocks.heads - 1) / blocks.heads;
  const auto count = static_cast<double>(size.batch * blocks.per_sequence);
  const double max_parts = std::clamp(static_cast<double>(size.seq) / least_latent_keys, 1.0, fitted.most_parts.value);
  blocks.parts = std::clamp(std::floor(static_cast<double>(accelerator.sms) / count), 1.0, max_parts);
  return blocks;
}

LatentParts latent_parts(const Accelerator& accelerator, const LatentDecodeKernel& fitted,
                         const LatentDecodeSize& size) {
  const LatentBlocks blocks = blocks_of(accelerator, fitted, size);
  const auto sms = static_cast<double>(accelerator.sms);
  const auto seq = static_cast<double>(size.seq);
  const auto heads = static_cast<double>(size.batch * size.heads);
  const auto block_count = static_cast<double>(size.batch * blocks.per_sequence);
  const auto widths = static_cast<double>(size.key_width + size.value_width);
  const double bandwidth = accelerator.hbm_bandwidth.value.value;
  const auto key_bytes = static_cast<double>(latent_cache_of(size).count);
  const double query_bytes =
      heads * widths * static_cast<double>(std::max(bytes_of(DType::bf16), bytes_of(size.dtype)));
  const double reads =
      blocks.heads == narrow_block ? 1.0 + fitted.reread.value * static_cast<double>(blocks.per_sequence - 1) : 1.0;
  const double rows = block_count * static_cast<double>(blocks.heads);
  const double joined = heads * (blocks.parts - 1.0) * static_cast<double>(size.value_width);
  const double l2 = static_cast<double>(accelerator.l2_capacity.count);
  return {
      .start = to_seconds(fitted.start.value),
      .blocks = (block_count * to_seconds(fitted.block.value) + heads * to_seconds(fitted.head.value)) / sms,
      .keys = to_seconds(fitted.keys.value) * seq / blocks.parts / least_latent_keys,
      .gemms = 2.0 * seq * rows * widths / (accelerator.dense_peak(size.dtype).value * fitted.loop_efficiency.value),
      .traffic = (reads * key_bytes + query_bytes) / (bandwidth * fitted.hbm_efficiency.value),
      .join = fitted.join_cost.value * bytes_of_joined_value * joined / bandwidth,
      .ramp = to_seconds(fitted.memory_ramp.value) * std::min(1.0, (key_bytes + query_bytes) / l2)};
}

Duration unfitted_latent_time(const Accelerator& accelerator, const LatentDecodeSize& size) {
  const std::int64_t cached = size.shared ? size.key_width : size.heads * (size.key_width + size.value_width);
  const std::int64_t head_widths = size.heads * (size.key_width + size.value_width);
  const Bytes traffic{size.batch * (size.seq * cached + head_widths) * bytes_of(size.dtype)};
  const Flops gemms{2.0 * static_cast<double>(size.batch * size.seq) * static_cast<double>(head_widths)};
  const double rate = accelerator.dense_peak(size.dtype).value * accelerator.attention.loop_efficiency.value;
  return accelerator.attention.overhead.value + std::max(memory_bound_time(accelerator, traffic, accelerator.sms),
                                                         op_time(gemms.count / rate, "attention over a latent cache"));
}

}  // namespace

Bytes latent_cache_of(const LatentDecodeSize& size) {
  return {size.batch * size.seq * size.key_width * bytes_of(size.dtype)};
}

const LatentDecodeKernel* latent_decode_of(const Accelerator& accelerator, DType dtype) {
  const std::optional<LatentDecodeKernel>& fitted =
      dtype == DType::fp8 ? accelerator.latent_decode_fp8 : accelerator.latent_decode;
  return fitted ? &*fitted : nullptr;
}

Duration latent_decode_time(const Accelerator& accelerator, const LatentDecodeSize& size) {
  const LatentDecodeKernel* const fitted = latent_decode_of(accelerator, size.dtype);
  if (fitted == nullptr || !size.shared) {
    return unfitted_latent_time(accelerator, size);
  }
  const double seconds = to_seconds(fitted->call.value) + latent_parts(accelerator, *fitted, size).seconds();
  return std::max(accelerator.kernel_floor.value, op_time(seconds, "attention over a latent cache"));
}

Limit latent_limit_of(const Accelerator& accelerator, const LatentDecodeSize& size) {
  const LatentDecodeKernel* const fitted = latent_decode_of(accelerator, size.dtype);
  check(fitted != nullptr, "the accelerator has fitted parameters for this cache");
  const LatentParts parts = latent_parts(accelerator, *fitted, size);
  const double traffic = parts.traffic + parts.join + parts.ramp;
  const double compute = std::max(parts.blocks, parts.gemms);
  if (std::max({compute, parts.keys, traffic}) <= to_seconds(fitted->call.value) + parts.start) {
    return Limit::latency;
  }
  if (parts.keys >= std::max(compute, traffic)) {
    return Limit::few_tiles;
  }
  return traffic >= compute ? Limit::bandwidth : Limit::compute;
}

}  // namespace commfuse
