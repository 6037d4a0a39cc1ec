// SPDX-License-Identifier: Apache-2.0
#include "model/config/meant.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "model/config_error.h"
#include "model/text/quantity.h"

namespace commfuse {

namespace {

namespace fs = std::filesystem;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return out;
}

/// Letters and digits alone: "Llama-3.1-70B" and "llama3_1 70b" are one name.
std::string bare(std::string_view text) {
  std::string out;
  for (const char letter : lower(text)) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      out += letter;
    }
  }
  return out;
}

std::optional<std::string> same_name(const std::vector<std::string>& names, std::string_view bare_name) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const auto& name) { return bare(name) == bare_name; });
  return found == names.end() ? std::nullopt : std::optional(*found);
}

std::string without_front(std::string text, std::string_view front) {
  return text.starts_with(front) ? text.substr(front.size()) : text;
}

/// "meta-llama/Llama-3.1-70B-Instruct" is a llama-3.1-70b: what follows the size is how it was trained.
std::optional<std::string> meant_model(std::string_view text) {
  const std::vector<std::string> names = known_names(Catalogue::models);
  std::string name = without_front(lower(text.substr(text.rfind('/') + 1)), "meta-");
  constexpr std::array<std::string_view, 10> ends{"-instruct", "-chat",          "-it",   "-base", "-hf",
                                                  "-v0.1",     "-instruct-v0.1", "-v0.3", "-8k",   "-4k"};
  for (bool is_shorter = true; is_shorter;) {
    if (const std::optional<std::string> found = same_name(names, bare(name))) {
      return found;
    }
    const auto* const end =
        std::find_if(ends.begin(), ends.end(), [&](std::string_view one) { return name.ends_with(one); });
    is_shorter = end != ends.end();
    name.resize(is_shorter ? name.size() - end->size() : name.size());
  }
  return std::nullopt;
}

std::optional<std::string> meant_node(const std::vector<std::string>& names, const std::string& name) {
  for (const char* const form : {"", "sxm", "sxm80", "pcie", "oam"}) {
    if (const std::optional<std::string> found = same_name(names, name + form)) {
      return found;
    }
  }
  constexpr std::size_t least = 3;  // letters that say which
  constexpr std::size_t many = 8;   // as many as no two machines share by chance
  const auto longer = std::find_if(names.begin(), names.end(), [&](const std::string& one) {
    return bare(one).starts_with(name) || (name.size() >= many && bare(one).find(name) != std::string::npos);
  });
  return longer == names.end() || name.size() < least ? std::nullopt : std::optional(*longer);
}

std::optional<std::string> meant_machine(Catalogue catalogue, std::string_view text);

/// "HGX-H100-x4": the cluster, of so many nodes.
std::optional<std::string> meant_cluster(std::string_view text) {
  const std::size_t at = text.rfind("-x");
  if (at == std::string_view::npos || text.find_first_not_of("0123456789", at + 2) != std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<std::string> of_two = meant_machine(Catalogue::hardware, text.substr(0, at));
  constexpr std::string_view two = "-x2";
  return of_two && of_two->ends_with(two)
             ? std::optional(of_two->substr(0, of_two->size() - two.size()) + std::string(text.substr(at)))
             : std::nullopt;
}

std::optional<std::string> meant_machine(Catalogue catalogue, std::string_view text) {
  const std::vector<std::string> nodes = known_names(Catalogue::nodes);
  std::string name = bare(text);
  for (const std::string_view vendor : {"nvidia", "amd", "intel", "huawei", "google"}) {
    name = without_front(name, vendor);
  }
  if (catalogue == Catalogue::hardware) {
    const std::vector<std::string> all = known_names(catalogue);
    for (const char* const end : {"", "x2"}) {
      if (const std::optional<std::string> found = same_name(all, name + end)) {
        return found;
      }
    }
    if (name.starts_with("hgx")) {
      if (const std::optional<std::string> found = same_name(all, "dgx" + name.substr(3) + "x2")) {
        return found;
      }
    }
  }
  return meant_node(nodes, without_front(without_front(name, "dgx"), "hgx"));
}

/// ~/.cache/huggingface/hub, where nobody moved it. Read once at start-up by a program that sets no variables.
std::vector<fs::path> caches() {
  std::vector<fs::path> folders;
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? "" : value;
  };
  if (const std::string hub = variable("HF_HUB_CACHE"); !hub.empty()) {
    folders.emplace_back(hub);
  }
  if (const std::string home = variable("HF_HOME"); !home.empty()) {
    folders.push_back(fs::path(home) / "hub");
  }
  if (const std::string home = variable("HOME"); !home.empty()) {
    folders.push_back(fs::path(home) / ".cache" / "huggingface" / "hub");
  }
  return folders;
}

