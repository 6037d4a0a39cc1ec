// SPDX-License-Identifier: Apache-2.0
#include "model/config/meant.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <system_error>
#include <vector>

#include "model/config/implementation.h"
#include "model/config_error.h"
#include "model/hardware/machine.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

namespace fs = std::filesystem;

/// Flags of other tools, with this program's flag. A command may have its own flag with one of these names.
constexpr std::array flags_elsewhere{Synonym{"--tp", "--ranks"},
                                     Synonym{"--tensor-parallel", "--ranks"},
                                     Synonym{"--tensor-parallel-size", "--ranks"},
                                     Synonym{"--tensor-model-parallel-size", "--ranks"},
                                     Synonym{"--pp", "--pipeline"},
                                     Synonym{"--pipeline-parallel-size", "--pipeline"},
                                     Synonym{"--pipeline-model-parallel-size", "--pipeline"},
                                     Synonym{"--dp", "--data-parallel"},
                                     Synonym{"--data-parallel-size", "--data-parallel"},
                                     Synonym{"--cp", "--context"},
                                     Synonym{"--context-parallel", "--context"},
                                     Synonym{"--context-parallel-size", "--context"},
                                     Synonym{"--ep", "--expert-parallel"},
                                     Synonym{"--expert-parallel-size", "--expert-parallel"},
                                     Synonym{"--expert-model-parallel-size", "--expert-parallel"},
                                     Synonym{"--gpu", "--hardware"},
                                     Synonym{"--cluster", "--hardware"},
                                     Synonym{"--machine-type", "--hardware"},
                                     Synonym{"--seq-len", "--seq"},
                                     Synonym{"--seqlen", "--seq"},
                                     Synonym{"--seq-length", "--seq"},
                                     Synonym{"--sequence-length", "--seq"},
                                     Synonym{"--batch-size", "--batch"},
                                     Synonym{"--global-batch-size", "--batch"},
                                     Synonym{"--micro-batch-size", "--micro-batch"},
                                     Synonym{"--precision", "--dtype"},
                                     Synonym{"--num-gpus", "--gpus"},
                                     Synonym{"--world-size", "--gpus"},
                                     Synonym{"--optimize", "--minimize"},
                                     Synonym{"--objective", "--minimize"},
                                     Synonym{"--format", "--output"}};

/// Keeps only letters and digits, so that "Llama-3.1-70B" and "llama3_1 70b" are one name.
std::string bare(std::string_view text) {
  std::string out;
  for (const char letter : lowercase(text)) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      out += letter;
    }
  }
  return out;
}

std::optional<std::string> same_name(const std::vector<std::string>& names, std::string_view bare_name) {
  const auto match =
      std::find_if(names.begin(), names.end(), [&](const auto& name) { return bare(name) == bare_name; });
  return match == names.end() ? std::nullopt : std::optional(*match);
}

std::string without_front(std::string text, std::string_view front) {
  return text.starts_with(front) ? text.substr(front.size()) : text;
}

/// Finds the model: "meta-llama/Llama-3.1-70B-Instruct" is llama-3.1-70b, because the words after the size name the
/// training or the version of the shipped file. Mistral-7B-v0.3 is a different model from mistral-7b.
std::optional<std::string> meant_model(std::string_view text) {
  const std::vector<std::string> names = known_names(Catalogue::models);
  std::string name = without_front(lowercase(text.substr(text.rfind('/') + 1)), "meta-");
  constexpr std::array<std::string_view, 7> ends{"-instruct", "-chat", "-it", "-base", "-hf", "-v0.1", "-4k"};
  for (bool is_shorter = true; is_shorter;) {
    if (const std::optional<std::string> model = same_name(names, bare(name))) {
      return model;
    }
    const auto* const end =
        std::find_if(ends.begin(), ends.end(), [&](std::string_view ending) { return name.ends_with(ending); });
    is_shorter = end != ends.end();
    name.resize(is_shorter ? name.size() - end->size() : name.size());
  }
  return std::nullopt;
}

/// Words of a GPU's name as a user or nvidia-smi writes it ("NVIDIA A100-SXM4-80GB"), without words that do not
/// distinguish GPUs.
struct GpuWords {
  std::vector<std::string> words;  ///< "a100", "sxm".
  std::int64_t memory = 0;         ///< in GB; 0 when the name gives none

  [[nodiscard]] std::string bare() const { return fmt::format("{}", fmt::join(words, "")); }
};

/// Returns the gigabytes in "80g", "80gb", "80gib" or, after other words, "80"; 0 for any other word.
std::int64_t memory_in(const std::string& word, bool is_first) {
  const std::size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  const std::string unit = word.substr(digits);
  constexpr std::int64_t least = 16;
  constexpr std::int64_t largest = 512;
  const std::int64_t number = digits == 0 || digits > 3 ? 0 : std::stoll(word.substr(0, digits));
  const bool is_memory = unit == "gb" || unit == "gib" || unit == "g" || (unit.empty() && !is_first);
  return is_memory && number >= least && number <= largest ? number : 0;
}

