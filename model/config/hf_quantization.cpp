// SPDX-License-Identifier: Apache-2.0
#include "model/config/hf_quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "model/config_error.h"
#include "model/text/suggest.h"
#include "model/workload/layers.h"

namespace commfuse {

namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* key) {
  const auto entry = object.find(key);
  return entry != object.end() && entry->is_string() ? entry->get<std::string>() : std::string();
}

std::optional<double> number_of(const Json& object, const char* key) {
  const auto entry = object.find(key);
  return entry != object.end() && entry->is_number() ? std::optional(entry->get<double>()) : std::nullopt;
}

bool is_true(const Json& object, const char* key) {
  const auto entry = object.find(key);
  return entry != object.end() && entry->is_boolean() && entry->get<bool>();
}

/// Returns the number of weights per group; 0 if the file states none, or a size that no group can have.
double group_size_of(const Json& object, double fallback) {
  const double size = number_of(object, "group_size").value_or(fallback);
  return size >= 1.0 ? size : 0.0;
}

/// Returns the bits per weight including a scale of 16 bits per group.
double with_scales(double bits, double group) { return group > 0.0 ? bits + 16.0 / group : bits; }

/// Reads names of NVIDIA's ModelOpt: "FP8", "NVFP4", "W4A16_AWQ".
std::optional<WeightFormat> format_of_algorithm(const std::string& algorithm) {
  const std::string name = lowercase(algorithm);
  if (name.starts_with("fp8")) {
    return WeightFormat{.name = "fp8", .bits = 8.0, .narrow_products = true};
  }
  if (name.starts_with("nvfp4") || name == "fp4") {
    return WeightFormat{.name = "nvfp4", .bits = 4.5, .narrow_products = true};  // one 8-bit scale per 16 weights
  }
  if (name.starts_with("mxfp4") || name.starts_with("w4a8_mxfp4")) {
    return WeightFormat{.name = "mxfp4", .bits = 4.25, .narrow_products = false};
  }
  if (name.starts_with("w4a16") || name.starts_with("w4a8") || name.starts_with("int4")) {
    return WeightFormat{.name = "int4", .bits = with_scales(4.0, 128.0), .narrow_products = name.starts_with("w4a8")};
  }
  if (name.starts_with("int8") || name.starts_with("w8a8") || name.starts_with("w8a16")) {
    return WeightFormat{.name = "int8", .bits = 8.0, .narrow_products = false};
  }
  return std::nullopt;
}

/// Reads a group of compressed-tensors, or of ModelOpt in the same form: {"weights": {"num_bits": 4, "group_size":
/// 16}}.
std::optional<WeightFormat> format_of_group(const Json& group) {
  const auto weights = group.find("weights");
  if (weights == group.end() || !weights->is_object()) {
    return std::nullopt;
  }
  const double bits = number_of(*weights, "num_bits").value_or(0.0);
  if (bits < 1.0 || bits > 16.0) {
    return std::nullopt;
  }
  const double size = group_size_of(*weights, 0.0);
  const bool is_float = text_of(*weights, "type") == "float";
  const auto inputs = group.find("input_activations");
  const bool narrow = inputs != group.end() && inputs->is_object();
  if (is_float && bits == 4.0) {
    return WeightFormat{
        .name = narrow ? "nvfp4" : "fp4", .bits = 4.0 + 8.0 / (size > 0.0 ? size : 16.0), .narrow_products = narrow};
  }
  return WeightFormat{.name = fmt::format("{}{:.0f}", is_float ? "fp" : "int", bits),
                      .bits = with_scales(bits, size),
                      .narrow_products = narrow && bits >= 8.0 && is_float};
}

/// Returns the formats of all groups, the narrowest first.
std::vector<WeightFormat> formats_of_groups(const Json& quantization) {
  const auto groups = quantization.find("config_groups");
  std::vector<WeightFormat> formats;
  if (groups != quantization.end() && groups->is_object()) {
    for (const Json& group : *groups) {
      if (std::optional<WeightFormat> format = group.is_object() ? format_of_group(group) : std::nullopt) {
        formats.push_back(*std::move(format));
      }
    }
  }
  std::stable_sort(formats.begin(), formats.end(),
                   [](const WeightFormat& a, const WeightFormat& b) { return a.bits < b.bits; });
  return formats;
}

/// Notes the formats of the wider groups. Their weights are counted in the narrowest format, which most weights have.
void name_other_groups(const Json& quantization, HfFile& file) {
  const std::vector<WeightFormat> formats = formats_of_groups(quantization);
  std::vector<std::string> wider_formats;
  for (const WeightFormat& format : formats) {
    if (format.name != formats.front().name &&
        std::find(wider_formats.begin(), wider_formats.end(), format.name) == wider_formats.end()) {
      wider_formats.push_back(format.name);
    }
  }
  if (!wider_formats.empty()) {
    file.note(fmt::format("weights in {} are counted as {}, the narrowest format of this checkpoint",
                          fmt::join(wider_formats, " and "), formats.front().name));
  }
}

