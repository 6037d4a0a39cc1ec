// SPDX-License-Identifier: Apache-2.0
#include "model/workload/sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "model/check.h"
#include "model/config_error.h"

namespace commfuse {

namespace {

constexpr std::int64_t max_tokens = std::int64_t{1} << 30;
constexpr std::int64_t max_listed_ranks = 1024;

/// Lists, for a message, the divisors of `size` that `allowed` accepts.
template <class Allowed>
std::string divisors(std::int64_t size, const Allowed& allowed) {
  std::string list;
  for (std::int64_t ranks = 1; ranks <= std::min(size, max_listed_ranks); ++ranks) {
    if (size % ranks == 0 && allowed(ranks)) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", ranks);
    }
  }
  return list;
}

[[noreturn]] void refuse_split(const Transformer& model, std::string_view what, std::int64_t size, int ranks,
                               std::string_view rule, std::string_view choices) {
  const std::string_view noun = what.substr(0, what.size() - (size == 1 ? 1 : 0));  // "1 kv head"
  throw ConfigError(fmt::format("{} {} of {} cannot be split over {} ranks; choose ranks that divide {}: {}", size,
                                noun, model.name, ranks, rule, choices));
}

void require_split(const Transformer& model, std::string_view what, std::int64_t size, int ranks,
                   std::string_view rule) {
  if (size % ranks != 0) {
    refuse_split(model, what, size, ranks, rule, divisors(size, [](std::int64_t) { return true; }));
  }
}

bool has_copies(std::int64_t heads, std::int64_t ranks) { return heads > 0 && ranks > heads && ranks % heads == 0; }

void require_heads(const Transformer& model, int ranks, KeyHeads key_heads) {
  const auto fits_kv_heads = [&](std::int64_t rank_count) {
    return model.kv_heads % rank_count == 0 ||
           (key_heads == KeyHeads::copied && has_copies(model.kv_heads, rank_count));
  };
  const bool splits = model.heads % ranks == 0;
  if (splits && fits_kv_heads(ranks)) {
    return;
  }
  const std::string rule = key_heads == KeyHeads::copied
                               ? fmt::format("heads ({}) and either divide kv heads ({}) or are a multiple of them",
                                             model.heads, model.kv_heads)
                               : fmt::format("heads ({}) and kv heads ({})", model.heads, model.kv_heads);
  refuse_split(model, fits_kv_heads(ranks) ? "heads" : "kv heads", fits_kv_heads(ranks) ? model.heads : model.kv_heads,
               ranks, rule, divisors(model.heads, fits_kv_heads));
}

void require_tokens(std::int64_t tokens, int ranks) {
  if (tokens < 1 || tokens > max_tokens) {
    throw ConfigError(fmt::format("batch x sequence is {} tokens; choose 1 to {}", tokens, max_tokens));
  }
  if (tokens % ranks != 0) {
    const std::int64_t below = tokens / ranks * ranks;
    const std::string choice = below == 0 ? fmt::format("{}", ranks) : fmt::format("{} or {}", below, below + ranks);
    throw ConfigError(
        fmt::format("{} tokens (batch x sequence) cannot be split over {} ranks; choose a multiple of {}, "
                    "such as {}",
                    tokens, ranks, ranks, choice));
  }
}

}  // namespace

std::string_view name_of(SiteKind kind) {
  switch (kind) {
    case SiteKind::ag_gemm: return "ag_gemm";
    case SiteKind::gemm_rs: return "gemm_rs";
    case SiteKind::gemm_ar: return "gemm_ar";
    case SiteKind::mlp_ar: return "mlp_ar";
    case SiteKind::ag_gemm_backward: return "ag_gemm_backward";
    case SiteKind::gemm_rs_backward: return "gemm_rs_backward";
    case SiteKind::weight_ag_gemm: return "weight_ag_gemm";
    case SiteKind::gradient_rs: return "gradient_rs";
    case SiteKind::attention_rs: return "attention_rs";
    case SiteKind::gemm_a2a: return "gemm_a2a";
    case SiteKind::attention_a2a: return "attention_a2a";
  }
  return "";
}

std::string_view name_of(SiteName name) {
  switch (name) {
    case SiteName::qkv: return "qkv";
    case SiteName::out_proj: return "out_proj";
    case SiteName::gate_up: return "gate_up";
    case SiteName::down: return "down";
  }
  return "";
}

Site site_of(const Transformer& model, SiteName name, std::int64_t tokens) {
  check(tokens >= 1, "a site has at least one token");
  Site site{
      .name = name, .kind = SiteKind::ag_gemm, .tokens = tokens, .contraction = model.hidden, .columns = model.hidden};
  switch (name) {
    case SiteName::qkv: site.columns = model.qkv_columns(); break;
    case SiteName::gate_up: site.columns = (model.gated_mlp ? 2 : 1) * model.ffn; break;
    case SiteName::out_proj:
      site.kind = SiteKind::gemm_rs;
      site.contraction = model.attended_columns();
      break;
    case SiteName::down:
      site.kind = SiteKind::gemm_rs;
      site.contraction = model.ffn;
      break;
  }
  return site;
}

Flops flops_of(const Site& site) {
  return {2.0 * static_cast<double>(site.tokens) * static_cast<double>(site.contraction) *
          static_cast<double>(site.columns)};
}

std::optional<Transformer> with_copied_heads(const Transformer& model, std::int64_t ranks) {
  const auto copied = [&](std::int64_t heads) { return has_copies(heads, ranks) ? ranks : heads; };
  Transformer shape = model;
  shape.kv_heads = copied(model.kv_heads);
  bool has_any = shape.kv_heads != model.kv_heads;
  for (LayerKind& kind : shape.kinds) {
    const std::int64_t given = kind.kv_heads;
    kind.kv_heads = given > 0 ? copied(given) : 0;
    has_any |= kind.kv_heads != given;
  }
  if (model.state_space && model.state_space->heads() % ranks == 0) {
    shape.state_space->groups = copied(model.state_space->groups);
    has_any |= shape.state_space->groups != model.state_space->groups;
  }
  return has_any ? std::optional(std::move(shape)) : std::nullopt;
}

void require_divisible(const Transformer& model, SiteName name, std::int64_t tokens, int ranks, KeyHeads key_heads) {
  if (ranks < 1) {
    throw ConfigError(fmt::format("ranks is {}; choose a whole number of at least 1", ranks));
  }
  switch (name) {
    case SiteName::qkv: require_heads(model, ranks, key_heads); break;
    case SiteName::out_proj:
      require_split(model, "heads", model.heads, ranks, fmt::format("heads ({})", model.heads));
      break;
    case SiteName::gate_up:
    case SiteName::down:
      require_split(model, "ffn columns", model.ffn, ranks, fmt::format("ffn ({})", model.ffn));
      break;
  }
  require_tokens(tokens, ranks);
}

void require_divisible_hidden(const Transformer& model, int ranks) {
  require_split(model, "hidden columns", model.hidden, ranks, fmt::format("hidden ({})", model.hidden));
}

}  // namespace commfuse
