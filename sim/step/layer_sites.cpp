// SPDX-License-Identifier: Apache-2.0
#include "sim/step/layer_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "model/check.h"
#include "model/workload/layers.h"

namespace commfuse {

namespace {

/// A projection, with the name that users see.
struct NamedProjection {
  std::string name;
  Transformer shape;
  SiteName site = SiteName::qkv;
  std::int64_t layers = 0;
  double WeightFormat::*weights = &WeightFormat::mlp;

  [[nodiscard]] LayerSite forward() const { return {name, shape, scope_of(site, false), layers, false, site, weights}; }
};

/// Adds a site for each width that the MLP or the keys have in some layer.
void add_sites(const Transformer& model, std::vector<NamedProjection>& projections) {
  const auto add = [&](const Transformer& shape, SiteName site, std::int64_t layers) {
    const std::string name = site_name(model, shape, site);
    const auto known = std::find_if(projections.begin(), projections.end(),
                                    [&](const NamedProjection& projection) { return projection.name == name; });
    if (known != projections.end()) {
      known->layers += layers;
    } else {
      const bool is_mlp = site == SiteName::gate_up || site == SiteName::down;
      projections.push_back({name, shape, site, layers, is_mlp ? &WeightFormat::mlp : &WeightFormat::attention});
    }
  };
  const std::vector<LayerRun> runs = layer_runs(model);
  for (const LayerRun& run : runs) {
    const Transformer shape = shape_of(model, run.kind);
    if (run.kind.attention) {
      if (!model.latent) {  // latent attention projects queries and keys through a narrow middle
        add(shape, SiteName::qkv, run.count);
      }
      add(shape, SiteName::out_proj, run.count);
    }
  }
  for (const LayerRun& run : runs) {
    const Transformer shape = shape_of(model, run.kind);
    if (run.kind.mlp == MlpKind::dense) {
      add(shape, SiteName::gate_up, run.count);
      add(shape, SiteName::down, run.count);
    }
  }
}

std::vector<NamedProjection> projections_of(const Transformer& model) {
  const LayerCounts counts = layer_counts(model);
  std::vector<NamedProjection> projections;
  add_sites(model, projections);
  if (counts.state_space > 0) {
    constexpr auto weights = &WeightFormat::attention;
    projections.push_back({"mamba_in", with_mamba_in(model), SiteName::gate_up, counts.state_space, weights});
    projections.push_back({"mamba_out", with_mamba_out(model), SiteName::down, counts.state_space, weights});
  }
  if (counts.mixture > 0 && model.experts->shared_ffn > 0) {
    const Transformer shared = with_shared_experts(model);
    projections.push_back({"shared_gate_up", shared, SiteName::gate_up, counts.mixture});
    projections.push_back({"shared_down", shared, SiteName::down, counts.mixture});
  }
  return projections;
}

}  // namespace

std::string site_name(const Transformer& model, const Transformer& shape, SiteName site) {
  const auto with_width = [&](std::string_view width, std::int64_t of_shape, std::int64_t common) {
    return of_shape == common ? std::string{name_of(site)} : fmt::format("{}_{}_{}", name_of(site), width, of_shape);
  };
  switch (site) {
    case SiteName::qkv: return with_width("kv_heads", shape.kv_heads, model.kv_heads);
    case SiteName::out_proj: return std::string{name_of(site)};
    case SiteName::gate_up:
    case SiteName::down: return with_width("ffn", shape.ffn, model.ffn);
  }
  return {};
}

Transformer with_plain_mlp(const Transformer& model, std::int64_t columns) {
  Transformer shape = model;
  shape.ffn = columns;
  shape.gated_mlp = false;
  shape.experts.reset();
  shape.latent.reset();
  shape.state_space.reset();
  shape.kinds.clear();
  return shape;
}

Transformer with_mamba_in(const Transformer& model) {
  check(model.state_space.has_value(), "the model has state-space layers");
  return with_plain_mlp(model, model.state_space->projected());
}

Transformer with_mamba_out(const Transformer& model) {
  check(model.state_space.has_value(), "the model has state-space layers");
  return with_plain_mlp(model, model.state_space->inner);
}

Transformer with_shared_experts(const Transformer& model) {
  check(model.experts.has_value() && model.experts->shared_ffn > 0, "the model has shared experts");
  Transformer shape = with_plain_mlp(model, model.experts->shared_ffn);
  shape.gated_mlp = model.gated_mlp;
  return shape;
}

Scope scope_of(SiteName name, bool backward) {
  switch (name) {
    case SiteName::qkv: return backward ? Scope::qkv_backward : Scope::qkv;
    case SiteName::out_proj: return backward ? Scope::out_proj_backward : Scope::out_proj;
    case SiteName::gate_up: return backward ? Scope::gate_up_backward : Scope::gate_up;
    case SiteName::down: return backward ? Scope::down_backward : Scope::down;
  }
  return Scope::qkv;
}

std::optional<Scope> forward_scope(SiteName name, const TrainingPlan& plan) {
  if (plan.tensor == 1) {
    return std::nullopt;
  }
  if (plan.sequence_parallel) {
    return scope_of(name, false);
  }
  if (gathers(name)) {
    return std::nullopt;
  }
  return name == SiteName::out_proj ? Scope::out_proj_ar : Scope::down_ar;
}

bool gathers(SiteName name) { return name == SiteName::qkv || name == SiteName::gate_up; }

LayerSite input_gradient(const Projection& projection) {
  const Site site = site_of(*projection.shape, projection.name, 1);
  const std::string name = fmt::format("{}_dgrad", name_of(projection.name));
  const bool scatters = gathers(projection.name);
  return {.name = name,
          .shape = with_plain_mlp(*projection.shape, scatters ? site.columns : site.contraction),
          .scope = scatters ? Scope::down : Scope::gate_up,
          .projection = scatters ? SiteName::down : SiteName::gate_up};
}

std::vector<LayerSite> layer_sites(const Transformer& model, const TrainingPlan& plan) {
  const std::vector<NamedProjection> projections = projections_of(model);
  std::vector<LayerSite> sites;
  for (const NamedProjection& projection : projections) {
    sites.push_back(projection.forward());
  }
  for (const NamedProjection& projection : projections) {
    if (plan.schedule == PipelineSchedule::zero_bubble) {
      LayerSite gradient = input_gradient({&projection.shape, projection.site});
      gradient.name = projection.name + "_dgrad";
      gradient.layers = projection.layers;
      gradient.backward = true;
      sites.push_back(std::move(gradient));
    } else {
      LayerSite backward = projection.forward();
      backward.name += "_backward";
      backward.scope = scope_of(projection.site, true);
      backward.backward = true;
      sites.push_back(std::move(backward));
    }
  }
  return sites;
}

}  // namespace commfuse
