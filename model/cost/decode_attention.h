// SPDX-License-Identifier: Apache-2.0
// Time of attention when one token per sequence is decoded: every key and value of the cache is read once.
//
//   time = overhead + (keys and values of all sequences + queries and output) bytes / (HBM bandwidth x efficiency)
//
// Kernels split the keys over SMs (Dao et al., "Flash-Decoding", 2023), so the whole chip reads; the arithmetic is far
// below the peak of the matrix units, even if queries share keys. The efficiency of other memory-bound kernels and the
// overhead of prefill are used. Both are priors, because no table of decoding has been fitted.
#pragma once

#include "model/cost/attention.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// Returns the time for one token each of `size.batch` sequences that see `size.seq` keys, including their own.
Duration decode_attention_time(const Accelerator& accelerator, const AttentionSize& size);

/// Attention over the cache of latent attention (DeepSeek-V2, 2024, section 2.1). If heads share one narrow key, whose
/// first part is also the value, the arithmetic per byte is close to the ratio of the chip's FLOP rate to its
/// bandwidth. So the longer of reading and computing counts, with GEMMs at the share of the peak that attention reaches
/// (DeepSeek-AI, FlashMLA, reports 80% of the bandwidth and 67% of the peak of an H800).
struct LatentDecodeSize {
  std::int64_t batch = 1;
  std::int64_t seq = 1;  ///< Keys that a token sees, including its own.
  std::int64_t heads = 1;
  std::int64_t key_width = 576;    ///< Width of a query and of a key.
  std::int64_t value_width = 512;  ///< Width of a head's output and of a value.
  bool shared = true;              ///< All heads share one key that contains the values; otherwise each head has both.
  DType dtype = DType::bf16;
};
Duration latent_decode_time(const Accelerator& accelerator, const LatentDecodeSize& size);

/// Returns the bytes of keys and values of one layer that one rank keeps for `size.batch` sequences of `size.seq` keys.
Bytes cache_of(const AttentionSize& size);

}  // namespace commfuse
