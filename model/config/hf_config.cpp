// SPDX-License-Identifier: Apache-2.0
#include "model/config/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "model/config/load_model.h"
#include "model/config_error.h"
#include "model/json_budget.h"
#include "model/text/files.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

using Json = nlohmann::json;
using Words = std::initializer_list<std::string_view>;

constexpr std::size_t deepest_nesting = 32;

/// How the architectures differ in what their config.json leaves out.
enum class Mlp : std::uint8_t { gated, plain };

struct Family {
  std::string_view model_type;
  Mlp mlp;
  bool ffn_is_four_hidden = false;  ///< Where the file names no width of the MLP.
};

// Source: configuration_*.py and modeling_*.py of huggingface/transformers.
constexpr std::array families{
    Family{"llama", Mlp::gated},       Family{"mistral", Mlp::gated},       Family{"qwen2", Mlp::gated},
    Family{"qwen2_vl", Mlp::gated},    Family{"qwen2_5_vl", Mlp::gated},    Family{"qwen2_5_vl_text", Mlp::gated},
    Family{"qwen3", Mlp::gated},       Family{"gemma", Mlp::gated},         Family{"gemma2", Mlp::gated},
    Family{"gemma3", Mlp::gated},      Family{"gemma3_text", Mlp::gated},   Family{"phi3", Mlp::gated},
    Family{"cohere", Mlp::gated},      Family{"cohere2", Mlp::gated},       Family{"olmo", Mlp::gated},
    Family{"olmo2", Mlp::gated},       Family{"granite", Mlp::gated},       Family{"stablelm", Mlp::gated},
    Family{"internlm2", Mlp::gated},   Family{"smollm3", Mlp::gated},       Family{"mixtral", Mlp::gated},
    Family{"qwen2_moe", Mlp::gated},   Family{"qwen3_moe", Mlp::gated},     Family{"deepseek_v2", Mlp::gated},
    Family{"deepseek_v3", Mlp::gated}, Family{"olmoe", Mlp::gated},         Family{"granitemoe", Mlp::gated},
    Family{"glm4_moe", Mlp::gated},    Family{"gpt_oss", Mlp::gated},       Family{"gpt2", Mlp::plain, true},
    Family{"gptj", Mlp::plain, true},  Family{"codegen", Mlp::plain, true}, Family{"gpt_bigcode", Mlp::plain, true},
    Family{"bloom", Mlp::plain, true}, Family{"falcon", Mlp::plain, true},  Family{"opt", Mlp::plain},
    Family{"gpt_neox", Mlp::plain},    Family{"phi", Mlp::plain},           Family{"starcoder2", Mlp::plain},
    Family{"nemotron", Mlp::plain},    Family{"nemotron_h", Mlp::plain},    Family{"bamba", Mlp::gated},
};

[[noreturn]] void refuse(const std::string& path, std::string_view message) {
  throw ConfigError(fmt::format("{}: {}", path, message));
}

/// Refuses what the library would take without a word: deep nesting, and the last of two equal keys. It listens to a
/// parser of its own: a callback of the parser that keeps all makes that look at every list again for each of its
/// items.
class Guard {
 public:
  explicit Guard(const std::string& path) : path_(path) {}