/// Requires "organisation/name". The revision that `main` is, or else any that has the file.
std::optional<fs::path> in_cache(std::string_view id) {
  std::string folder = fmt::format("models--{}", id);
  folder.replace(folder.find('/'), 1, "--");
  std::error_code error;
  for (const fs::path& cache : caches()) {
    std::string revision;
    std::getline(std::ifstream(cache / folder / "refs" / "main") >> std::ws, revision);
    const fs::path main = cache / folder / "snapshots" / revision / "config.json";
    if (!revision.empty() && fs::is_regular_file(main, error)) {
      return main;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(cache / folder / "snapshots", error)) {
      if (fs::is_regular_file(entry.path() / "config.json", error)) {
        return entry.path() / "config.json";
      }
    }
  }
  return std::nullopt;
}

struct Synonym {
  std::string_view typed, means;
};

std::string_view found_in(std::span<const Synonym> synonyms, std::string_view word) {
  const auto found =
      std::find_if(synonyms.begin(), synonyms.end(), [&](const Synonym& one) { return one.typed == word; });
  return found == synonyms.end() ? std::string_view{} : found->means;
}

std::string meant_word(const Field& field, std::string_view text) {
  /// Scopes by the kind of their site, as commfuse-validate check names them.
  constexpr std::array sites{Synonym{"ag_gemm", "gate_up"}, Synonym{"gemm_rs", "down"},
                             Synonym{"ag_gemm_backward", "gate_up_backward"},
                             Synonym{"gemm_rs_backward", "down_backward"}, Synonym{"weight_ag_gemm", "fsdp_gate_up"}};
  constexpr std::array dtypes{Synonym{"bfloat16", "bf16"},   Synonym{"float16", "fp16"},      Synonym{"half", "fp16"},
                              Synonym{"float32", "fp32"},    Synonym{"float", "fp32"},        Synonym{"float8", "fp8"},
                              Synonym{"float8_e4m3", "fp8"}, Synonym{"float8_e4m3fn", "fp8"}, Synonym{"e4m3", "fp8"}};
  const std::string word = lower(text);
  const std::vector<std::string_view> known = field.choices();
  if (std::find(known.begin(), known.end(), text) != known.end()) {
    return std::string(text);
  }
  for (const std::string_view one : known) {
    if (lower(one) == word) {
      return std::string(one);
    }
  }
  const std::string_view means = field.key == "dtype"   ? found_in(dtypes, word)
                                 : field.key == "scope" ? found_in(sites, word)
                                                        : std::string_view{};
  return std::string(means.empty() ? text : means);
}

}  // namespace

