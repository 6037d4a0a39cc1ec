// SPDX-License-Identifier: Apache-2.0
// FLOPs of a model: the FLOPs that a training step or a forward pass requires (model FLOPs), and the FLOPs that the
// machine does when it recomputes activations (hardware FLOPs).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/units.h"
#include "model/workload/recomputation.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Attention scores that are counted under a causal mask. Papers differ: Narayanan et al. 2021 and Korthikanti et al.
/// 2022 count all of them; this project's layers count half.
enum class AttentionCount : std::uint8_t { full, causal };

/// Activations that the backward pass recomputes. none: nothing. selective: the parts of SelectiveRecompute. full:
/// every layer, from its input.
enum class Recompute : std::uint8_t { none, selective, full };

inline constexpr std::array all_recomputes{Recompute::none, Recompute::selective, Recompute::full};

std::string_view name_of(Recompute recompute);
std::optional<Recompute> recompute_named(std::string_view name);

/// A number of sequences of the same length.
struct Tokens {
  std::int64_t sequences = 1;
  std::int64_t seq = 1;
  [[nodiscard]] std::int64_t count() const { return sequences * seq; }
};

/// FLOPs of one forward pass, by part. Norms, activations and embeddings are not counted.
/// - GEMMs: 2 x tokens x weights that a token passes through.
/// - Attention core: 4 x tokens x seq x heads x head_dim for both GEMMs, half of it if causal (Korthikanti et al. 2022,
///   appendix A). With windows or selected keys, only the keys that a query sees (mean_keys).
/// - Indexer: 2 x tokens x seq x its heads x head_dim, half of it if causal.
/// - Mamba-2 layer: its two projections, and 2 x 3 x tokens x inner x state for its recurrence (Dao and Gu 2024,
///   section 6): state update and output, one multiply-add each, and the decay.
/// - Gated delta network: 2 x 4 instead of 2 x 3, because it reads the state before it writes it.
struct ForwardFlops {
  Flops layers;     ///< FLOPs of the layers, without those of `attention`
  Flops attention;  ///< FLOPs of the attention core and of the scores of an indexer
  Flops logits;
  [[nodiscard]] Flops total() const { return layers + attention + logits; }
};

ForwardFlops forward_flops(const Transformer& model, const Tokens& tokens, AttentionCount count);

/// Returns the FLOPs of a training step: forward once, backward twice. For GPT with full attention they are 72 B s l
/// h^2 (1 + s / (6 h) + V / (12 h l)), Korthikanti et al. 2022, equation 7.
Flops training_flops(const Transformer& model, const Tokens& tokens, AttentionCount count);

/// Returns the FLOPs of a training step with recomputation. With full recomputation they are 96 B s l h^2 (1 + s / (6
/// h) + V / (16 l h)), Narayanan et al. 2021, equation 3; with recomputation of the attention core Korthikanti et al.
/// 2022, equation 8. `sums_over_ranks`: tensor ranks sum the outputs of GEMMs (recomputed_gemms).
Flops hardware_flops(const Transformer& model, const Tokens& tokens, AttentionCount count, Recompute recompute,
                     const SelectiveRecompute& selective = {}, bool sums_over_ranks = false);

}  // namespace commfuse
