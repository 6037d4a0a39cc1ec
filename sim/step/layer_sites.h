// SPDX-License-Identifier: Apache-2.0
// The GEMMs of a layer that meet a collective of the tensor ranks, as a step simulates them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/strategies/scope.h"
#include "model/workload/training_plan.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// A site of a model. The projections of a state space use a model whose plain MLP has the same width.
struct Projection {
  const Transformer* shape = nullptr;
  SiteName name = SiteName::qkv;
};

/// Returns a copy of the model with an ungated MLP of this many columns: gate_up is its first GEMM, which gathers
/// tokens, down its second, which scatters them.
Transformer with_plain_mlp(const Transformer& model, std::int64_t columns);

/// Return a model whose gate_up is the in-projection of a state space, and a model whose down is its out-projection.
Transformer with_mamba_in(const Transformer& model);
Transformer with_mamba_out(const Transformer& model);

/// Returns a model whose MLP is the shared experts of `model`, side by side. Requires `model` to have shared experts.
Transformer with_shared_experts(const Transformer& model);

/// Returns the name that users see of a site in layers with this shape: "gate_up", or "gate_up_ffn_7168" if the width
/// differs from the usual one of the model. Requires `shape` to be a result of shape_of().
std::string site_name(const Transformer& model, const Transformer& shape, SiteName site);

/// A site for which schedules are simulated.
struct LayerSite {
  std::string name;  ///< "qkv", "mamba_in", "qkv_backward", "qkv_dgrad".
  Transformer shape;
  Scope scope = Scope::qkv;
  std::int64_t layers = 0;  ///< Number of layers that have this site.
  bool backward = false;
  SiteName projection = SiteName::qkv;                 ///< Its GEMM in the shape.
  double WeightFormat::*weights = &WeightFormat::mlp;  ///< Share of its weights that WeightFormat stores narrow.
};

Scope scope_of(SiteName name, bool backward);
/// Returns the scope of a forward GEMM with its collective; nullopt if tensor ranks have no collective there: for a
/// single rank, and for column-parallel GEMMs without sequence parallelism.
std::optional<Scope> forward_scope(SiteName name, const TrainingPlan& plan);
/// Returns whether the site gathers tokens before its GEMM in the forward pass.
bool gathers(SiteName name);

/// Returns the site of the input's gradient, without the weight's gradient: for a column-parallel GEMM, a GEMM and a
/// reduce-scatter; for a row-parallel GEMM, an all-gather and a GEMM.
LayerSite input_gradient(const Projection& projection);

/// Returns all sites of the model's layers, forward and backward; where the plan separates the gradients of weights,
/// the backward sites are only the sites of the inputs' gradients.
std::vector<LayerSite> layer_sites(const Transformer& model, const TrainingPlan& plan);

}  // namespace commfuse
