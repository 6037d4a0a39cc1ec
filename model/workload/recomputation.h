// SPDX-License-Identifier: Apache-2.0
// Selective recomputation: parts of a layer whose outputs are dropped after the forward pass and computed again in the
// backward pass. Frameworks differ, so each one lists its parts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/workload/transformer.h"

namespace commfuse {

/// The parts of a layer that `recompute: selective` runs again. Unless a framework states other parts, only the
/// attention core runs again (Korthikanti et al. 2022, section 5; Megatron-LM, --recompute-modules core_attn).
///
/// With every second GEMM, a backward pass starts from the layer's input, the outputs of the other GEMMs, and the
/// outputs of the attention core and of sums over tensor ranks; routers and grouped GEMMs of experts run again, too
/// (pytorch/torchtitan, distributed/activation_checkpoint.py). The gathers of tensor ranks are those that gradients of
/// weights need anyway, except for latent attention and routed experts. The exchanges of experts do not run again, nor
/// do the convolution and the scan of a state space: their results are kept.
struct SelectiveRecompute {
  bool attention_core = true;
  bool norms = false;
  bool rotation = false;    ///< Rotation of queries and keys.
  bool activation = false;  ///< Activation functions of MLPs, and the gate of attention.
  bool every_second_gemm = false;
  /// PyTorch's eager mode: outputs that no gradient reads are kept or computed again like the others.
  bool every_second_gemm_eager = false;

  /// Returns whether some GEMMs run again.
  [[nodiscard]] bool alternates() const { return every_second_gemm || every_second_gemm_eager; }
  /// Returns whether anything but the attention core runs again.
  [[nodiscard]] bool exceeds_core() const { return norms || rotation || activation || alternates(); }
  /// Returns whether a layer keeps less than without recomputation. A fused attention core keeps nothing to drop.
  [[nodiscard]] bool frees_memory(bool fused_attention) const {
    return norms || activation || alternates() || (attention_core && !fused_attention);
  }
};

/// A part by the name that framework files give it.
struct RecomputedPart {
  std::string_view name;
  bool SelectiveRecompute::*member = nullptr;
};
inline constexpr std::array recomputed_parts{
    RecomputedPart{"attention_core", &SelectiveRecompute::attention_core},
    RecomputedPart{"norms", &SelectiveRecompute::norms},
    RecomputedPart{"rotation", &SelectiveRecompute::rotation},
    RecomputedPart{"activation", &SelectiveRecompute::activation},
    RecomputedPart{"every_second_gemm", &SelectiveRecompute::every_second_gemm},
    RecomputedPart{"every_second_gemm_eager", &SelectiveRecompute::every_second_gemm_eager}};

/// A part of a layer, after its own norm.
enum class LayerPart : std::uint8_t { attention, state_space, mlp };

/// The share of a GEMM that a tensor rank runs: some columns, a part of the contraction, or the whole for its own
/// tokens.
enum class GemmShare : std::uint8_t { columns, contraction, tokens };

/// A GEMM of a layer's forward pass, with the sizes that it has on all ranks together.
struct LayerGemm {
  LayerPart part = LayerPart::attention;
  GemmShare share = GemmShare::columns;
  std::int64_t columns = 0;
  std::int64_t contraction = 0;
  std::int64_t kept_columns = 0;  ///< Columns that a layer keeps of the output, or of what follows from it alone.
  bool joins_residual = false;    ///< Its output is added to the residual.

  [[nodiscard]] std::int64_t weights() const { return columns * contraction; }
};

/// Returns the GEMMs of a layer in the order of a framework that computes queries, keys and values, and gate and up,
/// one after the other. GEMMs of the attention core, routers and grouped GEMMs of experts are not among them. Requires
/// `shape` to be that of the kind (shape_of).
std::vector<LayerGemm> gemms_of(const Transformer& shape, const LayerKind& kind);

/// A GEMM with what selective recomputation does about its output.
struct RecomputedGemm {
  LayerGemm gemm;
  bool is_read = true;        ///< A gradient, or another computation that runs again, reads the output.
  bool runs_again = false;    ///< The output is dropped, and the backward pass computes it again.
  bool keeps_unread = false;  ///< The output is kept, but no gradient reads it.
};

/// Returns the GEMMs of a layer with what selective recomputation does about each. No gradient reads an output that the
/// last part of a layer adds to the residual, nor an output that tensor ranks sum (`sums_over_ranks`), because the sum
/// is kept. Only in eager mode is such an output kept or computed again. Requires `shape` to be that of the kind.
std::vector<RecomputedGemm> recomputed_gemms(const Transformer& shape, const LayerKind& kind,
                                             const SelectiveRecompute& selective, bool sums_over_ranks);

/// Returns the number of GEMM weights of a layer that a token passes through again, including those of a router and of
/// routed experts. Requires `shape` to be that of the kind.
std::int64_t recomputed_weights(const Transformer& shape, const LayerKind& kind, const SelectiveRecompute& selective,
                                bool sums_over_ranks);

}  // namespace commfuse
