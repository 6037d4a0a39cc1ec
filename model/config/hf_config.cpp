// SPDX-License-Identifier: Apache-2.0
#include "model/config/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "model/config/hf_families.h"
#include "model/config/hf_file.h"
#include "model/config/hf_keys.h"
#include "model/config/hf_layers.h"
#include "model/config/hf_quantization.h"
#include "model/config/load_model.h"
#include "model/text/counted.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"
#include "model/workload/layers.h"

namespace commfuse {

namespace {

/// Reads the language model of one config.json, field by field.
class Reader {
 public:
  explicit Reader(const std::string& path) : file_(path), type_(model_type()), family_(family_of_type()) {}

  HfModel read() {
    require_decoder();
    Transformer model;
    model.name = name();
    model.layers = file_.count({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, layer_range);
    model.hidden = file_.count({"hidden_size", "n_embd", "d_model", "n_embed"}, model_size_range);
    model.heads = count_or({"num_attention_heads", "n_head", "n_heads"}, head_range, family_.heads);
    model.kv_heads = kv_heads(model.heads);
    model.head_dim = head_dim(model);
    model.vocab = count_or({"vocab_size", "padded_vocab_size"}, vocab_range, family_.vocab);
    if (!file_.has("kv_lora_rank")) {  // otherwise v_head_dim belongs to latent attention
      model.value_head_dim = file_.optional_count({"v_head_dim"}, head_range).value_or(0);
    }
    model.gated_mlp = gated_mlp();
    model.latent = latent();
    read_parameters(model);
    if (has_experts()) {
      model.experts = experts();
    }
    read_hf_layers(file_, type_, family_, model);
    model.ffn = ffn(model);
    model.weights = read_hf_quantization(file_, model);
    file_.finish();
    report_weight_storage(model);
    report_ignored_parts();
    std::vector<std::string> keys = unused();
    return {.model = std::move(model), .doubts = doubts_, .notes = file_.notes(), .unused = std::move(keys)};
  }

 private:
  std::string model_type() {
    const std::string of_decoder = file_.word({"model_type"});
    const nlohmann::json* top = file_.at_top("model_type");
    return !of_decoder.empty() ? of_decoder : top != nullptr && top->is_string() ? top->get<std::string>() : "";
  }

  /// Returns the known family; an unknown type gets the defaults that decoders have had since 2023.
  HfFamily family_of_type() {
    if (const std::optional<HfFamily> known = hf_family(type_)) {
      return *known;
    }
    is_known_ = false;
    return {};
  }

  void doubt(std::string_view message) { doubts_.push_back(fmt::format("{}: {}", file_.path(), message)); }

  void require_decoder() {
    if (file_.flag({"is_encoder_decoder"})) {
      file_.mistake(fmt::format("{} is true: only decoders are supported; choose a decoder-only model",
                                file_.in_file("is_encoder_decoder")));
      file_.finish();
    }
  }

  /// Returns the name of the file, or for config.json the name of its folder, as in llama-3.1-8b/config.json; if the
  /// path names no folder, the model_type or else "model".
  [[nodiscard]] std::string name() const {
    const std::filesystem::path path(file_.path());
    if (path.filename() != "config.json") {
      std::string stem = path.stem().string();
      constexpr std::string_view end = "_config";  // suffix that collections of such files use
      return stem.ends_with(end) && stem.size() > end.size() ? stem.substr(0, stem.size() - end.size()) : stem;
    }
    std::string folder = path.parent_path().filename().string();
    // The Hugging Face cache has folders models--organization--name/snapshots/revision/config.json.
    const std::filesystem::path snapshots = path.parent_path().parent_path();
    const std::string repository = snapshots.parent_path().filename().string();
    if (snapshots.filename() == "snapshots" && repository.starts_with("models--")) {
      folder = repository.substr(repository.rfind("--") + 2);
    }
    const bool is_unnamed = folder.empty() || folder == "." || folder == "..";
    return !is_unnamed ? folder : type_.empty() || has_control_character(type_) ? "model" : type_;
  }

  std::int64_t count_or(HfKeys keys, Range<std::int64_t> range, std::int64_t fallback) {
    return fallback > 0 ? file_.optional_count(keys, range).value_or(fallback) : file_.count(keys, range);
  }

  std::int64_t kv_heads(std::int64_t heads) {
    // Falcon and BigCode share one head unless the file states otherwise. The newer architecture of Falcon ignores
    // `multi_query` and gives the count in num_kv_heads.
    const bool is_multi_query =
        file_.optional_flag({"multi_query"}).value_or(family_.multi_query) && !file_.flag({"new_decoder_architecture"});
    if (is_multi_query) {
      return 1;
    }
    if (file_.optional_counts({"num_key_value_heads"}, {0, head_range.most})) {
      return heads;  // hf_layers reads them layer by layer
    }
    const std::int64_t kv = file_
                                .optional_count({"num_key_value_heads", "num_kv_heads", "n_head_kv",
                                                 "multi_query_group_num", "num_query_groups"},
                                                head_range)
                                .value_or(family_.kv_heads > 0 ? family_.kv_heads : heads);
    if (file_.is_right() && heads % kv != 0) {
      file_.mistake(
          fmt::format("{} heads cannot share {} key-value heads evenly; correct num_key_value_heads", heads, kv));
    }
    return kv;
  }

  std::int64_t head_dim(const Transformer& model) {
    if (const std::optional<std::int64_t> given = file_.optional_count(
            {"qk_nope_head_dim", "head_dim", "attention_head_dim", "kv_channels", "head_size"}, head_range)) {
      return *given;
    }
    if (family_.head_dim > 0) {
      return family_.head_dim;
    }
    if (file_.is_right() && model.hidden % model.heads != 0) {
      file_.mistake(
          fmt::format("hidden size {} is not divisible by {} heads; add head_dim", model.hidden, model.heads));
    }
    return std::max<std::int64_t>(1, model.hidden / model.heads);
  }

  /// Returns true if the MLP is gated, so that it has two up-projections instead of one.
  bool gated_mlp() {
    const std::string activation = file_.word({"mlp_hidden_act", "hidden_act", "hidden_activation"});
    const bool is_squared = activation == "relu2" || activation == "relu_squared" || activation == "xielu";
    if (const std::optional<bool> stated = file_.optional_flag({"gated_mlp", "mlp_gated"})) {
      return *stated;
    }
    const bool gated = family_.gated_mlp && !is_squared;
    if (!is_known_) {
      doubt(fmt::format("{}; treated as a decoder with {} MLP, so check the shape",
                        type_.empty() ? "no model_type" : fmt::format("unknown model_type {}", in_quotes(type_)),
                        gated ? "a gated" : "an ungated"));
    }
    return gated;
  }

  /// Reads latent attention as in DeepSeek-V2 and V3; DeepSeek-V3.2 and GLM-5 add an indexer.
  std::optional<LatentAttention> latent() {
    if (!file_.has("kv_lora_rank")) {
      return std::nullopt;
    }
    LatentAttention latent{.query_rank = file_.optional_count({"q_lora_rank"}, model_size_range).value_or(0),
                           .key_value_rank = file_.count({"kv_lora_rank"}, model_size_range),
                           .position_dim = file_.count({"qk_rope_head_dim"}, head_range),
                           .value_dim = file_.count({"v_head_dim"}, head_range)};
    file_.first_of({"qk_head_dim", "head_dim"});  // marks as used keys that repeat a size: of both parts, or of one
    if (file_.has("index_topk")) {
      latent.indexer = Indexer{.heads = file_.count({"index_n_heads"}, head_range),
                               .head_dim = file_.count({"index_head_dim"}, head_range),
                               .keys = file_.count({"index_topk"}, model_size_range)};
      for (const std::string& type : file_.words({"indexer_types"})) {
        if (type != "full") {
          file_.note(fmt::format("an indexer of type {} is treated as a full one", in_quotes(type)));
          break;
        }
      }
    }
    return latent;
  }

  void read_parameters(Transformer& model) {
    const nlohmann::json* tied = file_.at_top("tie_word_embeddings");
    const std::optional<bool> inside = file_.optional_flag({"tie_word_embeddings"});
    model.tied_embeddings = inside ? *inside : tied != nullptr && tied->is_boolean() ? tied->get<bool>() : family_.tied;
    model.norm = file_.optional_flag({"rms_norm"}).value_or(family_.norm == Norm::rms) ? Norm::rms : Norm::layer;
    const std::optional<bool> biases = file_.optional_flag({"use_bias", "bias", "add_bias_linear"});
    const bool mlp = file_.flag({"mlp_bias"});
    const std::optional<bool> qkv = file_.optional_flag({"attention_bias", "qkv_bias", "use_qkv_bias", "add_qkv_bias"});
    model.biases = biases.value_or(family_.biases) || (mlp && qkv.value_or(false));
    model.qkv_biases = qkv.value_or(family_.qkv_biases);
    if (family_.learned_positions) {
      constexpr std::int64_t offset_of_opt = 2;
      model.positions = file_.optional_count({"n_positions", "max_position_embeddings"}, model_size_range).value_or(0) +
                        (type_ == "opt" ? offset_of_opt : 0);
    }
    model.qk_norm = qk_norm();
    model.sinks = family_.sinks || file_.flag({"add_swa_attention_sink_bias", "add_full_attention_sink_bias"});
    model.gated_attention =
        file_.optional_flag({"attn_output_gate", "use_gated_attention"}).value_or(family_.gated_attention);
  }

  QkNorm qk_norm() {
    const std::string kind = file_.word({"qk_norm_type"});
    const std::optional<bool> uses =
        file_.optional_flag({"use_qk_norm", "qk_norm", "use_qk_layernorm", "qk_layernorm"});
    if (uses && !*uses) {
      return QkNorm::none;
    }
    const QkNorm norm = kind == "per_layer" ? QkNorm::whole : kind == "per_head" ? QkNorm::head : family_.qk_norm;
    return uses && *uses && norm == QkNorm::none && type_ != "llama4_text" ? QkNorm::head : norm;
  }

  [[nodiscard]] std::optional<HfFile::Field> expert_count() {
    return file_.first_of({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts",
                           "num_routed_experts", "num_moe_experts"});
  }

  /// Returns false for no expert and for a single one, which is a plain MLP; experts() checks any other count.
  [[nodiscard]] bool has_experts() {
    const std::optional<HfFile::Field> field = expert_count();
    return field && *field->value != 0 && *field->value != 1;
  }

  /// Returns a number, or the first of a list: models with vision have experts for each modality.
  std::optional<std::int64_t> first_count(HfKeys keys, Range<std::int64_t> range) {
    const std::optional<std::vector<std::int64_t>> list = file_.optional_counts(keys, range);
    if (!list) {
      return file_.optional_count(keys, range);
    }
    return list->empty() ? std::nullopt : std::optional(list->front());
  }

  std::int64_t needed_count(HfKeys keys, Range<std::int64_t> range) {
    if (const std::optional<std::int64_t> value = first_count(keys, range)) {
      return *value;
    }
    return file_.count(keys, range);
  }

  /// Requires has_experts(). The width of an expert is in moe_intermediate_size, or, as in Mixtral, in
  /// intermediate_size.
  Experts experts() {
    Experts experts;
    experts.count = needed_count({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts",
                                  "num_routed_experts", "num_moe_experts"},
                                 expert_range);
    experts.active = needed_count({"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk",
                                   "moe_k", "moe_top_k", "top_k_experts", "num_selected_experts"},
                                  expert_range);
    experts.ffn = needed_count({"moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size",
                                "ffn_dim_per_expert", "intermediate_size"},
                               model_size_range);
    experts.shared_ffn = shared_ffn(experts.ffn);
    experts.shared_gate = family_.shared_gate && experts.shared_ffn > 0;
    experts.router_bias = file_
                              .optional_flag({"use_routing_bias", "use_expert_bias", "moe_router_enable_expert_bias",
                                              "moe_use_aux_free", "moe_router_use_expert_bias"})
                              .value_or(family_.router_bias || file_.word({"topk_method"}) == "noaux_tc");
    experts.latent = file_.optional_count({"moe_latent_size"}, model_size_range).value_or(0);
    if (file_.is_right() && experts.active > experts.count) {
      file_.mistake(fmt::format("a token cannot go to {} of {} experts; correct num_experts_per_tok", experts.active,
                                experts.count));
    }
    return experts;
  }

  /// Returns the width of the shared experts, from their count or from their total width.
  std::int64_t shared_ffn(std::int64_t ffn) {
    const std::optional<std::int64_t> counted =
        first_count({"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"},
                    {0, expert_range.most});
    if (const auto width = file_.optional_count(
            {"shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size"},
            {0, model_size_range.most})) {
      return *width * (type_ == "nemotron_h" ? std::max<std::int64_t>(1, counted.value_or(1)) : 1);
    }
    return counted.value_or(family_.implied_shared_expert ? 1 : 0) * ffn;
  }

  /// Returns the width of dense layers; without dense layers, the experts' width, which tensor ranks share.
  std::int64_t ffn(const Transformer& model) {
    const HfKeys keys{"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "feed_forward_length"};
    if (file_.is_right() && layer_counts(model).dense == 0 && model.experts) {
      file_.first_of(keys);
      file_.first_of({"intermediate_size_mlp"});
      return model.experts->ffn;
    }
    if (model.ffn > 0) {
      return model.ffn;  // hf_layers read it layer by layer
    }
    if (const auto dense = file_.optional_count({"intermediate_size_mlp"}, model_size_range)) {
      return *dense;
    }
    return family_.ffn_is_four_hidden ? file_.optional_count(keys, model_size_range).value_or(4 * model.hidden)
                                      : file_.count(keys, model_size_range);
  }

  void report_ignored_parts() {
    for (const std::string_view key :
         {"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "mtp_num_layers", "mtp_layers"}) {
      const std::optional<std::int64_t> layers = file_.optional_count({key}, {0, layer_range.most});
      if (layers && *layers > 0) {
        file_.note(fmt::format("{} that predict{} further tokens {} not modelled ({})", counted(*layers, "layer"),
                               *layers == 1 ? "s" : "", *layers == 1 ? "is" : "are", key));
      }
    }
    file_.first_of({"mtp_transformer_layers", "use_mtp", "mtp_hybrid_override_pattern", "mtp_use_dedicated_embeddings",
                    "mtp_loss_scaling_factor"});
  }

  void report_weight_storage(const Transformer& model) {
    if (model.weights) {
      const WeightFormat& format = *model.weights;
      std::string exceptions;
      for (const auto& [name, share, is_there] :
           {std::tuple("attention", format.attention, true),
            {"experts", format.experts, model.experts.has_value()},
            {"MLPs", format.mlp, !model.experts || model.experts->shared_ffn > 0}}) {
        exceptions += is_there && share < 1.0 ? fmt::format("{} {:.0f}% of {}", exceptions.empty() ? " except" : ",",
                                                            100.0 * (1.0 - share), name)
                                              : "";
      }
      file_.note(
          fmt::format("weights are stored in {}, {:.4g} bits each{}; serving uses this format, training does not",
                      format.name, format.bits, exceptions));
    }
  }

  /// Returns the keys that no reader requested and that may matter. Notes each unused vision or audio tower.
  std::vector<std::string> unused() {
    std::vector<std::string> keys;
    for (const std::string& path : file_.unrequested()) {
      const std::string key = path.substr(path.rfind('.') + 1);
      if (key == "vision_config" || key == "audio_config") {
        file_.note(fmt::format("the {} tower is not modelled ({})", key.substr(0, key.find('_')), key));
      }
      if (why_irrelevant(key).empty() && !is_tower_key(key)) {
        keys.push_back(path);
      }
    }
    return keys;
  }

  HfFile file_;
  std::string type_;
  bool is_known_ = true;
  HfFamily family_;
  std::vector<std::string> doubts_;
};

}  // namespace

HfModel read_hf_config(const std::filesystem::path& path) { return Reader(path.string()).read(); }

}  // namespace commfuse
