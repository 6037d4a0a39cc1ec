// SPDX-License-Identifier: Apache-2.0
// Time of a recurrence over whole sequences, in a Mamba-2 layer or a gated delta network: GEMMs compute it chunk by
// chunk, and each chunk passes one state on. Sources: Dao and Gu, "Transformers are SSMs", 2024, section 6, and
// state-spaces/mamba, ops/triton/ssd_combined.py; Yang et al., "Parallelizing Linear Transformers with the Delta Rule",
// 2024, section 3, and fla-org/flash-linear-attention, ops/gated_delta_rule/chunk.py.
//
//   time     = kernels x kernel floor + max(compute, memory)
//   compute  = FLOPs / (dense peak x loop efficiency)
//   memory   = bytes / (HBM bandwidth x efficiency)
//   FLOPs    = tokens x (2 Q N groups + Q P heads + 4 N P heads)             Q chunk, N state, P head_dim
//              inner products of a chunk; outputs inside it, half of them masked; into states and out of states
//   bytes    = tokens x (2 (3 P heads + 4 N groups) + 8 Q groups + 16 N P heads / Q)
//              inputs, each read twice, and output in 16 bits; the chunks' inner products and states in fp32
//
// A gated delta network also multiplies keys by keys and inverts a matrix: tokens x heads x (Q (5 N + 2 P) + Q^2 + 6 N
// P) FLOPs, and 2 (6 N + 6 P) + 4 Q + 16 N P / Q bytes per token and head.
//
// Both efficiencies come from other kernels (the loop of attention; memory-bound kernels). They are priors, because no
// table of these kernels has been fitted.
#pragma once

#include <cstdint>

#include "model/dtype.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Size of the recurrence over the heads of one rank.
struct ScanSize {
  std::int64_t tokens = 1;  ///< Tokens of all sequences.
  std::int64_t heads = 1;
  std::int64_t groups = 1;
  std::int64_t head_dim = 64;
  std::int64_t state = 128;
  std::int64_t chunk = 256;
  Recurrence recurrence = Recurrence::mamba2;
  DType dtype = DType::bf16;
};

/// Returns the number of kernels of a scan: sums inside chunks, their states, states passed on, inner products,
/// outputs; for a gated delta network also scales of keys and queries, and the inverse.
constexpr int scan_kernels(Recurrence recurrence) { return recurrence == Recurrence::mamba2 ? 5 : 7; }

Flops scan_flops(const ScanSize& size);
Bytes scan_traffic(const ScanSize& size);
/// Returns the time of all kernels of the scan. Requires positive sizes.
Duration scan_time(const Accelerator& accelerator, const ScanSize& size);

}  // namespace commfuse
