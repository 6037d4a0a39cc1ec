// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/scope.h"

#include <string>

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

}  // namespace

std::string_view name_of(Scope scope) {
  switch (scope) {
    case Scope::qkv: return "qkv";
    case Scope::out_proj: return "out_proj";
    case Scope::gate_up: return "gate_up";
    case Scope::down: return "down";
    case Scope::mlp: return "mlp";
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
    case Scope::qkv: return {SiteName::qkv};
    case Scope::out_proj: return {SiteName::out_proj};
    case Scope::gate_up: return {SiteName::gate_up};
    case Scope::down: return {SiteName::down};
    case Scope::mlp: return {SiteName::gate_up, SiteName::down};
  }
  return {};
}

Operation operation_of(Scope scope, bool gated_mlp) {
  Operation operation{.name = std::string{name_of(scope)}, .stages = {}};
  for (const SiteName site : sites_of(scope)) {
    operation.stages.push_back(stage_of(site, gated_mlp));
  }
  if (scope == Scope::mlp) {
    operation.stages.front().activation = gated_mlp ? Function::swiglu : Function::gelu;
  }
  return operation;
}

std::vector<Quantity> quantities_of(Scope scope, const Transformer& model, std::int64_t tokens) {
  switch (scope) {
    case Scope::qkv:
      return {
          {"tokens", tokens}, {"hidden", model.hidden}, {"qkv", (model.heads + 2 * model.kv_heads) * model.head_dim}};
    case Scope::out_proj:
      return {{"tokens", tokens}, {"hidden", model.hidden}, {"attention", model.heads * model.head_dim}};
    case Scope::gate_up:
    case Scope::down:
    case Scope::mlp: return {{"tokens", tokens}, {"hidden", model.hidden}, {"ffn", model.ffn}};
  }
  return {};
}

Flops flops_of(Scope scope, const Transformer& model, std::int64_t tokens) {
  Flops total;
  for (const SiteName site : sites_of(scope)) {
    total += flops_of(site_of(model, site, tokens));
  }
  return total;
}

}  // namespace commfuse
