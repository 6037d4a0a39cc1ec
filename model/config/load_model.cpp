// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "model/config/catalogue.h"
#include "model/config/yaml_reader.h"

namespace commfuse {

namespace {

constexpr Range<std::int64_t> size_range{1, std::int64_t{1} << 20};  // Keeps bytes and FLOPs of any site in range.
constexpr Range<std::int64_t> vocab_range{1, std::int64_t{1} << 24};
constexpr Range<std::int64_t> layer_range{1, 10'000};
constexpr Range<std::int64_t> head_range{1, 4096};

}  // namespace

Transformer load_model(std::string_view name_or_path) {
  YamlFile file(find_config(Catalogue::models, name_or_path));
  YamlMap root = file.root();
  root.schema("commfuse.model/1");
  Transformer model;
  model.name = root.text("name");
  model.layers = root.count("layers", layer_range);
  model.hidden = root.count("hidden", size_range);
  model.ffn = root.count("ffn", size_range);
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

}  // namespace commfuse