std::optional<WeightFormat> format_of(const Json& quantization) {
  const std::string method = lowercase(text_of(quantization, "quant_method"));
  if (const std::vector<WeightFormat> formats = formats_of_groups(quantization); !formats.empty()) {
    return formats.front();
  }
  if (method == "fp8" || method == "fbgemm_fp8") {
    return WeightFormat{.name = "fp8", .bits = 8.0, .narrow_products = true};
  }
  if (method == "mxfp4") {
    return WeightFormat{.name = "mxfp4", .bits = 4.25};  // one 8-bit scale per 32 weights
  }
  if (method == "awq" || method == "gptq" || method == "auto-round" || method == "gptqmodel") {
    const double bits = std::clamp(number_of(quantization, "bits").value_or(4.0), 1.0, 16.0);
    const double group = group_size_of(quantization, 128.0);
    const double zeros = group > 0.0 ? bits / group : 0.0;  // one zero point per group
    return WeightFormat{.name = fmt::format("int{:.0f} ({})", bits, method), .bits = with_scales(bits, group) + zeros};
  }
  if (method == "bitsandbytes") {
    const bool has_4_bits = is_true(quantization, "load_in_4bit") || is_true(quantization, "_load_in_4bit");
    return WeightFormat{.name = has_4_bits ? "nf4" : "int8", .bits = has_4_bits ? with_scales(4.0, 64.0) : 8.0};
  }
  return format_of_algorithm(text_of(quantization, "quant_algo"));
}

/// Returns whether a group of compressed-tensors, or of ModelOpt in the same form, has inputs in fp8 with fixed scales.
/// NVFP4 has a fixed scale of the whole input too, but also scales of blocks, which are found at run time.
bool has_fixed_scales(const Json& group) {
  const auto inputs = group.is_object() ? group.find("input_activations") : group.end();
  return group.is_object() && inputs != group.end() && inputs->is_object() && number_of(*inputs, "num_bits") == 8.0 &&
         text_of(*inputs, "type") == "float" && inputs->contains("dynamic") && !is_true(*inputs, "dynamic");
}

/// Returns whether the checkpoint fixes the scales with which inputs of GEMMs become fp8. In ModelOpt's terms, FP8 is
/// one fixed scale per tensor.
bool fixes_input_scales(const Json& quantization) {
  const auto groups = quantization.find("config_groups");
  return lowercase(text_of(quantization, "activation_scheme")) == "static" ||
         lowercase(text_of(quantization, "quant_algo")) == "fp8" ||
         (groups != quantization.end() && groups->is_object() &&
          std::any_of(groups->begin(), groups->end(), has_fixed_scales));
}

