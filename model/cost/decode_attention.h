// SPDX-License-Identifier: Apache-2.0
// Time of attention when one token per sequence is decoded: every key and value of the cache is read once.
//
//   time = call + fourth root of the sum of the fourth powers of (start, blocks, keys, traffic) + ramp
//   blocks  = key heads of all sequences x (packed block + packed head x query heads per key head) / SMs
//   keys    = packed keys x square root of (keys of a block / 256)
//   traffic = (keys and values of all sequences + queries and output) bytes / rate
//   ramp    = memory ramp x min(1, traffic bytes / L2 bytes)
//
// Kernels split the keys of a head over at most `most parts` blocks of at least 256 keys, until every SM has a block
// (Dao et al., "Flash-Decoding", 2023). The rate is the smaller of the HBM bandwidth x efficiency and what the SMs with
// a block can load. A packed block multiplies all query heads that share keys by these keys in the matrix units; an
// unpacked block processes one head in the vector units, so its FLOPs at `vector rate` join the sum. If the fit has
// both kernels and a key head has one query head or more than `most packed`, only the unpacked kernel can run;
// otherwise the faster one runs. For heads no wider than 64, `narrow time` multiplies start, blocks and keys.
//
// The ramp is what long reads lose until all of the memory is busy. Public tables repeat one call, so the L2 still
// holds part of its keys; the ramp, smaller for fewer keys, covers that too.
//
// Without a fit, the formula is overhead of prefill + memory-bound time of the traffic: both priors.
#pragma once

#include "model/cost/attention.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// Returns the fitted parameters for a cache of this dtype; null if there are none.
const DecodeAttention* decode_attention_of(const Accelerator& accelerator, DType dtype);

/// Returns the time to decode one token of each of `size.batch` sequences. Each token sees `size.seq` keys, including
/// its own. `size.dtype` is that of the cache; queries and output have at least 16 bits.
Duration decode_attention_time(const Accelerator& accelerator, const AttentionSize& size);

/// Returns what limits the kernel: latency while nothing else takes longer than call and start together, then the
/// greatest of reading the keys of a block (few tiles), traffic (bandwidth) and blocks (compute). Requires fitted
/// parameters.
Limit decode_limit_of(const Accelerator& accelerator, const AttentionSize& size);

/// Returns the bytes of keys and values of one layer that one rank keeps for `size.batch` sequences of `size.seq` keys.
Bytes cache_of(const AttentionSize& size);

}  // namespace commfuse
