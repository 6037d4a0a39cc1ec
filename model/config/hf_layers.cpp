// SPDX-License-Identifier: Apache-2.0
#include "model/config/hf_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "model/config/load_model.h"
#include "model/text/blanks.h"
#include "model/text/counted.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "model/workload/layers.h"

namespace commfuse {

namespace {

using Json = nlohmann::json;

/// Keys of config.json for the sizes of a state space.
struct StateKeys {
  std::string_view heads, head_dim, state, groups, convolution, chunk;
};

class Layers {
 public:
  Layers(HfFile& file, const std::string& type, const HfFamily& family, Transformer& model)
      : file_(file),
        type_(type),
        family_(family),
        model_(model),
        kinds_(static_cast<std::size_t>(model.layers), model.experts ? mixture_layer : dense_layer) {}

  void read() {
    const bool is_whole = read_letters() || read_blocks();
    if (!is_whole) {
      read_mixers();
      read_experts();
      read_widths();
    }
    read_windows();
    if (std::none_of(kinds_.begin(), kinds_.end(), [](const LayerKind& kind) { return kind.state_space; })) {
      model_.state_space.reset();
    }
    if (file_.is_right()) {
      put_kinds(std::move(kinds_), model_);
    }
  }

 private:
  [[nodiscard]] std::size_t size() const { return kinds_.size(); }

  /// Returns the layers in a string such as "4,5,6".
  std::set<std::int64_t> layers_in_text(const HfFile::Field& field) {
    const auto& text = field.value->get_ref<const std::string&>();
    std::set<std::int64_t> layers;
    for (const std::string_view part : split_list(text)) {
      const std::optional<std::int64_t> layer = parse_integer(trimmed(part));
      if (!layer) {
        file_.mistake(
            fmt::format("{} is {}; write layers, as in [4, 5, 6]", file_.in_file(field.key), in_quotes(text)));
        break;
      }
      layers.insert(*layer);
    }
    return layers;
  }

  /// Returns the layers that a list names, in any order. Step-3 writes the list as a string.
  std::optional<std::set<std::int64_t>> listed_layers(HfKeys keys) {
    if (const auto field = file_.first_of(keys); field && field->value->is_string()) {
      return layers_in_text(*field);
    }
    const auto list = file_.optional_counts(keys, {0, layer_range.most});
    return list ? std::optional(std::set<std::int64_t>(list->begin(), list->end())) : std::nullopt;
  }

  /// Checks that the list has one value per layer and notes a mistake otherwise, unless a wrong item or a wrong number
  /// of layers may be the cause.
  template <class List>
  bool is_of_all_layers(const List& list, std::string_view key) {
    if (list.size() != size() && file_.is_right()) {
      file_.mistake(fmt::format("{} has {} for {}; correct num_hidden_layers", file_.in_file(key),
                                counted(list.size(), "entry", "entries"), counted(size(), "layer", "layers")));
    }
    return list.size() == size();
  }

  void put_state_space(const StateKeys& keys, Recurrence recurrence) {
    StateSpace space{.recurrence = recurrence};
    const std::int64_t heads = file_.count({keys.heads}, head_range);
    space.head_dim = file_.count({keys.head_dim}, head_range);
    space.inner = heads * space.head_dim;
    space.state = file_.count({keys.state}, head_range);
    space.groups = file_.optional_count({keys.groups}, head_range).value_or(1);
    space.convolution = file_.optional_count({keys.convolution}, head_range).value_or(space.convolution);
    space.chunk = file_.optional_count({keys.chunk}, model_size_range).value_or(space.chunk);
    const std::string state = file_.word({"mamba_ssm_cache_dtype", "mamba_ssm_dtype"});
    space.state_bits = state == "float32"                          ? 32
                       : state.empty() || state == "auto"          ? usual_state_bits(recurrence)
                       : state == "bfloat16" || state == "float16" ? 16
                                                                   : 0;
    if (space.state_bits == 0) {
      file_.mistake(fmt::format("{} is {}; write float32, bfloat16 or float16", file_.in_file("mamba_ssm_cache_dtype"),
                                in_quotes(state)));
    }
    if (file_.is_right() && heads % space.groups != 0) {
      file_.mistake(fmt::format("{} heads do not split into {} groups; correct {}", heads, space.groups, keys.groups));
    }
    model_.state_space = space;
  }