/// Returns the modules that keep 16 bits, as the file names them.
std::vector<std::string> kept_modules(const Json& quantization) {
  std::vector<std::string> modules;
  for (const char* key :
       {"modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "llm_int8_skip_modules"}) {
    const auto list = quantization.find(key);
    if (list != quantization.end() && list->is_array()) {
      for (const Json& item : *list) {
        if (item.is_string()) {
          modules.push_back(item.get<std::string>());
        }
      }
    }
  }
  return modules;
}

/// Returns the number after "layers."; -1 when a module belongs to all layers.
int layer_of(std::string_view module) {
  constexpr std::string_view prefix = "layers.";
  const std::size_t at = module.find(prefix);
  if (at == std::string_view::npos) {
    return -1;
  }
  int layer = -1;
  for (std::size_t i = at + prefix.size();
       i < module.size() && std::isdigit(static_cast<unsigned char>(module[i])) != 0; ++i) {
    layer = std::min((layer < 0 ? 0 : layer) * 10 + (module[i] - '0'), 1'000'000);
  }
  return layer;
}

/// Part of a layer that a module belongs to.
enum class Part : std::uint8_t { attention, mlp, experts, all, other };

Part part_of(std::string_view module) {
  const auto has = [&](std::string_view word) { return module.find(word) != std::string_view::npos; };
  if (has("norm") || has("gate.") || module.ends_with("gate") || has("router") || has("lm_head") || has("embed") ||
      has("vision") || has("visual") || has("bias") || has("indexer") || has("conv1d") || has("mtp") ||
      has("projector") || has("weights_proj") || has("eh_proj") || has("in_proj_a") || has("in_proj_b")) {
    return Part::other;
  }
  if ((has("experts") || has("block_sparse_moe")) && !has("shared_expert")) {
    return Part::experts;
  }
  if (has("self_attn") || has("attention") || has("linear_attn") || has("mixer") || has("mamba") || has("q_proj") ||
      has("k_proj") || has("v_proj") || has("o_proj")) {
    return Part::attention;
  }
  if (has("shared_expert") || has("mlp\\.") || has("up_proj") || has("gate_up") || has("down_proj")) {
    return Part::mlp;
  }
  return has("mlp") || has("feed_forward") ? Part::mlp : has("layers.") ? Part::all : Part::other;
}

/// Returns the number of layers that have this part.
std::int64_t layers_with(Part part, const Transformer& model) {
  const LayerCounts counts = layer_counts(model);
  switch (part) {
    case Part::attention: return counts.attention + counts.state_space;
    case Part::mlp: return counts.dense + (model.experts && model.experts->shared_ffn > 0 ? counts.mixture : 0);
    case Part::experts: return counts.mixture;
    case Part::all:
    case Part::other: break;
  }
  return model.layers;
}

/// For each part, sets the share of its layers that store it in the format; in its other layers, `modules` keep it at
/// 16 bits.
void put_shares(const std::vector<std::string>& modules, const Transformer& model, WeightFormat& format) {
  std::array<std::set<int>, 3> kept_layers;
  std::array<bool, 3> keeps_all{};
  const auto note_kept = [&](Part part, int layer) {
    const auto index = static_cast<std::size_t>(part);
    keeps_all[index] = keeps_all[index] || layer < 0;
    if (layer >= 0) {
      kept_layers[index].insert(layer);
    }
  };
  for (std::string module : modules) {
    if (module.ends_with('$')) {
      module.pop_back();  // '$' ends a regular expression
    }
    const Part part = part_of(module);
    const int layer = layer_of(module);
    if (layer >= model.layers) {
      continue;  // a layer of the draft model; these follow the last layer of the model
    }
    if (part == Part::all && layer >= 0) {
      note_kept(Part::attention, layer);
      note_kept(Part::mlp, layer);
      note_kept(Part::experts, layer);
    } else if (part != Part::all && part != Part::other) {
      note_kept(part, layer);
    }
  }
  const auto share = [&](Part part) {
    const auto index = static_cast<std::size_t>(part);
    const double unquantized = static_cast<double>(kept_layers[index].size()) /
                               static_cast<double>(std::max<std::int64_t>(1, layers_with(part, model)));
    return keeps_all[index] ? 0.0 : std::max(0.0, 1.0 - unquantized);
  };
  format.attention = share(Part::attention);
  format.mlp = share(Part::mlp);
  format.experts = share(Part::experts);
}

/// Returns true if keys and values use 8 bits.
bool has_narrow_cache(const Json& quantization) {
  const auto scheme = quantization.find("kv_cache_scheme");
  const bool by_bits = scheme != quantization.end() && scheme->is_object() && number_of(*scheme, "num_bits") == 8.0;
  return by_bits || lowercase(text_of(quantization, "kv_cache_scheme")) == "fp8" ||
         lowercase(text_of(quantization, "kv_cache_quant_algo")) == "fp8";
}

/// Returns the quantization from the file that ModelOpt writes next to config.json; nullopt when that file is absent or
/// states none.
std::optional<Json> quantization_of_modelopt(const std::string& path) {
  const std::filesystem::path file = std::filesystem::path(path).parent_path() / "hf_quant_config.json";
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return std::nullopt;
  }
  HfFile modelopt(file.string());
  const Json* quantization = modelopt.at_top("quantization");
  return quantization != nullptr && quantization->is_object() ? std::optional(*quantization) : std::nullopt;
}

}  // namespace

std::optional<WeightFormat> read_hf_quantization(HfFile& file, const Transformer& model) {
  const std::optional<HfFile::Field> inside = file.first_of({"quantization_config", "compression_config"});
  const Json* top = file.at_top("quantization_config");
  const std::optional<Json> of_modelopt = quantization_of_modelopt(file.path());
  const Json* quantization = inside ? inside->value : top != nullptr ? top : of_modelopt ? &*of_modelopt : nullptr;
  if (quantization == nullptr || !quantization->is_object()) {
    return std::nullopt;
  }
  std::optional<WeightFormat> format = format_of(*quantization);
  if (!format) {
    const std::string method = text_of(*quantization, "quant_method");
    const std::string algorithm = text_of(*quantization, "quant_algo");
    file.note(fmt::format("unknown quantization {}; weights are counted as 16 bits wide",
                          in_quotes(method + (method.empty() || algorithm.empty() ? "" : " ") + algorithm)));
    return std::nullopt;
  }
  name_other_groups(*quantization, file);
  if (format->narrow_products && fixes_input_scales(*quantization)) {
    file.note(
        "scales of inputs in fp8 are fixed in this checkpoint; GEMMs in fp8 are priced with scales that are found at "
        "run "
        "time, so serving is faster than predicted");
  }
  put_shares(kept_modules(*quantization), model, *format);
  format->narrow_cache = has_narrow_cache(*quantization);
  return format;
}

}  // namespace commfuse
