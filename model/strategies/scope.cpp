// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/scope.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "model/config_error.h"
#include "model/workload/layers.h"

namespace commfuse {

namespace {

OperationStage stage_of(SiteName site, bool gated_mlp) {
  const std::string name{name_of(site)};
  switch (site) {
    case SiteName::qkv: return {.name = name, .kind = SiteKind::ag_gemm, .contraction = "hidden", .columns = "qkv"};
    case SiteName::out_proj:
      return {.name = name, .kind = SiteKind::gemm_rs, .contraction = "attention", .columns = "hidden"};
    case SiteName::gate_up:
      return {.name = name,
              .kind = SiteKind::ag_gemm,
              .contraction = "hidden",
              .columns = "ffn",
              .columns_per_rank = gated_mlp ? 2 : 1};
    case SiteName::down: return {.name = name, .kind = SiteKind::gemm_rs, .contraction = "ffn", .columns = "hidden"};
  }
  return {};
}

OperationStage reduced_mlp(const char* name, bool gated_mlp) {
  return {.name = name,
          .kind = SiteKind::mlp_ar,
          .contraction = "hidden",
          .columns = "ffn",
          .columns_per_rank = gated_mlp ? 2 : 1,
          .activation = gated_mlp ? Function::swiglu : Function::gelu};
}

/// Returns up and down, then their backward passes.
Operation data_parallel_mlp() {
  const auto layer = [](const char* name, SiteKind kind, const char* contraction, const char* columns) {
    return OperationStage{
        .name = name, .kind = kind, .contraction = contraction, .columns = columns, .contraction_is_cut = true};
  };
  return {
      "data_parallel",
      {layer("up", SiteKind::weight_ag_gemm, "hidden", "ffn"), layer("down", SiteKind::weight_ag_gemm, "ffn", "hidden"),
       layer("down_backward", SiteKind::gradient_rs, "ffn", "hidden"),
       layer("up_backward", SiteKind::gradient_rs, "hidden", "ffn")}};
}

/// Throws ConfigError if the model lacks a GEMM of the scope, because it has experts, latent attention or no attention,
/// or if the scope contains the attention core and the model's core is not plain. Accepts single GEMMs of a bare
/// mixture.
void require_plain(Scope scope, const Transformer& model) {
  const bool is_bare_mixture = model.experts && model.experts->layer_ranks > 0;
  const std::string_view others =
      is_bare_mixture ? "scope gate_up or down" : "scope step, prefill or decode, which run all its layers";
  const auto refuse = [&](std::string_view needed, std::string_view actual) {
    throw ConfigError(
        fmt::format("scope {} needs {}, but {} has {}; choose {}", name_of(scope), needed, model.name, actual, others));
  };
  const LayerCounts counts = layer_counts(model);
  for (const SiteName site : sites_of(scope)) {
    const bool is_mlp = site == SiteName::gate_up || site == SiteName::down;
    if (is_mlp && counts.mixture > 0 && !is_expert_gemm(scope, model)) {
      refuse("a plain MLP", fmt::format("experts in {} of {} layers", counts.mixture, model.layers));
    }
    if (!is_mlp && model.latent) {
      refuse("plain attention", "latent attention");
    }
    if (!is_mlp && counts.attention == 0) {
      refuse("attention", "none");
    }
  }
  if (has_attention(scope) && model.gated_attention) {
    refuse("plain attention", "gated attention");
  }
  if (has_attention(scope) && model.value_dim() != model.head_dim) {
    refuse("values as wide as keys", "values of another width");
  }
}

/// Throws ConfigError unless the number of ranks that share the experts divides `ranks`.
void require_expert_ranks(const Transformer& model, int ranks) {
  const std::int64_t sharing = model.experts->layer_ranks;
  if (ranks % sharing != 0) {
    throw ConfigError(
        fmt::format("{} ranks cannot be split into groups of {}, over which {} splits its experts; choose "
                    "a multiple of {}",
                    ranks, sharing, model.name, sharing));
  }
}

SiteKind backward_of(SiteKind kind) {
  return kind == SiteKind::ag_gemm ? SiteKind::ag_gemm_backward : SiteKind::gemm_rs_backward;
}

}  // namespace

std::string_view name_of(Scope scope) {
  switch (scope) {
    case Scope::qkv: return "qkv";
    case Scope::out_proj: return "out_proj";
    case Scope::gate_up: return "gate_up";
    case Scope::down: return "down";
    case Scope::attention: return "attention";
    case Scope::mlp: return "mlp";
    case Scope::layer: return "layer";
    case Scope::out_proj_ar: return "out_proj_ar";
    case Scope::down_ar: return "down_ar";
    case Scope::mlp_ar: return "mlp_ar";
    case Scope::qkv_backward: return "qkv_backward";
    case Scope::out_proj_backward: return "out_proj_backward";
    case Scope::gate_up_backward: return "gate_up_backward";
    case Scope::down_backward: return "down_backward";
    case Scope::ulysses: return "ulysses";
    case Scope::fsdp_gate_up: return "fsdp_gate_up";
    case Scope::data_parallel: return "data_parallel";
  }
  return "";
}

std::optional<Scope> scope_named(std::string_view name) {
  for (const Scope scope : all_scopes) {
    if (name_of(scope) == name) {
      return scope;
    }
  }
  return std::nullopt;
}

std::vector<SiteName> sites_of(Scope scope) {
  switch (scope) {
    case Scope::qkv:
    case Scope::qkv_backward: return {SiteName::qkv};
    case Scope::out_proj:
    case Scope::out_proj_backward:
    case Scope::out_proj_ar: return {SiteName::out_proj};
    case Scope::gate_up:
    case Scope::gate_up_backward:
    case Scope::fsdp_gate_up: return {SiteName::gate_up};
    case Scope::down:
    case Scope::down_backward:
    case Scope::down_ar:
    case Scope::data_parallel: return {SiteName::down};
    case Scope::attention:
    case Scope::ulysses: return {SiteName::qkv, SiteName::out_proj};
    case Scope::mlp: return {SiteName::gate_up, SiteName::down};
    case Scope::layer: return {SiteName::qkv, SiteName::out_proj, SiteName::gate_up, SiteName::down};
    case Scope::mlp_ar: return {SiteName::gate_up, SiteName::down, SiteName::gate_up, SiteName::down};
  }
  return {};
}

Operation operation_of(Scope scope, bool gated_mlp) {
  if (scope == Scope::data_parallel) {
    return data_parallel_mlp();
  }
  Operation operation{.name = std::string{name_of(scope)}, .stages = {}};
  if (scope == Scope::mlp_ar) {
    operation.stages = {reduced_mlp("mlp1", gated_mlp), reduced_mlp("mlp2", gated_mlp)};
    return operation;
  }
  const bool chained = sites_of(scope).size() > 1;
  for (const SiteName site : sites_of(scope)) {
    OperationStage stage = stage_of(site, gated_mlp);
    if (chained && site == SiteName::gate_up) {
      stage.activation = gated_mlp ? Function::swiglu : Function::gelu;
    }
    if (chained && site == SiteName::out_proj) {
      stage.kind = SiteKind::attention_rs;
    }
    if (is_backward(scope)) {
      stage.kind = backward_of(stage.kind);
    }
    if (scope == Scope::out_proj_ar || scope == Scope::down_ar) {
      stage.kind = SiteKind::gemm_ar;
    }
    if (scope == Scope::fsdp_gate_up) {
      stage.kind = SiteKind::weight_ag_gemm;
    }
    if (scope == Scope::layer) {
      stage.norm = stage.kind == SiteKind::ag_gemm;
      stage.residual = !stage.norm;
    }
    if (scope == Scope::ulysses) {
      stage.kind = site == SiteName::qkv ? SiteKind::gemm_a2a : SiteKind::attention_a2a;
    }
    operation.stages.push_back(stage);
  }
  return operation;
}

std::vector<SiteKind> kinds_of(const Operation& operation) {
  std::vector<SiteKind> kinds;
  for (const OperationStage& stage : operation.stages) {
    kinds.push_back(stage.kind);
  }
  return kinds;
}

std::vector<SiteKind> kinds_of(Scope scope) { return kinds_of(operation_of(scope, true)); }

bool is_backward(Scope scope) {
  return scope == Scope::qkv_backward || scope == Scope::out_proj_backward || scope == Scope::gate_up_backward ||
         scope == Scope::down_backward;
}

bool is_expert_gemm(Scope scope, const Transformer& model) {
  return (scope == Scope::gate_up || scope == Scope::down) && model.experts && model.experts->layer_ranks > 0;
}

bool has_attention(Scope scope) {
  return scope == Scope::attention || scope == Scope::layer || scope == Scope::ulysses;
}

KeyHeads key_heads_of(Scope scope) {
  return is_backward(scope) || scope == Scope::ulysses ? KeyHeads::split : KeyHeads::copied;
}

std::vector<Quantity> quantities_of(const Transformer& whole, const Load& load, int ranks) {
  const std::optional<Transformer> copied = with_copied_heads(whole, ranks);
  const Transformer& model = copied ? *copied : whole;
  return {{"tokens", load.tokens()},
          {"batch", load.batch},
          {"hidden", model.hidden},
          {"qkv", model.qkv_columns()},
          {"attention", model.attended_columns()},
          {"head", model.head_dim},
          {"ffn", model.ffn}};
}

Flops flops_of(Scope scope, const Transformer& model, const Load& load) {
  Flops total;
  for (const SiteName site : sites_of(scope)) {
    total += flops_of(site_of(model, site, load.tokens()));
  }
  if (is_backward(scope)) {
    total += total;
  }
  if (is_expert_gemm(scope, model)) {
    total = static_cast<double>(model.experts->active) * total;
  }
  if (scope == Scope::data_parallel) {
    total = Flops{6.0 * total.count};  // up and down have equal FLOPs; one GEMM each forward, two backward
  }
  if (has_attention(scope)) {
    const auto width = static_cast<double>(model.heads * model.head_dim);
    total +=
        Flops{4.0 * static_cast<double>(load.tokens()) * mean_keys(model, first_attending(model), load.seq) * width};
  }
  return total;
}

void require_divisible(Scope scope, const Transformer& model, const Load& load, int ranks) {
  require_plain(scope, model);
  for (const SiteName site : sites_of(scope)) {
    require_divisible(model, site, load.tokens(), ranks, key_heads_of(scope));
  }
  if (scope == Scope::data_parallel) {
    require_divisible_hidden(model, ranks);
  }
  if (is_expert_gemm(scope, model)) {
    require_expert_ranks(model, ranks);
  }
}

}  // namespace commfuse