  /// Reads Nemotron-H: one part per layer, with a letter or a word for each.
  bool read_letters() {
    std::string pattern = file_.word({"hybrid_override_pattern"});
    const std::vector<std::string> words = file_.words({"layers_block_type"});
    if (pattern.empty() && type_ == "nemotron_h") {
      for (const std::string& word : words) {
        pattern += word == "mamba" ? 'M' : word == "attention" ? '*' : word == "moe" ? 'E' : '-';
      }
    }
    if (type_ != "nemotron_h" || pattern.empty()) {
      return false;
    }
    put_state_space({.heads = "mamba_num_heads",
                     .head_dim = "mamba_head_dim",
                     .state = "ssm_state_size",
                     .groups = "n_groups",
                     .convolution = "conv_kernel",
                     .chunk = "chunk_size"},
                    Recurrence::mamba2);
    const std::string_view known = model_.experts ? "M, *, - and E" : "M, * and -";
    const std::size_t unknown = pattern.find_first_not_of(model_.experts ? "M*-E" : "M*-");
    if (unknown != std::string::npos) {
      file_.mistake(fmt::format("{} has the unknown layer {} (known: {}); choose another model",
                                file_.in_file("hybrid_override_pattern"), in_quotes(pattern.substr(unknown, 1)),
                                known));
    } else if (pattern.size() != size()) {
      file_.mistake(fmt::format("{} has {} for {}; correct num_hidden_layers", file_.in_file("hybrid_override_pattern"),
                                counted(pattern.size(), "letter", "letters"), counted(size(), "layer", "layers")));
    } else {
      kinds_ = kinds_of_letters(pattern, model_.experts.has_value());
    }
    return true;
  }

  /// Reads Nemotron-NAS (DeciLM), where a search chose the parts of each layer. The width of an MLP is two thirds of
  /// hidden times its factor, rounded up to a multiple of 256 (its modeling_decilm.py, _ffn_mult_to_intermediate_size).
  bool read_blocks() {
    const std::optional<HfFile::Field> blocks = file_.first_of({"block_configs"});
    if (!blocks) {
      return false;
    }
    if (!blocks->value->is_array() || !is_of_all_layers(*blocks->value, "block_configs")) {
      return true;
    }
    std::map<std::int64_t, int> widths;
    std::map<std::int64_t, int> heads;
    for (std::size_t layer = 0; layer < size(); ++layer) {
      kinds_[layer] = kind_of_block((*blocks->value)[layer]);
      ++widths[kinds_[layer].ffn];
      ++heads[kinds_[layer].kv_heads];
    }
    model_.ffn = most_common(widths, model_.ffn);
    model_.kv_heads = most_common(heads, model_.kv_heads);
    forget_common_widths();
    return true;
  }

  LayerKind kind_of_block(const Json& block) {
    LayerKind kind;
    const auto part = [&](const char* name) {
      const auto entry = block.is_object() ? block.find(name) : block.end();
      return entry != block.end() && entry->is_object() ? *entry : Json::object();
    };
    const auto is_true = [](const Json& object, const char* key) {
      return object.contains(key) && object.at(key).is_boolean() && object.at(key).get<bool>();
    };
    const Json attention = part("attention");
    const Json ffn = part("ffn");
    if (is_true(attention, "replace_with_linear") || is_true(ffn, "replace_with_linear")) {
      file_.mistake("'block_configs' replaces a part with a single GEMM, which is not supported; choose another model");
    }
    kind.attention = !is_true(attention, "no_op");
    if (kind.attention && attention.contains("n_heads_in_group") &&
        attention.at("n_heads_in_group").is_number_integer()) {
      const auto group = attention.at("n_heads_in_group").get<std::int64_t>();
      if (group < 1 || model_.heads % group != 0) {
        file_.mistake(
            fmt::format("'block_configs' has groups of {} heads, which do not divide {} heads evenly; correct it",
                        group, model_.heads));
        return kind;
      }
      kind.kv_heads = model_.heads / group;
    }
    if (is_true(ffn, "no_op")) {
      return kind;
    }
    kind.mlp = MlpKind::dense;
    if (ffn.contains("intermediate_size") && ffn.at("intermediate_size").is_number_integer()) {
      kind.ffn = ffn.at("intermediate_size").get<std::int64_t>();
    } else if (ffn.contains("ffn_mult") && ffn.at("ffn_mult").is_number()) {
      constexpr std::int64_t multiple = 256;
      const double factor = std::clamp(ffn.at("ffn_mult").get<double>(), 0.0, 1e3);
      const auto width = static_cast<std::int64_t>(2.0 * factor * static_cast<double>(model_.hidden) / 3.0);
      kind.ffn = (width + multiple - 1) / multiple * multiple;
    }
    if (kind.ffn < model_size_range.least || kind.ffn > model_size_range.most) {
      file_.mistake("'block_configs' has an MLP without a width; add ffn_mult or intermediate_size");
    }
    return kind;
  }

