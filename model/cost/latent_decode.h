// SPDX-License-Identifier: Apache-2.0
// Time of latent attention (DeepSeek-V2, 2024, section 2.1) when one token per sequence is decoded. If heads share one
// narrow key, whose first part is also the value:
//
//   time    = call + fourth root of the sum of the fourth powers of (start, blocks, keys, GEMMs, traffic) + join + ramp
//   blocks  = (blocks before keys are split x block + heads of all sequences x head) / SMs
//   keys    = keys x keys of a block / 256
//   GEMMs   = 2 x keys x rows x (key width + value width) FLOPs of all blocks / (dense peak x loop efficiency)
//   traffic = (keys of all sequences + queries + output) bytes / (HBM bandwidth x efficiency)
//   join    = join cost x bytes of partial outputs / HBM bandwidth
//   ramp    = memory ramp x min(1, traffic bytes / L2 bytes)
//
// A block multiplies up to 64 heads with their keys in the matrix units, whose tiles have 64 rows even for fewer heads.
// Kernels split the keys of a sequence over at most `most parts` blocks of at least 256 keys, until every SM has a
// block. Every part beyond the first writes its output in 32 bits, and the join reads it. On Blackwell, TensorRT-LLM
// runs blocks of 16 heads if there are at most 32; where `reread` is above 0, such blocks are assumed, and each block
// beyond the first reads `reread` of the keys from the HBM again. The other blocks of a sequence find the keys in the
// L2. The ramp is as in decode_attention.h.
//
// Without a fit, and for keys that heads do not share, the formula is the overhead of prefill + the longer of
// memory-bound traffic and the GEMMs at the share of the peak that prefill reaches (DeepSeek-AI, FlashMLA, reports 80%
// of the bandwidth and 67% of the peak of an H800). All of it is a prior.
#pragma once

#include <cstdint>

#include "model/dtype.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

struct LatentDecodeSize {
  std::int64_t batch = 1;
  std::int64_t seq = 1;  ///< Keys that a token sees, including its own.
  std::int64_t heads = 1;
  std::int64_t key_width = 576;    ///< Width of a query and of a key.
  std::int64_t value_width = 512;  ///< Width of a head's output and of a value.
  bool shared = true;              ///< All heads share one key that contains the values; otherwise each head has both.
  DType dtype = DType::bf16;       ///< dtype of the cache; the accelerator must support it
};

/// Returns the fitted parameters for a cache of this dtype; null if there are none.
const LatentDecodeKernel* latent_decode_of(const Accelerator& accelerator, DType dtype);

/// Returns the time to decode one token of each of `size.batch` sequences.
Duration latent_decode_time(const Accelerator& accelerator, const LatentDecodeSize& size);

/// Returns what limits the kernel over shared keys: latency while nothing else takes longer than call and start
/// together, then the greatest of reading the keys of a block (few tiles), traffic (bandwidth) and blocks with their
/// GEMMs (compute). Requires fitted parameters.
Limit latent_limit_of(const Accelerator& accelerator, const LatentDecodeSize& size);

/// Returns the bytes of narrow keys of one layer that one rank keeps.
Bytes latent_cache_of(const LatentDecodeSize& size);

}  // namespace commfuse