GpuWords gpu_words(std::string_view text) {
  constexpr std::array<std::string_view, 11> ignored_words{
      "nvidia", "amd", "intel", "huawei", "google", "instinct", "tesla", "gpu", "server", "edition", "accelerator"};
  std::string spaced = lowercase(text);
  std::replace_if(
      spaced.begin(), spaced.end(), [](unsigned char letter) { return std::isalnum(letter) == 0; }, ' ');
  GpuWords gpu;
  std::istringstream stream(spaced);
  for (std::string word; stream >> word;) {
    if (word.starts_with("hbm") || std::find(ignored_words.begin(), ignored_words.end(), word) != ignored_words.end()) {
      continue;
    }
    constexpr std::string_view sxm = "sxm";
    if (word.starts_with(sxm)) {  // "sxm4" states the socket, "sxm80" the memory
      const std::int64_t memory = memory_in(word.substr(sxm.size()), false);
      gpu.memory = memory > 0 ? memory : gpu.memory;
      gpu.words.emplace_back(sxm);
    } else if (const std::int64_t memory = memory_in(word, gpu.words.empty()); memory > 0) {
      gpu.memory = memory;
    } else {
      gpu.words.push_back(word);
    }
  }
  return gpu;
}

bool has_memory(const std::string& node, std::int64_t gigabytes) {
  constexpr double tolerance = 0.1;  // 80 GiB are sold as 80 GB
  const auto stated = 1e9 * static_cast<double>(gigabytes);
  const auto capacity = static_cast<double>(load_machine(node).accelerator.hbm_capacity.count);
  return gigabytes == 0 || std::abs(capacity - stated) <= tolerance * stated;
}

/// Returns the machine whose file lists this name under known_as.
std::optional<std::string> known_as(const std::vector<std::string>& nodes, const std::string& bare_name) {
  const auto match = std::find_if(nodes.begin(), nodes.end(), [&](const std::string& node) {
    return same_name(load_machine(node).known_as, bare_name).has_value();
  });
  return match == nodes.end() ? std::nullopt : std::optional(*match);
}

/// Returns the machine whose name has these words in sequence, if there is only one and a word has a digit: "910b",
/// "rtx-pro-6000".
std::optional<std::string> only_with(const std::vector<std::string>& nodes, const GpuWords& gpu) {
  const bool has_number = std::any_of(gpu.words.begin(), gpu.words.end(), [](const std::string& word) {
    return word.size() > 1 && word.find_first_of("0123456789") != std::string::npos;
  });
  std::vector<std::string> matches;
  std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(matches), [&](const std::string& node) {
    const std::vector<std::string> words = gpu_words(node).words;
    return std::search(words.begin(), words.end(), gpu.words.begin(), gpu.words.end()) != words.end();
  });
  return has_number && matches.size() == 1 ? std::optional(matches.front()) : std::nullopt;
}

std::optional<std::string> meant_node(const std::vector<std::string>& nodes, const GpuWords& gpu) {
  const std::string memory = gpu.memory > 0 ? fmt::format("{}", gpu.memory) : "";
  const std::string name = gpu.bare();
  for (const std::string& form : {memory, std::string(), "sxm" + memory, std::string("sxm"), std::string("pcie"),
                                  std::string("oam"), std::string("x")}) {
    const std::optional<std::string> node = same_name(nodes, name + form);
    if (node && has_memory(*node, gpu.memory)) {
      return node;
    }
  }
  for (const std::optional<std::string>& candidate : {known_as(nodes, name), only_with(nodes, gpu)}) {
    if (candidate && has_memory(*candidate, gpu.memory)) {
      return candidate;
    }
  }
  return std::nullopt;
}

std::optional<std::string> meant_machine(Catalogue catalogue, std::string_view text);