  static std::int64_t most_common(const std::map<std::int64_t, int>& counts, std::int64_t fallback) {
    std::int64_t common = fallback;
    int highest = 0;
    for (const auto& [value, count] : counts) {
      if (value > 0 && count > highest) {
        common = value;
        highest = count;
      }
    }
    return common;
  }

  /// Clears widths and numbers of key-value heads that equal the model's, because a kind states them only when they
  /// differ.
  void forget_common_widths() {
    for (LayerKind& kind : kinds_) {
      kind.ffn = kind.ffn == model_.ffn ? 0 : kind.ffn;
      kind.kv_heads = kind.kv_heads == model_.kv_heads ? 0 : kind.kv_heads;
    }
  }

  void put_mixer(LayerKind& kind, bool attention, bool state_space) {
    kind.attention = attention;
    kind.state_space = state_space;
  }

  void read_mixers() {
    types_ = file_.words({"layer_types"});
    if (file_.has("linear_num_value_heads")) {
      read_delta_network();
    } else if (file_.has("linear_attn_config")) {
      read_kimi_delta();
    } else if (type_ == "bamba" || type_ == "granitemoehybrid" || type_ == "falcon_h1") {
      read_mamba2();
    } else if (const auto field = file_.first_of({"ssm_state_size", "mamba_d_state", "state_size", "mamba_num_heads",
                                                  "conv_L_cache", "shared_block_ids"})) {
      file_.mistake(fmt::format("{}: state-space layers of model_type {} are not supported; choose another model",
                                file_.in_file(field->key), in_quotes(type_)));
    }
    for (const std::int64_t kind :
         file_.optional_counts({"attn_type_list"}, {0, 1}).value_or(std::vector<std::int64_t>{})) {
      if (kind == 0) {
        file_.mistake(fmt::format("{}: lightning attention is not supported; choose another model",
                                  file_.in_file("attn_type_list")));
        break;
      }
    }
    require_known_types();
  }

  /// Reads Qwen3-Next and Qwen3.5: gated delta networks, with attention in every n-th layer.
  void read_delta_network() {
    put_state_space({.heads = "linear_num_value_heads",
                     .head_dim = "linear_value_head_dim",
                     .state = "linear_key_head_dim",
                     .groups = "linear_num_key_heads",
                     .convolution = "linear_conv_kernel_dim",
                     .chunk = "linear_chunk_size"},
                    Recurrence::gated_delta);
    constexpr std::int64_t chunk_of_kernels = 64;  // fla-org/flash-linear-attention, chunk_gated_delta_rule
    model_.state_space->chunk = chunk_of_kernels;
    const std::int64_t every = file_.optional_count({"full_attention_interval"}, layer_range).value_or(4);
    const bool has_list = !types_.empty() && is_of_all_layers(types_, "layer_types");
    for (std::size_t layer = 0; layer < size(); ++layer) {
      const bool is_linear =
          has_list ? types_[layer] == "linear_attention" : (static_cast<std::int64_t>(layer) + 1) % every != 0;
      put_mixer(kinds_[layer], !is_linear, is_linear);
    }
  }

  /// Reads Kimi Linear: delta networks whose decay is per channel, priced as gated ones; layers are counted from 1.
  void read_kimi_delta() {
    put_state_space({.heads = "linear_attn_config.num_heads",
                     .head_dim = "linear_attn_config.head_dim",
                     .state = "linear_attn_config.head_dim",
                     .groups = "linear_attn_config.num_heads",
                     .convolution = "linear_attn_config.short_conv_kernel_size",
                     .chunk = "linear_attn_config.chunk_size"},
                    Recurrence::gated_delta);
    model_.state_space->chunk = 64;
    file_.note("Kimi delta attention is priced as a gated delta network");
    const auto attention_layers = listed_layers({"linear_attn_config.full_attn_layers"});
    for (std::size_t layer = 0; layer < size() && attention_layers; ++layer) {
      const bool attends = attention_layers->count(static_cast<std::int64_t>(layer) + 1) > 0;
      put_mixer(kinds_[layer], attends, !attends);
    }
  }

