// SPDX-License-Identifier: Apache-2.0
#include "model/config/load_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/hf_config.h"
#include "model/config_error.h"
#include "model/text/counted.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"
#include "model/workload/bare_mlp.h"
#include "model/workload/layers.h"
#include "model/workload/parameters.h"

namespace commfuse {

namespace {

bool boolean_or(YamlMap& map, std::string_view key, bool fallback) {
  return map.has(key) ? map.boolean(key) : fallback;
}

std::int64_t count_or(YamlMap& map, std::string_view key, Range<std::int64_t> range, std::int64_t fallback) {
  return map.has(key) ? map.count(key, range) : fallback;
}

Norm read_norm(YamlMap& root) {
  if (!root.has("norm")) {
    return Norm::rms;
  }
  const std::string word = root.text("norm");
  if (word != "rms" && word != "layer") {
    root.mistake("norm", fmt::format("unknown norm {}; choose rms or layer", in_quotes(word)));
  }
  return word == "layer" ? Norm::layer : Norm::rms;
}

Experts read_experts(YamlMap& map) {
  Experts experts;
  experts.count = map.count("count", expert_range);
  experts.active = map.count("active", expert_range);
  experts.ffn = map.count("ffn", model_size_range);
  experts.shared_ffn = count_or(map, "shared", {0, expert_range.most}, 0) * experts.ffn;
  if (map.has("shared_ffn")) {
    if (map.has("shared")) {
      map.mistake("shared_ffn", "shared experts are given twice, as a count and as a width; keep one of them");
    }
    experts.shared_ffn = map.count("shared_ffn", {0, model_size_range.most});
  }
  experts.shared_gate = boolean_or(map, "shared_gate", experts.shared_gate);
  experts.router_bias = boolean_or(map, "router_bias", experts.router_bias);
  experts.latent = count_or(map, "latent", {0, model_size_range.most}, 0);
  if (experts.active > experts.count) {
    map.mistake("active", fmt::format("a token cannot go to {} of {} experts; choose active up to count",
                                      experts.active, experts.count));
  }
  return experts;
}

/// Reads which layers have experts. The first `dense_layers` have none; a later layer has experts if its number,
/// counted from 1, is a multiple of `every`.
void read_layers_with_experts(YamlMap& map, const Transformer& model, std::vector<LayerKind>& kinds) {
  const std::int64_t dense = count_or(map, "dense_layers", {0, layer_range.most}, 0);
  const std::int64_t every = count_or(map, "every", layer_range, 1);
  if (dense >= model.layers) {
    map.mistake("dense_layers",
                fmt::format("{} dense {} of {} {} no layer with experts; choose fewer", dense,
                            dense == 1 ? "layer" : "layers", model.layers, dense == 1 ? "leaves" : "leave"));
  }
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    LayerKind& kind = kinds[static_cast<std::size_t>(layer)];
    if (kind.mlp == MlpKind::mixture && (layer < dense || layer % every != every - 1)) {
      kind.mlp = MlpKind::dense;
    }
  }
}

LatentAttention read_latent(YamlMap map) {
  LatentAttention latent{.query_rank = map.count("query_rank", {0, model_size_range.most}),
                         .key_value_rank = map.count("key_value_rank", model_size_range),
                         .position_dim = map.count("position_dim", head_range),
                         .value_dim = map.count("value_dim", head_range)};
  if (std::optional<YamlMap> indexer = map.optional_map("indexer")) {
    latent.indexer = Indexer{.heads = indexer->count("heads", head_range),
                             .head_dim = indexer->count("head_dim", head_range),
                             .keys = indexer->count("keys", model_size_range)};
  }
  return latent;
}

/// Reads a pattern with one letter per layer.
void read_pattern(YamlMap& map, const Transformer& model, std::vector<LayerKind>& kinds) {
  const std::string pattern = map.text("pattern");
  for (const char letter : pattern) {
    const bool is_known = layer_letters.find(letter) != std::string_view::npos;
    if (!is_known || (letter == 'E' && !model.experts)) {
      map.mistake("pattern",
                  fmt::format("unknown layer {}{}; choose M (state space), * (attention), - (MLP), m or a "
                              "(state space or attention, and an MLP){}",
                              in_quotes(std::string(1, letter)), is_known ? " of a model without experts" : "",
                              model.experts ? ", or E (experts)" : ""));
      return;
    }
  }
  if (std::ssize(pattern) != model.layers) {
    map.mistake("pattern", fmt::format("{} for {}; write one letter per layer", counted(pattern.size(), "letter"),
                                       counted(model.layers, "layer")));
    return;
  }
  kinds = kinds_of_letters(pattern, model.experts.has_value());
}

StateSpace read_state_space(YamlMap& map) {
  StateSpace space{.inner = map.count("inner", model_size_range),
                   .head_dim = map.count("head_dim", head_range),
                   .state = map.count("state", head_range)};
  if (map.has("recurrence")) {
    const std::string word = map.text("recurrence");
    if (word != "mamba2" && word != "gated_delta") {
      map.mistake("recurrence", fmt::format("unknown recurrence {}; choose mamba2 or gated_delta", in_quotes(word)));
    }
    space.recurrence = word == "gated_delta" ? Recurrence::gated_delta : Recurrence::mamba2;
  }
  space.groups = count_or(map, "groups", head_range, space.groups);
  space.chunk = count_or(map, "chunk", model_size_range, space.chunk);
  space.convolution = count_or(map, "convolution", head_range, space.convolution);
  space.state_bits = usual_state_bits(space.recurrence);
  if (map.has("state_bits")) {
    space.state_bits = map.count("state_bits", {16, 32});
    if (space.state_bits != 16 && space.state_bits != 32) {
      map.mistake("state_bits", fmt::format("states use 16 or 32 bits, not {}; choose one", space.state_bits));
    }
  }
  if (space.inner % space.head_dim != 0) {
    map.mistake("head_dim", fmt::format("{} inner channels do not split into heads of {}; choose a head_dim that "
                                        "divides inner",
                                        space.inner, space.head_dim));
  } else if (space.heads() % space.groups != 0) {
    map.mistake("groups", fmt::format("{} heads do not split into {} groups; choose groups that divide them",
                                      space.heads(), space.groups));
  }
  return space;
}

/// Reads the list of windows, which repeats over the layers.
void read_windows(YamlMap& root, std::vector<LayerKind>& kinds) {
  const bool chunked = boolean_or(root, "chunked", false);
  const std::vector<std::int64_t> windows = root.counts("windows", {0, model_size_range.most});
  for (std::size_t layer = 0; layer < kinds.size() && !windows.empty(); ++layer) {
    if (kinds[layer].attention) {
      kinds[layer].window = windows[layer % windows.size()];
      kinds[layer].chunked = chunked && kinds[layer].window > 0;
    }
  }
}

QkNorm read_qk_norm(YamlMap& root) {
  if (!root.has("qk_norm")) {
    return QkNorm::none;
  }
  const std::string word = root.text("qk_norm");
  if (word != "none" && word != "head" && word != "whole") {
    root.mistake("qk_norm", fmt::format("unknown norm {}; choose none, head or whole", in_quotes(word)));
  }
  return word == "head" ? QkNorm::head : word == "whole" ? QkNorm::whole : QkNorm::none;
}

void read_layers(YamlMap& root, Transformer& model) {
  std::optional<YamlMap> experts = root.optional_map("experts");
  if (experts) {
    model.experts = read_experts(*experts);
  }
  std::vector<LayerKind> kinds(static_cast<std::size_t>(model.layers), experts ? mixture_layer : dense_layer);
  if (std::optional<YamlMap> space = root.optional_map("state_space")) {
    read_pattern(*space, model, kinds);
    model.state_space = read_state_space(*space);
  }
  if (experts) {
    read_layers_with_experts(*experts, model, kinds);
  }
  if (root.has("windows")) {
    read_windows(root, kinds);
  }
  put_kinds(std::move(kinds), model);
}

void read_parameters(YamlMap& root, Transformer& model) {
  model.norm = read_norm(root);
  model.biases = boolean_or(root, "biases", model.biases);
  model.qkv_biases = boolean_or(root, "qkv_biases", model.qkv_biases);
  model.tied_embeddings = boolean_or(root, "tied_embeddings", model.tied_embeddings);
  model.positions = count_or(root, "positions", model_size_range, 0);
  model.qk_norm = read_qk_norm(root);
  model.sinks = boolean_or(root, "sinks", model.sinks);
  model.gated_attention = boolean_or(root, "gated_attention", model.gated_attention);
  if (std::optional<YamlMap> latent = root.optional_map("latent")) {
    model.latent = read_latent(*latent);
  }
  read_layers(root, model);
}

Transformer load_yaml(const std::filesystem::path& path) {
  YamlFile file(path);
  YamlMap root = file.root();
  root.schema("commfuse.model/1");
  Transformer model;
  model.name = root.text("name");
  model.layers = root.count("layers", layer_range);
  model.hidden = root.count("hidden", model_size_range);
  model.ffn = root.count("ffn", model_size_range);
  model.heads = root.count("heads", head_range);
  model.kv_heads = root.count("kv_heads", head_range);
  model.head_dim = root.count("head_dim", head_range);
  model.vocab = root.count("vocab", vocab_range);
  model.gated_mlp = root.boolean("gated_mlp");
  read_parameters(root, model);
  if (!file.has_mistakes() && model.heads % model.kv_heads != 0) {
    root.mistake("kv_heads", fmt::format("{} heads cannot share {} kv heads evenly; choose kv_heads that divide heads",
                                         model.heads, model.kv_heads));
  }
  if (!file.has_mistakes() && model.experts && layer_counts(model).mixture == 0) {
    root.mistake("experts", "no layer has experts; change dense_layers, every or the pattern, or remove experts");
  }
  file.finish();
  return model;
}

/// Checks that the bytes of weights, gradients and an optimizer's state, 18 per parameter, fit into 64 bits. For one
/// layer the ranges of its sizes ensure this.
void require_countable(const Transformer& model, const std::filesystem::path& path) {
  constexpr double limit = 1e17;
  double parameters = static_cast<double>((model.vocab + model.positions) * model.hidden);
  for (const LayerRun& run : layer_runs(model)) {
    parameters += static_cast<double>(run.count) * static_cast<double>(layer_parameters(model, run.kind).total());
  }
  if (parameters > limit) {
    throw ConfigError(fmt::format("{}: {} has {:.2g} parameters, more than {:.0e}; check its sizes", path.string(),
                                  model.name, parameters, limit));
  }
}

}  // namespace

Transformer load_model(std::string_view name_or_path) {
  if (std::optional<Transformer> bare = bare_mlp_named(name_or_path)) {
    return *std::move(bare);
  }
  const std::filesystem::path path = find_config(Catalogue::models, name_or_path);
  if (path.extension() != ".json") {
    Transformer model = load_yaml(path);
    require_countable(model, path);
    return model;
  }
  HfModel hf = read_hf_config(path);
  require_countable(hf.model, path);
  for (const std::string& doubt : hf.doubts) {
    fmt::print(stderr, "warning: {}\n", doubt);
  }
  for (const std::string& note : hf.notes) {
    fmt::print(stderr, "note: {}: {}\n", path.string(), note);
  }
  if (!hf.unused.empty()) {
    const bool is_one = hf.unused.size() == 1;
    fmt::print(stderr, "warning: {}: {} {} {} not used; check that {} not change the shape\n", path.string(),
               is_one ? "key" : "keys", with_escapes(fmt::format("{}", fmt::join(hf.unused, ", "))),
               is_one ? "is" : "are", is_one ? "it does" : "they do");
  }
  return hf.model;
}

}  // namespace commfuse