/// Returns the cluster that a name with a number of nodes means: "dgx-h100-x4" for "HGX-H100-x4".
std::optional<std::string> meant_cluster(std::string_view text) {
  const std::size_t at = text.rfind("-x");
  if (at == std::string_view::npos || text.find_first_not_of("0123456789", at + 2) != std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<std::string> two_nodes = meant_machine(Catalogue::hardware, text.substr(0, at));
  constexpr std::string_view two = "-x2";
  return two_nodes && two_nodes->ends_with(two)
             ? std::optional(two_nodes->substr(0, two_nodes->size() - two.size()) + std::string(text.substr(at)))
             : std::nullopt;
}

std::optional<std::string> meant_machine(Catalogue catalogue, std::string_view text) {
  const std::vector<std::string> nodes = known_names(Catalogue::nodes);
  GpuWords gpu = gpu_words(text);
  const std::string bare_text = without_front(without_front(bare(text), "nvidia"), "amd");
  if (const std::optional<std::string> node = known_as(nodes, bare_text)) {
    return node;
  }
  if (catalogue == Catalogue::hardware) {
    const std::vector<std::string> names = known_names(catalogue);
    const std::string name = gpu.bare();
    for (const std::string& spelling : {bare_text, name}) {
      for (const char* const end : {"", "x2"}) {
        const std::optional<std::string> match = same_name(names, spelling + end);
        if (match && (spelling == bare_text || has_memory(*match, gpu.memory))) {
          return match;
        }
      }
    }
    if (name.starts_with("hgx")) {
      if (const std::optional<std::string> match = same_name(names, "dgx" + name.substr(3) + "x2")) {
        return match;
      }
    }
  }
  if (!gpu.words.empty() && (gpu.words.front() == "dgx" || gpu.words.front() == "hgx")) {
    gpu.words.erase(gpu.words.begin());
  }
  return gpu.words.empty() ? std::nullopt : meant_node(nodes, gpu);
}

/// Returns the folders that may hold the cache, in the order of search; the last is ~/.cache/huggingface/hub. The
/// variables are read once at start-up, and this program sets none.
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

/// Returns config.json of the revision that `main` names, or else of any revision that has the file. Requires `id` to
/// have the form "organization/name".
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

std::string meant_word(const Field& field, std::string_view text) {
  /// Scopes by the kind of their site, as commfuse-validate check names it.
  constexpr std::array sites{Synonym{"ag_gemm", "gate_up"},
                             Synonym{"gemm_rs", "down"},
                             Synonym{"gemm_ar", "down_ar"},
                             Synonym{"ag_gemm_backward", "gate_up_backward"},
                             Synonym{"gemm_rs_backward", "down_backward"},
                             Synonym{"weight_ag_gemm", "fsdp_gate_up"}};
  constexpr std::array dtypes{Synonym{"bfloat16", "bf16"},   Synonym{"float16", "fp16"},      Synonym{"half", "fp16"},
                              Synonym{"float32", "fp32"},    Synonym{"float", "fp32"},        Synonym{"float8", "fp8"},
                              Synonym{"float8_e4m3", "fp8"}, Synonym{"float8_e4m3fn", "fp8"}, Synonym{"e4m3", "fp8"}};
  const std::string word = lowercase(text);
  const std::vector<std::string_view> known = field.choices();
  if (std::find(known.begin(), known.end(), text) != known.end()) {
    return std::string(text);
  }
  for (const std::string_view known_word : known) {
    if (lowercase(known_word) == word) {
      return std::string(known_word);
    }
  }
  const std::string_view meaning = field.key == "dtype"   ? found_in(dtypes, word)
                                   : field.key == "scope" ? found_in(sites, word)
                                                          : std::string_view{};
  return std::string(meaning.empty() ? text : meaning);
}

}  // namespace

std::string_view found_in(std::span<const Synonym> synonyms, std::string_view word) {
  const auto match =
      std::find_if(synonyms.begin(), synonyms.end(), [&](const Synonym& synonym) { return synonym.typed == word; });
  return match == synonyms.end() ? std::string_view{} : match->means;
}

std::string_view flag_meant(std::string_view typed) { return found_in(flags_elsewhere, typed); }

const Field* field_meant(std::string_view key) {
  if (const Field* const field = find_field(key)) {
    return field;
  }
  std::string flag = fmt::format("--{}", key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  const std::string_view our_flag = flag_meant(flag);
  const std::span<const Field> fields = run_fields();
  const auto match = std::find_if(fields.begin(), fields.end(), [&](const Field& field) {
    return !our_flag.empty() && field.flag == our_flag.substr(2);
  });
  return match == fields.end() ? nullptr : &*match;
}

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
                              Synonym{"all_reduce", "down_ar"},
                              Synonym{"allreduce", "down_ar"}};
  std::string word = lowercase(typed);
  std::replace(word.begin(), word.end(), '-', '_');
  const std::string_view meaning = field.key == "strategy.name" ? found_in(strategies, word)
                                   : field.key == "scope"       ? found_in(scopes, word)
                                                                : std::string_view{};
  return meaning;
}

std::optional<std::string> implementation_meant(std::string_view word) {
  try {
    const std::string bare_word = bare(word);
    for (const std::shared_ptr<const Implementation>& implementation : load_implementations("all")) {
      if (bare(implementation->name) == bare_word || same_name(implementation->known_as, bare_word)) {
        return implementation->name;
      }
    }
  } catch (const ConfigError&) {
    return std::nullopt;  // The message about the word is more useful than one about another file.
  }
  return std::nullopt;
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
  const bool is_path = text.find('/') != std::string_view::npos && fs::exists(text, error);
  if (text.empty() || is_path || !(is_model || catalogue == Catalogue::hardware || catalogue == Catalogue::nodes)) {
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
        return std::string(text);  // Without a catalogue, the check of the name reports the mistake.
      }
    case FieldType::choice: return meant_word(field, text);
    case FieldType::count: {
      std::string upper(text);
      if (!upper.empty() && !parse_count(upper)) {
        upper.back() = static_cast<char>(std::toupper(static_cast<unsigned char>(upper.back())));
      }
      return parse_count(upper) ? upper : std::string(text);
    }
    case FieldType::names:
    case FieldType::choices:
    case FieldType::bandwidth:
    case FieldType::share:
    case FieldType::amount: break;
  }
  return std::string(text);
}

}  // namespace commfuse