  /// Reads Mamba-2 hybrids: an MLP or experts follow every mixer. Falcon-H1 has both mixers in every layer.
  void read_mamba2() {
    put_state_space({.heads = "mamba_n_heads",
                     .head_dim = "mamba_d_head",
                     .state = "mamba_d_state",
                     .groups = "mamba_n_groups",
                     .convolution = "mamba_d_conv",
                     .chunk = "mamba_chunk_size"},
                    Recurrence::mamba2);
    file_.first_of({"mamba_d_ssm"});  // heads times head_dim
    const std::set<std::int64_t> attending = listed_layers({"attn_layer_indices"}).value_or(std::set<std::int64_t>{});
    const std::vector<std::string> words = file_.words({"layers_block_type"});
    const std::vector<std::string>& types = types_.empty() ? words : types_;
    const bool has_list = !types.empty() && is_of_all_layers(types, "layer_types");
    for (std::size_t layer = 0; layer < size(); ++layer) {
      const bool is_listed = attending.count(static_cast<std::int64_t>(layer)) > 0;
      const bool attends = has_list ? types[layer] == "attention" : is_listed;
      const bool has_both = type_ == "falcon_h1";
      put_mixer(kinds_[layer], attends || has_both, !attends || has_both);
    }
  }

  void require_known_types() {
    for (const std::string& type : types_) {
      if (type != "full_attention" && type != "sliding_attention" && type != "chunked_attention" &&
          !(model_.state_space && (type == "linear_attention" || type == "mamba" || type == "attention"))) {
        file_.mistake(fmt::format("{} has a layer of type {}, which is not supported; choose another model",
                                  file_.in_file("layer_types"), in_quotes(type)));
        return;
      }
    }
  }

  // Experts by layer.

  void keep_experts(const std::vector<bool>& has_experts) {
    for (std::size_t layer = 0; layer < size(); ++layer) {
      if (kinds_[layer].mlp == MlpKind::mixture && !has_experts[layer]) {
        kinds_[layer].mlp = MlpKind::dense;
      }
    }
  }

  void read_experts() {
    const auto dense_layers = listed_layers({"mlp_only_layers"});
    const std::vector<std::string> words = file_.words({"mlp_layer_types"});
    const auto frequencies = file_.optional_counts({"moe_layer_freq"}, {0, layer_range.most});
    const auto listed = listed_layers({"moe_layers", "moe_layers_enum"});
    const std::int64_t first =
        file_
            .optional_count({"first_k_dense_replace", "num_dense_layers", "n_dense_layers", "moe_layer_start_index"},
                            {0, layer_range.most})
            .value_or(0);
    const std::int64_t last = file_.optional_count({"moe_layer_end_index"}, {-1, layer_range.most}).value_or(-1);
    const std::int64_t every =
        frequencies ? 1 : file_.optional_count({"moe_layer_freq"}, {1, layer_range.most}).value_or(1);
    const std::int64_t step =
        file_.optional_count({"decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval"}, layer_range)
            .value_or(1);
    if (!model_.experts) {
      return;
    }
    std::vector<bool> has_experts(size());
    const bool has_words = !words.empty() && is_of_all_layers(words, "mlp_layer_types");
    const bool has_frequencies = frequencies && is_of_all_layers(*frequencies, "moe_layer_freq");
    for (std::size_t i = 0; i < size(); ++i) {
      const auto layer = static_cast<std::int64_t>(i);
      const bool is_dense = dense_layers && dense_layers->count(layer) > 0;
      const bool is_listed = !listed || listed->count(layer) > 0;
      has_experts[i] = has_words         ? words[i] != "dense"
                       : has_frequencies ? (*frequencies)[i] != 0
                                         : layer >= first && (last < 0 || layer <= last) && layer % every == 0 &&
                                               (layer + 1) % step == 0 && !is_dense && is_listed;
    }
    if (file_.is_right() && std::none_of(has_experts.begin(), has_experts.end(), [](bool has) { return has; })) {
      file_.mistake(fmt::format("none of the {} layers has experts; correct which layers are dense", size()));
    }
    keep_experts(has_experts);
  }

  /// Reads widths that differ from layer to layer.
  void read_widths() {
    const auto widths = file_.optional_counts({"intermediate_size"}, model_size_range);
    if (widths && !is_of_all_layers(*widths, "intermediate_size")) {
      model_.ffn = model_size_range.least;  // The mistake is noted, and no reader should expect a single number.
    } else if (widths) {
      std::map<std::int64_t, int> counts;
      for (std::size_t layer = 0; layer < size(); ++layer) {
        kinds_[layer].ffn = (*widths)[layer];
        ++counts[(*widths)[layer]];
      }
      model_.ffn = most_common(counts, model_.ffn);
    }
    // DeciLM may have both keys; its code reads only the list.
    const HfKeys head_keys{"num_key_value_heads_per_layer", "num_key_value_heads"};
    const auto heads = file_.optional_counts(head_keys, head_range);
    if (const std::string key = heads ? file_.first_of(head_keys)->key : ""; heads && is_of_all_layers(*heads, key)) {
      std::map<std::int64_t, int> counts;
      for (std::size_t layer = 0; layer < size(); ++layer) {
        if (model_.heads % (*heads)[layer] != 0) {
          file_.mistake(fmt::format("{} heads cannot share {} key-value heads evenly; correct {}", model_.heads,
                                    (*heads)[layer], file_.in_file(key)));
          return;
        }
        kinds_[layer].kv_heads = (*heads)[layer];
        ++counts[(*heads)[layer]];
      }
      model_.kv_heads = most_common(counts, model_.kv_heads);
    }
    forget_common_widths();
  }