  bool null() { return true; }
  bool boolean(bool /*is*/) { return true; }
  bool number_integer(Json::number_integer_t /*is*/) { return true; }
  bool number_unsigned(Json::number_unsigned_t /*is*/) { return true; }
  bool number_float(Json::number_float_t /*is*/, const std::string& /*text*/) { return true; }
  bool string(std::string& /*text*/) { return true; }
  bool binary(Json::binary_t& /*is*/) { return true; }
  bool start_object(std::size_t /*size*/) { return begin(); }
  bool start_array(std::size_t /*size*/) { return begin(); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool key(std::string& text) {
    if (!seen_[depth_ - 1].insert(text).second) {
      refuse(path_, fmt::format("key {} is given twice; keep one of them", in_quotes(text)));
    }
    return true;
  }
  /// Who parses it for good says it better.
  bool parse_error(std::size_t /*byte*/, const std::string& /*token*/, const Json::exception& /*error*/) {
    return false;
  }

 private:
  bool begin() {
    if (depth_ >= deepest_nesting) {
      refuse(path_, fmt::format("more than {} levels of nesting; give a config.json of a model", deepest_nesting));
    }
    seen_[depth_++].clear();
    return true;
  }
  bool end() {
    --depth_;
    return true;
  }

  const std::string& path_;
  std::array<std::set<std::string>, deepest_nesting> seen_;
  std::size_t depth_ = 0;
};

Json parse(const std::string& path) {
  const std::string text = read_small_file(path);
  Json json;
  try {
    Guard guard(path);
    Json::sax_parse(text, &guard);
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: not valid JSON; correct it there, or fetch the file again", path,
                                  line_and_column(text, error.byte)));
  } catch (const Json::exception&) {  // A number that fits no double.
    refuse(path, "a number is out of range; correct it, or fetch the file again");
  }
  if (!json.is_object()) {
    refuse(path, "the top of the file is not an object; give a config.json of a model");
  }
  return json;
}

std::string_view kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::string: return "a text";
    case Json::value_t::boolean: return "true or false";
    case Json::value_t::array: return "a list";
    case Json::value_t::object: return "an object";
    default: return "a number";
  }
}

