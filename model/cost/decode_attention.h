// SPDX-License-Identifier: Apache-2.0
// The time of attention when one token a sequence is decoded: every key and value of the cache is read once.
//
//   time = overhead + (keys and values of all sequences + queries and output) bytes / (HBM bandwidth x efficiency)
//
// Kernels split the keys over SMs (Dao et al., "Flash-Decoding", 2023), so all of the chip reads; the products are far
// below what the matrix units could do, even where queries share keys. The efficiency is that of other memory-bound
// kernels, the overhead that of prefill: priors, no table of decoding has been fitted.
#pragma once

#include "model/cost/attention.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// Of one token each for `size.batch` sequences that see `size.seq` keys, their own among them.
Duration decode_attention_time(const Accelerator& accelerator, const AttentionSize& size);

/// Over the cache of latent attention (DeepSeek-V2, 2024, section 2.1). Where heads share one narrow key, whose first
/// part is the value as well, as many products come to a byte as the chip has for one: so the longer of reading and
/// computing counts, the products at attention's share of the peak (DeepSeek-AI, FlashMLA, reports 80 % of the
/// bandwidth and 67 % of the peak of an H800).
struct LatentDecodeSize {
  std::int64_t batch = 1;
  std::int64_t seq = 1;  ///< Keys that a token sees, its own among them.
  std::int64_t heads = 1;
  std::int64_t key_width = 576;    ///< Of a query and a key.
  std::int64_t value_width = 512;  ///< Of an output of a head, and of a value.
  bool shared = true;              ///< One key of all heads, and its values in it; else one of each for every head.
  DType dtype = DType::bf16;
};
Duration latent_decode_time(const Accelerator& accelerator, const LatentDecodeSize& size);

/// Keys and values of one layer that one rank keeps for so many sequences of `size.seq` keys.
Bytes cache_of(const AttentionSize& size);

}  // namespace commfuse
