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

/// Keys and values of one layer that one rank keeps for so many sequences of `size.seq` keys.
Bytes cache_of(const AttentionSize& size);

}  // namespace commfuse
