// SPDX-License-Identifier: Apache-2.0
#include "model/config/load_model.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "model/config/catalogue.h"
#include "model/config/hf_config.h"
#include "model/config_error.h"
#include "model/text/suggest.h"
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

Experts read_experts(YamlMap map, std::int64_t layers) {
  Experts experts;
  experts.count = map.count("count", expert_range);
  experts.active = map.count("active", expert_range);
  experts.ffn = map.count("ffn", model_size_range);
  experts.shared = count_or(map, "shared", {0, expert_range.most}, 0);
  experts.dense_layers = count_or(map, "dense_layers", {0, layer_range.most}, 0);
  if (experts.active > experts.count) {
    map.mistake("active", fmt::format("a token cannot go to {} of {} experts; choose active up to count",
                                      experts.active, experts.count));
  }
  if (experts.dense_layers >= layers) {
    map.mistake("dense_layers", fmt::format("{} dense layers leave none of {} to the experts; choose fewer",
                                            experts.dense_layers, layers));
  }
  return experts;
}

LatentAttention read_latent(YamlMap map) {
  return {.query_rank = map.count("query_rank", model_size_range),
          .key_value_rank = map.count("key_value_rank", model_size_range),
          .position_dim = map.count("position_dim", head_range),
          .value_dim = map.count("value_dim", head_range)};
}

/// A letter a layer.
std::string read_pattern(YamlMap& map, const Transformer& model) {
  std::string pattern = map.text("pattern");
  for (const char letter : pattern) {
    const bool is_known = std::string_view("M*-E").find(letter) != std::string_view::npos;
    if (!is_known || (letter == StateSpace::experts && !model.experts)) {
      map.mistake("pattern",
                  fmt::format("unknown layer {}{}; choose M (state space), * (attention), - (MLP){}",
                              in_quotes(std::string(1, letter)), is_known ? " of a model without experts" : "",
                              model.experts ? " or E (experts)" : ""));
      return pattern;
    }
  }
  if (std::ssize(pattern) != model.layers) {
    map.mistake("pattern", fmt::format("{} letters for {} layers; write one a layer", pattern.size(), model.layers));
  }
  return pattern;
}

StateSpace read_state_space(YamlMap map, const Transformer& model) {
  StateSpace space{.pattern = read_pattern(map, model),
                   .inner = map.count("inner", model_size_range),
                   .head_dim = map.count("head_dim", head_range),
                   .state = map.count("state", head_range)};
  space.groups = count_or(map, "groups", head_range, space.groups);
  space.chunk = count_or(map, "chunk", model_size_range, space.chunk);
  space.convolution = count_or(map, "convolution", head_range, space.convolution);
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

void read_parameters(YamlMap& root, Transformer& model) {
  model.norm = read_norm(root);
  model.biases = boolean_or(root, "biases", model.biases);
  model.qkv_biases = boolean_or(root, "qkv_biases", model.qkv_biases);
  model.tied_embeddings = boolean_or(root, "tied_embeddings", model.tied_embeddings);
  model.positions = count_or(root, "positions", model_size_range, 0);
  if (std::optional<YamlMap> experts = root.optional_map("experts")) {
    model.experts = read_experts(*experts, model.layers);
  }
  if (std::optional<YamlMap> latent = root.optional_map("latent")) {
    model.latent = read_latent(*latent);
  }
  if (std::optional<YamlMap> space = root.optional_map("state_space")) {
    model.state_space = read_state_space(*space, model);
  }
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
  file.finish();
  return model;
}

/// Bytes of weights, gradients and an optimizer's state, 18 a parameter, then stay inside 64 bits. Of one layer they do
/// so by the ranges of its sizes.
void require_countable(const Transformer& model, const std::filesystem::path& path) {
  constexpr double most = 1e17;
  double parameters = static_cast<double>((model.vocab + model.positions) * model.hidden);
  for (const LayerRun& run : layer_runs(model)) {
    parameters += static_cast<double>(run.count) * static_cast<double>(layer_parameters(model, run.kind).total());
  }
  if (parameters > most) {
    throw ConfigError(fmt::format("{}: {} has {:.2g} parameters, and {:.0e} is the most; check its sizes",
                                  path.string(), model.name, parameters, most));
  }
}

}  // namespace

Transformer load_model(std::string_view name_or_path) {
  const std::filesystem::path path = find_config(Catalogue::models, name_or_path);
  if (path.extension() != ".json") {
    Transformer model = load_yaml(path);
    require_countable(model, path);
    return model;
  }
  HfModel read = read_hf_config(path);
  require_countable(read.model, path);
  for (const std::string& doubt : read.doubts) {
    fmt::print(stderr, "warning: {}\n", doubt);
  }
  return read.model;
}

}  // namespace commfuse