std::string_view choice_for(const Field& field, std::string_view typed) {
  constexpr std::array strategies{Synonym{"te", "ring_exchange"},
                                  Synonym{"transformer_engine", "ring_exchange"},
                                  Synonym{"transformerengine", "ring_exchange"},
                                  Synonym{"userbuffers", "ring_exchange"},
                                  Synonym{"ub", "ring_exchange"},
                                  Synonym{"megatron", "sliced"},
                                  Synonym{"coc", "sliced"},
                                  Synonym{"slicing", "sliced"},
                                  Synonym{"pipeline", "sliced"},
                                  Synonym{"nccl", "serial"},
                                  Synonym{"baseline", "serial"},
                                  Synonym{"none", "serial"},
                                  Synonym{"sequential", "serial"},
                                  Synonym{"flux", "fused_kernel"},
                                  Synonym{"fused", "fused_kernel"},
                                  Synonym{"torch", "async_tp"},
                                  Synonym{"pytorch", "async_tp"},
                                  Synonym{"symm_mem", "async_tp"},
                                  Synonym{"jax", "looped_einsum"},
                                  Synonym{"xla", "looped_einsum"},
                                  Synonym{"collective_matmul", "looped_einsum"}};
  constexpr std::array scopes{Synonym{"ffn", "mlp"},
                              Synonym{"feed_forward", "mlp"},
                              Synonym{"attn", "attention"},
                              Synonym{"block", "layer"},
                              Synonym{"decoder_layer", "layer"},
                              Synonym{"training", "step"},
                              Synonym{"train", "step"},
                              Synonym{"moe", "step"},
                              Synonym{"model", "step"},
                              Synonym{"inference", "decode"},
                              Synonym{"serving", "decode"},
                              Synonym{"generate", "decode"},
                              Synonym{"prompt", "prefill"},
                              Synonym{"fsdp", "fsdp_gate_up"},
                              Synonym{"all_reduce", "mlp_ar"}};
  std::string word = lower(typed);
  std::replace(word.begin(), word.end(), '-', '_');
  const std::string_view means = field.key == "strategy.name" ? found_in(strategies, word)
                                 : field.key == "scope"       ? found_in(scopes, word)
                                                              : std::string_view{};
  return means;
}

bool is_hf_id(std::string_view text) {
  const std::size_t slash = text.find('/');
  return slash != std::string_view::npos && slash > 0 && slash + 1 < text.size() &&
         text.find('/', slash + 1) == std::string_view::npos && text.front() != '.' && text.front() != '~' &&
         !text.ends_with(".yaml") && !text.ends_with(".yml") && !text.ends_with(".json");
}

std::string meant_name(Catalogue catalogue, std::string_view text) {
  std::error_code error;
  const bool is_model = catalogue == Catalogue::models;
  if (is_model && fs::is_regular_file(fs::path(text) / "config.json", error)) {
    const std::string path = (fs::path(text) / "config.json").string();
    return path.find('/') == 0 || path.front() == '.' ? path : "./" + path;
  }
  if (text.empty() || fs::exists(text, error) ||
      !(is_model || catalogue == Catalogue::hardware || catalogue == Catalogue::nodes)) {
    return std::string(text);
  }
  const std::vector<std::string> names = known_names(catalogue);
  if (std::find(names.begin(), names.end(), text) != names.end()) {
    return std::string(text);
  }
  if (is_model && is_hf_id(text)) {
    if (const std::optional<fs::path> path = in_cache(text)) {
      return path->string();
    }
  }
  if (text.find('/') != std::string_view::npos && !(is_model && is_hf_id(text))) {
    return std::string(text);
  }
  if (catalogue == Catalogue::hardware) {
    if (sized_cluster(text)) {
      return std::string(text);
    }
    if (const std::optional<std::string> cluster = meant_cluster(text)) {
      return *cluster;
    }
  }
  const std::optional<std::string> name = is_model ? meant_model(text) : meant_machine(catalogue, text);
  return name.value_or(std::string(text));
}

std::string meant(const Field& field, std::string_view text) {
  switch (field.type) {
    case FieldType::name: try { return meant_name(field.catalogue, text);
      } catch (const ConfigError&) {
        return std::string(text);  // No catalogue: the check of the name says so.
      }
    case FieldType::choice: return meant_word(field, text);
    case FieldType::count: {
      std::string upper(text);
      if (!upper.empty() && !parse_count(upper)) {
        upper.back() = static_cast<char>(std::toupper(static_cast<unsigned char>(upper.back())));
      }
      return parse_count(upper) ? upper : std::string(text);
    }
    case FieldType::choices:
    case FieldType::bandwidth:
    case FieldType::share: break;
  }
  return std::string(text);
}

}  // namespace commfuse
