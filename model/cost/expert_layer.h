// SPDX-License-Identifier: Apache-2.0
// Time of a routed-expert layer on one GPU, as one call of a serving framework: it sorts the tokens by expert, runs
// both grouped GEMMs with the activation between them, and adds up each token's outputs.
//
//   time = call + choices x tokens x active / 1024 + expert x experts hit + tokens x traffic of a token / HBM bandwidth
//          + first GEMM + second GEMM
//   GEMM    = square root of (memory^2 + compute^2)
//   memory  = weights of the experts hit / rate + row traffic x bytes of rows read and written / HBM bandwidth
//   compute = tiles x 2 x 64 x 128 x (inner extent + loop start) / (dense peak x matrix share)
//
// The outputs of each expert are covered by tiles of 64 x 128. The rate is the smaller of HBM bandwidth x efficiency
// and what the SMs can load with one SM per 128 columns of every expert hit. All tokens of the GPUs that share the
// experts are sorted, and a token's output is written even if all its experts are on other GPUs. With uneven loads,
// compute is multiplied by `uneven time`.
//
// Balanced loads are those of aiconfigurator's tables: token after token takes the next experts. Uneven loads follow a
// power law, and the GPU is the one with the most tokens (`expert_load`).
#pragma once

#include <cstdint>

#include "model/dtype.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// Layer of routed experts of a model, and the part of it on each of tp x ep GPUs.
struct ExpertLayerSize {
  std::int64_t tokens = 1;  ///< Tokens that enter, over all GPUs that share the experts.
  std::int64_t hidden = 1;
  std::int64_t ffn = 1;      ///< Width of a whole expert.
  std::int64_t active = 1;   ///< Experts per token, at most `experts`.
  std::int64_t experts = 1;  ///< Experts of the model.
  std::int64_t tp = 1;       ///< GPUs that share each expert.
  std::int64_t ep = 1;       ///< Number of groups that share the experts; divides `experts`.
  bool gated = true;         ///< The first GEMM has two weights.
  double exponent = 0.0;     ///< Exponent of the power law of the experts' loads; 0: balanced.
  DType dtype = DType::bf16;
};

/// Work of the grouped GEMMs of a GPU. Loads are expected values, not whole numbers.
struct ExpertLoad {
  double rows = 1.0;   ///< Pairs of a token and one of the GPU's experts.
  double hit = 1.0;    ///< Experts with at least one token.
  double tiles = 1.0;  ///< Tiles of 64 rows.
};

ExpertLoad expert_load(const ExpertLayerSize& size);

/// Returns the load with the number of tiles that its experts need if they share its rows equally.
ExpertLoad with_tiles(ExpertLoad load);

/// Returns the fitted parameters for this dtype; null if there are none or the accelerator lacks the dtype.
const ExpertLayer* expert_layer_of(const Accelerator& accelerator, DType dtype);

/// Returns the time of the layer on the GPU with the most tokens. Requires `load` to be expert_load(size), and fitted
/// parameters.
Duration expert_layer_time(const Accelerator& accelerator, const ExpertLayerSize& size, const ExpertLoad& load);
Duration expert_layer_time(const Accelerator& accelerator, const ExpertLayerSize& size);

/// The work that determines the limit of a layer.
struct ExpertWork {
  std::int64_t rows = 1;
  std::int64_t width = 1;  ///< Width of an expert on the GPU.
  std::int64_t hidden = 1;
  Bytes weights{};  ///< Weights of the experts that are hit.
  DType dtype = DType::bf16;
};

ExpertWork expert_work(const ExpertLayerSize& size);

/// Returns latency if neither memory nor compute takes longer than a call, and otherwise the greater of memory
/// (bandwidth) and compute. Experts are assumed to be gated and evenly loaded. Requires fitted parameters and sizes
/// above 0.
Limit expert_limit_of(const Accelerator& accelerator, const ExpertWork& work);

}  // namespace commfuse
