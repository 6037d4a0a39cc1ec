// SPDX-License-Identifier: Apache-2.0
#include "model/config/load_model.h"

#include <fmt/format.h>

#include <cstdio>

#include "model/config/catalogue.h"
#include "model/config/hf_config.h"

namespace commfuse {

namespace {

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
  if (!file.has_mistakes() && model.heads % model.kv_heads != 0) {
    root.mistake("kv_heads", fmt::format("{} heads cannot share {} kv heads evenly; choose kv_heads that divide heads",
                                         model.heads, model.kv_heads));
  }
  file.finish();
  return model;
}

}  // namespace

Transformer load_model(std::string_view name_or_path) {
  const std::filesystem::path path = find_config(Catalogue::models, name_or_path);
  if (path.extension() != ".json") {
    return load_yaml(path);
  }
  HfModel read = read_hf_config(path);
  for (const std::string& doubt : read.doubts) {
    fmt::print(stderr, "warning: {}\n", doubt);
  }
  return read.model;
}

}  // namespace commfuse
