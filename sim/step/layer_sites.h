// SPDX-License-Identifier: Apache-2.0
// The products of a layer that meet a collective of the tensor ranks, as a step plays them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/strategies/scope.h"
#include "model/workload/training_plan.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// A site of a model. The projections of a state space are those of a model whose plain MLP is as wide.
struct Projection {
  const Transformer* shape = nullptr;
  SiteName name = SiteName::qkv;
};

/// A model as wide as this one, whose ungated MLP has so many columns: gate_up has its first product, which gathers
/// tokens, down its second, which scatters them.
Transformer with_plain_mlp(const Transformer& model, std::int64_t columns);

/// Models for the in-projection of a state space, at gate_up, and for its out-projection, at down.
Transformer with_mamba_in(const Transformer& model);
Transformer with_mamba_out(const Transformer& model);

/// A model whose MLP is the shared experts of this one, side by side. Requires a model with some.
Transformer with_shared_experts(const Transformer& model);

/// What schedules are played for.
struct LayerSite {
  std::string name;  ///< "qkv", "mamba_in", "qkv_backward", "qkv_dgrad".
  Transformer shape;
  Scope scope = Scope::qkv;
  std::int64_t layers = 0;  ///< That have it.
  bool backward = false;
};

Scope scope_of(SiteName name, bool backward);
/// Whether it gathers tokens before its product, forward.
bool gathers(SiteName name);

/// The gradient of a site's input alone, without that of its weight: of a column-parallel product a product that
/// scatters its sums, of a row-parallel one a gather and a product.
LayerSite input_gradient(const Projection& projection);

/// All sites of the model's layers, forward and backward; where the plan takes the gradients of weights apart, those of
/// inputs stand for the backward ones.
std::vector<LayerSite> layer_sites(const Transformer& model, const TrainingPlan& plan);

}  // namespace commfuse