  // Windows.

  /// Numbers that decide which layers have a window.
  struct WindowedLayers {
    std::int64_t full_every = 1;  ///< With HfWindows::but_every, the last of this many layers has none.
    std::int64_t first = 0;       ///< With HfWindows::all, layers before this one have none.
  };
  /// Returns true if a layer's attention has the window when no list of layers decides.
  [[nodiscard]] bool has_window(std::size_t layer, const WindowedLayers& windowed) const {
    switch (family_.windows) {
      case HfWindows::all: return static_cast<std::int64_t>(layer) >= windowed.first;
      case HfWindows::alternate: return layer % 2 == 0;
      case HfWindows::but_every: return (static_cast<std::int64_t>(layer) + 1) % windowed.full_every != 0;
    }
    return false;
  }

  /// Returns the n for which the last of every n layers has no window. EXAONE 4 writes the group as letters: "LLLG".
  std::int64_t full_every() {
    const HfKeys keys{"sliding_window_pattern", "no_rope_layer_interval", "_sliding_window_pattern"};
    if (const auto field = file_.first_of(keys); field && field->value->is_string()) {
      return std::max<std::int64_t>(1, static_cast<std::int64_t>(field->value->get<std::string>().size()));
    }
    return file_.optional_count(keys, layer_range).value_or(std::max<std::int64_t>(1, family_.full_every));
  }

  void read_windows() {
    const Range<std::int64_t> range{0, std::int64_t{1} << 40};
    const auto chunk = file_.optional_count({"attention_chunk_size"}, range);
    const auto sliding = file_.optional_count({"sliding_window", "sliding_window_size", "window_size"}, range);
    const bool is_off = !file_.optional_flag({"use_sliding_window"}).value_or(true);
    const std::int64_t first_windowed = file_.optional_count({"max_window_layers"}, {0, layer_range.most}).value_or(0);
    const std::int64_t every = full_every();
    const auto without_rope = file_.optional_counts({"no_rope_layers"}, {0, 1});  // Llama 4: 0 marks full attention
    const std::int64_t width = chunk && !sliding ? *chunk : sliding.value_or(0);
    if (width == 0 || is_off || !file_.is_right()) {
      return;
    }
    const auto pattern = file_.optional_counts({"hybrid_layer_pattern"}, {0, 1});  // MiMo-V2: 1 marks a window
    const bool has_pattern = pattern && is_of_all_layers(*pattern, "hybrid_layer_pattern");
    const std::int64_t windowed_kv_heads =
        file_.optional_count({"swa_num_key_value_heads"}, head_range).value_or(model_.kv_heads);
    // Marks these keys as used; windowed layers are priced with the query heads and head sizes of the others.
    file_.first_of({"swa_num_attention_heads", "swa_head_dim", "swa_v_head_dim"});
    const bool has_types = !types_.empty() && is_of_all_layers(types_, "layer_types");
    const bool has_list = without_rope && chunk && without_rope->size() == size();
    for (std::size_t layer = 0; layer < size(); ++layer) {
      LayerKind& kind = kinds_[layer];
      const bool is_windowed = has_pattern ? (*pattern)[layer] != 0
                               : has_types
                                   ? types_[layer] == "sliding_attention" || types_[layer] == "chunked_attention"
                               : has_list ? (*without_rope)[layer] != 0
                                          : has_window(layer, {.full_every = every, .first = first_windowed});
      if (kind.attention && is_windowed) {
        kind.window = std::min(width, model_size_range.most);
        kind.chunked = chunk && !sliding;
        kind.kv_heads = windowed_kv_heads == model_.kv_heads || model_.heads % windowed_kv_heads != 0
                            ? kind.kv_heads
                            : windowed_kv_heads;
      }
    }
  }

  HfFile& file_;
  const std::string& type_;
  const HfFamily& family_;
  Transformer& model_;
  std::vector<LayerKind> kinds_;
  std::vector<std::string> types_;
};

}  // namespace

void read_hf_layers(HfFile& file, const std::string& type, const HfFamily& family, Transformer& model) {
  Layers(file, type, family, model).read();
}

}  // namespace commfuse