/// The fields of one config.json; mistakes are collected, and a field in doubt reads as a harmless value.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), top_(parse(path)), shape_(&top_) {
    const auto text = top_.find("text_config");
    if (text != top_.end() && text->is_object() && !first_of({"hidden_size", "n_embd", "d_model", "n_embed"})) {
      shape_ = &*text;
    }
  }

  HfModel read() {
    refuse_what_is_no_decoder();
    const std::string type = model_type();
    Transformer model;
    model.name = name(type);
    model.layers = count({"num_hidden_layers", "n_layer", "n_layers"}, layer_range);
    model.hidden = count({"hidden_size", "n_embd", "d_model", "n_embed"}, model_size_range);
    model.heads = count({"num_attention_heads", "n_head", "n_heads"}, head_range);
    model.kv_heads = kv_heads(model.heads);
    model.head_dim = head_dim(model);
    model.vocab = count({"vocab_size"}, vocab_range);
    const Family family = family_of(type);
    model.gated_mlp = family.mlp == Mlp::gated;
    model.ffn = ffn(family, model.hidden);
    if (has_experts()) {
      model.experts = experts(model.layers);
    }
    model.latent = latent();
    read_state_space(type, model);
    if (!model.state_space) {
      doubt_layers();
    }
    finish();
    return {std::move(model), std::move(doubts_)};
  }

 private:
  struct Field {
    std::string_view key;
    const Json* value;
  };

  /// The first of these keys that is there and not null.
  [[nodiscard]] std::optional<Field> first_of(Words keys) const {
    for (const std::string_view key : keys) {
      const auto found = shape_->find(key);
      if (found != shape_->end() && !found->is_null()) {
        return Field{key, &*found};
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::string in_file(std::string_view key) const {
    return shape_ == &top_ ? fmt::format("'{}'", key) : fmt::format("'text_config.{}'", key);
  }

  void mistake(std::string_view message) { mistakes_.push_back(fmt::format("{}: {}", path_, message)); }
  void doubt(std::string_view message) { doubts_.push_back(fmt::format("{}: {}", path_, message)); }

  std::optional<std::int64_t> optional_count(Words keys, Range<std::int64_t> range) {
    const std::optional<Field> field = first_of(keys);
    if (!field) {
      return std::nullopt;
    }
    if (!field->value->is_number_integer()) {
      const std::string text = field->value->is_number() || field->value->is_string()
                                   ? field->value->dump()
                                   : std::string(kind_of(*field->value));
      mistake(fmt::format("{} is {}; write a whole number", in_file(field->key), in_plain(text)));
      return range.least;
    }
    const bool is_huge = field->value->is_number_unsigned() &&
                         field->value->get<std::uint64_t>() > static_cast<std::uint64_t>(range.most);
    const std::int64_t value = is_huge ? range.most : field->value->get<std::int64_t>();
    if (is_huge || value < range.least || value > range.most) {
      mistake(
          fmt::format("{} is {}; choose {} to {}", in_file(field->key), field->value->dump(), range.least, range.most));
      return range.least;
    }
    return value;
  }

  std::int64_t count(Words keys, Range<std::int64_t> range) {
    if (const std::optional<std::int64_t> value = optional_count(keys, range)) {
      return *value;
    }
    mistake(fmt::format("{} is missing; add it, or give a config.json of a decoder", in_file(*keys.begin())));
    return range.least;
  }

  [[nodiscard]] bool flag(std::string_view key) const {
    const auto found = shape_->find(key);
    return found != shape_->end() && found->is_boolean() && found->get<bool>();
  }

  void refuse_what_is_no_decoder() const {
    if (flag("is_encoder_decoder")) {
      refuse(path_, fmt::format("{} is true: only decoders are supported; choose a decoder-only model",
                                in_file("is_encoder_decoder")));
    }
  }

  [[nodiscard]] std::optional<Field> expert_count() const {
    return first_of({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"});
  }

  /// One expert is a plain MLP.
  [[nodiscard]] bool has_experts() const {
    const std::optional<Field> field = expert_count();
    return field && !(field->value->is_number_integer() && field->value->get<std::int64_t>() <= 1);
  }

  /// Requires has_experts(). Their widths stand in moe_intermediate_size, or in Mixtral's way in intermediate_size.
  Experts experts(std::int64_t layers) {
    Experts experts;
    experts.count = count({expert_count()->key}, expert_range);
    experts.active = count({"num_experts_per_tok", "num_experts_per_token", "experts_per_token"}, expert_range);
    experts.ffn = count({"moe_intermediate_size", "intermediate_size"}, model_size_range);
    experts.shared = shared_experts(experts.ffn);
    experts.dense_layers = dense_layers();
    if (mistakes_.empty() && experts.active > experts.count) {
      mistake(fmt::format("a token cannot go to {} of {} experts; correct num_experts_per_tok", experts.active,
                          experts.count));
    }
    if (mistakes_.empty() && experts.dense_layers >= layers) {
      mistake(fmt::format("{} dense layers leave none of {} to the experts; correct the first of them",
                          experts.dense_layers, layers));
    }
    return experts;
  }

  /// Counted, or as one that is as wide as some.
  std::int64_t shared_experts(std::int64_t ffn) {
    const Range<std::int64_t> range{0, expert_range.most};
    if (const auto width = optional_count({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"},
                                          {0, model_size_range.most})) {
      if (mistakes_.empty() && *width % ffn != 0) {
        mistake(fmt::format("{} is {}, no multiple of an expert's {}; write a YAML model for it",
                            in_file("shared_expert_intermediate_size"), *width, ffn));
      }
      return *width / ffn;
    }
    return optional_count({"n_shared_experts"}, range).value_or(0);
  }

  /// The first so many. A mistake where dense layers stand between others.
  std::int64_t dense_layers() {
    for (const std::string_view key : {"moe_layer_freq", "decoder_sparse_step"}) {
      if (optional_count({key}, {1, layer_range.most}).value_or(1) != 1) {
        mistake(
            fmt::format("{} is not 1: dense layers between layers of experts are not supported; choose another "
                        "model",
                        in_file(key)));
      }
    }
    std::int64_t first = optional_count({"first_k_dense_replace"}, {0, layer_range.most}).value_or(0);
    const std::optional<Field> dense = first_of({"mlp_only_layers"});
    if (dense && dense->value->is_array()) {
      for (std::size_t i = 0; i < dense->value->size(); ++i) {
        if ((*dense->value)[i] != Json(i)) {
          mistake(fmt::format("{} are not the first ones; choose another model", in_file("mlp_only_layers")));
          break;
        }
      }
      first = std::max(first, static_cast<std::int64_t>(dense->value->size()));
    }
    return first;
  }

  /// As DeepSeek-V2 and V3 have it.
  std::optional<LatentAttention> latent() {
    if (!first_of({"kv_lora_rank"})) {
      return std::nullopt;
    }
    return LatentAttention{.query_rank = count({"q_lora_rank"}, model_size_range),
                           .key_value_rank = count({"kv_lora_rank"}, model_size_range),
                           .position_dim = count({"qk_rope_head_dim"}, head_range),
                           .value_dim = count({"v_head_dim"}, head_range)};
  }

  /// Nemotron-H has one part a layer and a letter for each; Bamba an MLP behind every attention and every state space,
  /// and a list of the layers with attention. Other hybrids have parts that we do not know: Mamba of the first kind,
  /// layers that share weights, both parts side by side.
  void read_state_space(const std::string& type, Transformer& model) {
    const std::optional<Field> letters = first_of({"hybrid_override_pattern"});
    if (type == "nemotron_h" && letters && letters->value->is_string()) {
      model.state_space = state_space({.heads = "mamba_num_heads",
                                       .head_dim = "mamba_head_dim",
                                       .state = "ssm_state_size",
                                       .groups = "n_groups",
                                       .convolution = "conv_kernel",
                                       .chunk = "chunk_size"});
      model.state_space->pattern = letters->value->get<std::string>();
      require_pattern(model);
    } else if (type == "bamba") {
      model.state_space = state_space({.heads = "mamba_n_heads",
                                       .head_dim = "mamba_d_head",
                                       .state = "mamba_d_state",
                                       .groups = "mamba_n_groups",
                                       .convolution = "mamba_d_conv",
                                       .chunk = "mamba_chunk_size"});
      model.state_space->pattern = pattern_of_indices(model.layers);
      model.layers = std::ssize(model.state_space->pattern);
    } else if (const auto field = first_of({"ssm_state_size", "mamba_d_state", "state_size", "mamba_num_heads"})) {
      mistake(
          fmt::format("{} belongs to a state space of a kind that is not supported; choose a nemotron_h with a "
                      "hybrid_override_pattern, or a bamba",
                      in_file(field->key)));
    }
  }

  struct StateSpaceKeys {
    std::string_view heads, head_dim, state, groups, convolution, chunk;
  };
  StateSpace state_space(const StateSpaceKeys& keys) {
    StateSpace space;
    space.head_dim = count({keys.head_dim}, head_range);
    space.inner = count({keys.heads}, head_range) * space.head_dim;
    space.state = count({keys.state}, head_range);
    space.groups = count({keys.groups}, head_range);
    space.convolution = optional_count({keys.convolution}, head_range).value_or(space.convolution);
    space.chunk = optional_count({keys.chunk}, model_size_range).value_or(space.chunk);
    if (mistakes_.empty() && space.heads() % space.groups != 0) {
      mistake(fmt::format("{} state-space heads do not split into {} groups; correct {}", space.heads(), space.groups,
                          keys.groups));
    }
    return space;
  }

  void require_pattern(const Transformer& model) {
    const std::string& pattern = model.state_space->pattern;
    const std::string known = model.experts ? "M*-E" : "M*-";
    const std::size_t other = pattern.find_first_not_of(known);
    if (other != std::string::npos) {
      mistake(fmt::format("{} has the letter {}, and layers are of {}; choose another model",
                          in_file("hybrid_override_pattern"), in_quotes(pattern.substr(other, 1)), known));
    } else if (mistakes_.empty() && std::ssize(pattern) != model.layers) {
      mistake(fmt::format("{} has {} letters for {} layers; correct num_hidden_layers",
                          in_file("hybrid_override_pattern"), pattern.size(), model.layers));
    }
  }

  /// A mixer and an MLP for every layer of the file.
  std::string pattern_of_indices(std::int64_t layers) {
    std::string pattern;
    const std::optional<Field> indices = first_of({"attn_layer_indices"});
    for (std::int64_t layer = 0; mistakes_.empty() && layer < layers; ++layer) {
      const bool attends =
          indices && indices->value->is_array() &&
          std::find(indices->value->begin(), indices->value->end(), Json(layer)) != indices->value->end();
      pattern += attends ? StateSpace::attention : StateSpace::mamba;
      pattern += StateSpace::mlp;
    }
    return pattern;
  }

  std::string model_type() {
    const std::optional<Field> field = first_of({"model_type"});
    if (field && field->value->is_string()) {
      return field->value->get<std::string>();
    }
    const auto top = top_.find("model_type");
    return top != top_.end() && top->is_string() ? top->get<std::string>() : "";
  }

  /// Of the folder, as in llama-3.1-8b/config.json; without one, the model_type.
  [[nodiscard]] std::string name(const std::string& type) const {
    const std::filesystem::path path(path_);
    if (path.filename() != "config.json") {
      return path.stem().string();
    }
    const std::string folder = path.parent_path().filename().string();
    const bool says_nothing = folder.empty() || folder == "." || folder == "..";
    return !says_nothing ? folder : type.empty() || has_control_character(type) ? "model" : type;
  }

  std::int64_t kv_heads(std::int64_t heads) {
    // Falcon and BigCode share one head unless the file says otherwise; `multi_query` is no longer meant in the newer
    // architecture of Falcon, whose count is num_kv_heads.
    const bool is_multi_query = flag("multi_query") && !flag("new_decoder_architecture");
    if (is_multi_query) {
      return 1;
    }
    const std::int64_t kv =
        optional_count({"num_key_value_heads", "num_kv_heads", "n_head_kv"}, head_range).value_or(heads);
    if (mistakes_.empty() && heads % kv != 0) {
      mistake(fmt::format("{} heads cannot share {} key-value heads evenly; correct num_key_value_heads", heads, kv));
    }
    return kv;
  }

  std::int64_t head_dim(const Transformer& model) {
    if (const std::optional<std::int64_t> given = optional_count({"qk_nope_head_dim", "head_dim"}, head_range)) {
      return *given;
    }
    if (mistakes_.empty() && model.hidden % model.heads != 0) {
      mistake(fmt::format("a hidden size of {} does not split into {} heads; add head_dim", model.hidden, model.heads));
    }
    return std::max<std::int64_t>(1, model.hidden / model.heads);
  }

  /// An unknown model_type is taken for what its activation suggests.
  Family family_of(const std::string& type) {
    const auto* const known =
        std::find_if(families.begin(), families.end(), [&](const Family& family) { return family.model_type == type; });
    if (known != families.end()) {
      return *known;
    }
    const std::optional<Field> activation = first_of({"hidden_act", "hidden_activation", "activation_function"});
    const bool is_silu =
        activation && activation->value->is_string() && (*activation->value == "silu" || *activation->value == "swish");
    doubt(fmt::format("{}; taken for a decoder with {} MLP, so check the shape",
                      type.empty() ? "no model_type" : fmt::format("unknown model_type {}", in_quotes(type)),
                      is_silu ? "a gated" : "an ungated"));
    return {"", is_silu ? Mlp::gated : Mlp::plain};
  }

  std::int64_t ffn(const Family& family, std::int64_t hidden) {
    const Words keys{"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"};
    if (family.ffn_is_four_hidden) {
      return optional_count(keys, model_size_range).value_or(4 * hidden);
    }
    return count(keys, model_size_range);
  }

  /// Layers without attention have another cost than the one we know.
  void doubt_layers() {
    const std::optional<Field> types = first_of({"layer_types"});
    if (!types || !types->value->is_array()) {
      return;
    }
    for (const Json& type : *types->value) {
      if (type.is_string() && type != "full_attention" && type != "sliding_attention") {
        doubt(fmt::format("layers of type {} are taken for full attention, so check the shape",
                          in_quotes(type.get<std::string>())));
        return;
      }
    }
  }

  void finish() const {
    if (!mistakes_.empty()) {
      throw ConfigError(fmt::format("{}", fmt::join(mistakes_, "\n")));
    }
  }

  /// A stranger's text, fit for one line.
  static std::string in_plain(const std::string& text) {
    const std::string quoted = in_quotes(text);
    return quoted.substr(1, quoted.size() - 2);
  }

  std::string path_;
  Json top_;
  const Json* shape_;  ///< top_ or its text_config.
  std::vector<std::string> mistakes_;
  std::vector<std::string> doubts_;
};

}  // namespace

HfModel read_hf_config(const std::filesystem::path& path) { return Reader(path.string()).read(); }

}  // namespace commfuse
