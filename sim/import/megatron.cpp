// SPDX-License-Identifier: Apache-2.0
// Flags and defaults: NVIDIA/Megatron-LM, megatron/training/arguments.py. Overlap: NVIDIA/TransformerEngine,
// transformer_engine/pytorch/module/base.py (initialize_ub).
#include "sim/import/megatron.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "model/check.h"
#include "model/config/field.h"
#include "model/config/load_model.h"
#include "model/config/settings.h"
#include "model/config/yaml_reader.h"
#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "sim/import/megatron_flags.h"
#include "sim/import/shell_words.h"

namespace commfuse::import {

namespace {

using Counts = Range<std::int64_t>;

/// Of a setting that is a count.
Counts range_of(std::string_view key) {
  const Field* const field = find_field(key);
  check(field != nullptr && field->type == FieldType::count, "a range is that of a count");
  return {field->least, field->most};
}

/// The flags of a text and what stands behind each.
class Arguments {
 public:
  Arguments(std::string_view text, std::string path) : path_(std::move(path)) {
    const std::vector<ShellWord> words = shell_words(text);
    variables_ = assignments(words);
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].text.starts_with("--")) {
        read(words, i);
      }
    }
  }

  [[nodiscard]] bool has(std::string_view flag) const { return flags_.find(flag) != flags_.end(); }

  [[nodiscard]] std::optional<std::string> text(std::string_view flag) const {
    const auto found = flags_.find(flag);
    if (found == flags_.end()) {
      return std::nullopt;
    }
    std::optional<std::string> value = expanded(found->second.text, variables_);
    if (!value) {
      wrong(flag, fmt::format("is {}, which this file alone does not say; write its value there",
                              in_quotes(found->second.text)));
    }
    return value;
  }

  [[nodiscard]] std::optional<std::int64_t> count(std::string_view flag, Counts range) const {
    const std::optional<std::string> value = text(flag);
    if (!value) {
      return std::nullopt;
    }
    const std::optional<std::int64_t> number = parse_integer(*value);
    if (!number || *number < range.least || *number > range.most) {
      wrong(flag, fmt::format("is {}; write a whole number from {} {}", in_quotes(*value), range.least,
                              number && *number > range.most ? fmt::format("to {}", range.most) : "on"));
    }
    return number;
  }

  /// What follows from other flags where `flag` is left out.
  [[nodiscard]] std::int64_t derived(std::string_view what, std::int64_t value, Counts range,
                                     std::string_view remedy) const {
    if (value < range.least || value > range.most) {
      throw ConfigError(fmt::format("{}: these flags make {} {}, which is not in {} to {}; {}", path_, value, what,
                                    range.least, range.most, remedy));
    }
    return value;
  }

  [[noreturn]] void wrong(std::string_view flag, std::string_view sentence) const {
    throw ConfigError(fmt::format("{}:{}: {} {}", path_, flags_.find(flag)->second.line, flag, sentence));
  }

  [[nodiscard]] std::int64_t required(std::string_view flag, Counts range) const {
    const std::optional<std::int64_t> value = count(flag, range);
    if (!value) {
      for (const auto& [other, word] : flags_) {
        if (misspelled(other) == flag) {
          wrong(other, fmt::format("is not a flag of Megatron-LM, and {} is missing; write it so", flag));
        }
      }
      throw ConfigError(
          fmt::format("{}: {} is missing; give the whole command line, or the script that builds it", path_, flag));
    }
    return *value;
  }

  /// A sentence for every flag that changes the work and is not taken over, or is one that is known but for a slip.
  void note_left_out(std::vector<std::string>& notes) const {
    for (const auto& [flag, instead] : flags_without_counterpart()) {
      if (has(flag)) {
        notes.push_back(fmt::format("{} has no counterpart and is not taken over: {}", flag, instead));
      }
    }
    for (const auto& [flag, word] : flags_) {
      if (const std::optional<std::string_view> meant = misspelled(flag)) {
        notes.push_back(fmt::format("{}:{}: {} is not known and not taken over; did you mean '{}'?", path_, word.line,
                                    in_quotes(flag), *meant));
      }
    }
  }

 private:
  void read(const std::vector<ShellWord>& words, std::size_t i) {
    const std::string& word = words[i].text;
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      flags_[word.substr(0, equals)] = {word.substr(equals + 1), words[i].line};
      return;
    }
    const bool has_value = i + 1 < words.size() && !words[i + 1].text.starts_with("--");
    flags_[word] = {has_value ? words[i + 1].text : "", words[i].line};
  }

  std::string path_;
  Variables variables_;
  std::map<std::string, ShellWord, std::less<>> flags_;  // the last of each, as Megatron takes it
};

std::string experts_of(const Arguments& arguments, std::int64_t ffn) {
  const std::optional<std::int64_t> count = arguments.count("--num-experts", expert_range);
  if (!count) {
    return {};
  }
  return fmt::format("experts:\n  count: {}\n  active: {}\n  ffn: {}\n", *count,
                     arguments.count("--moe-router-topk", expert_range).value_or(2),
                     arguments.count("--moe-ffn-hidden-size", model_size_range).value_or(ffn));
}

/// Rows of the embedding: --vocab-size, padded so that every tensor rank has as many whole 128s.
std::int64_t padded_vocab(const Arguments& arguments, std::vector<std::string>& notes) {
  constexpr std::int64_t gpt_2 = 50257;
  const std::optional<std::int64_t> said = arguments.count("--vocab-size", vocab_range);
  if (!said) {
    notes.push_back(
        fmt::format("--vocab-size is not there, since the tokenizer has it: {} is assumed, GPT-2's", gpt_2));
  }
  const std::int64_t unit = arguments.count("--make-vocab-size-divisible-by", vocab_range).value_or(128) *
                            arguments.count("--tensor-model-parallel-size", range_of("ranks")).value_or(1);
  return arguments.derived("rows of the embedding", (said.value_or(gpt_2) + unit - 1) / unit * unit, vocab_range,
                           "make --make-vocab-size-divisible-by smaller");
}

/// --ffn-hidden-size where it is left out: 4 x hidden; gated, two thirds of it in whole 64s, so that the MLP stays as
/// large.
std::int64_t ffn_of(const Arguments& arguments, std::int64_t hidden) {
  const std::int64_t usual = arguments.has("--swiglu") ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden;
  const std::optional<std::int64_t> said = arguments.count("--ffn-hidden-size", model_size_range);
  return said ? *said : arguments.derived("columns of the MLP", usual, model_size_range, "write --ffn-hidden-size");
}

std::int64_t head_dim_of(const Arguments& arguments, std::int64_t hidden, std::int64_t heads) {
  const std::optional<std::int64_t> said = arguments.count("--kv-channels", head_range);
  return said ? *said : arguments.derived("columns of a head", hidden / heads, head_range, "write --kv-channels");
}

std::int64_t kv_heads_of(const Arguments& arguments, std::int64_t heads) {
  if (!arguments.has("--group-query-attention")) {
    return heads;
  }
  const std::int64_t groups = arguments.count("--num-query-groups", head_range).value_or(1);
  if (heads % groups != 0) {
    arguments.wrong("--num-query-groups", fmt::format("is {}, which does not divide the {} heads evenly; write one "
                                                      "that does",
                                                      groups, heads));
  }
  return groups;
}

/// A line where positions are learned.
std::string positions_of(const Arguments& arguments) {
  if (arguments.text("--position-embedding-type").value_or("learned_absolute") != "learned_absolute") {
    return {};
  }
  const std::int64_t seq = arguments.required("--seq-length", range_of("seq"));
  const std::optional<std::int64_t> said = arguments.count("--max-position-embeddings", model_size_range);
  return fmt::format(
      "positions: {}\n",
      said ? *said : arguments.derived("learned positions", seq, model_size_range, "write --max-position-embeddings"));
}

/// Our word for it.
std::string_view norm_of(const Arguments& arguments, std::vector<std::string>& notes) {
  const std::string norm = arguments.text("--normalization").value_or("LayerNorm");
  if (norm != "LayerNorm" && norm != "RMSNorm") {
    notes.push_back(fmt::format("--normalization {} has no counterpart: LayerNorm is assumed", in_quotes(norm)));
  }
  return norm == "RMSNorm" ? "rms" : "layer";
}

std::string model_of(const Arguments& arguments, const std::string& name, std::vector<std::string>& notes) {
  const std::int64_t hidden = arguments.required("--hidden-size", model_size_range);
  const std::int64_t heads = arguments.required("--num-attention-heads", head_range);
  const std::int64_t ffn = ffn_of(arguments, hidden);
  const std::string text = fmt::format(
      "# From a command line of Megatron-LM.\nschema: commfuse.model/1\nname: {}\nlayers: {}\nhidden: {}\nffn: {}\n"
      "heads: {}\nkv_heads: {}\nhead_dim: {}\nvocab: {}\ngated_mlp: {}\nnorm: {}\nbiases: {}\ntied_embeddings: {}\n",
      yaml_scalar(name), arguments.required("--num-layers", layer_range), hidden, ffn, heads,
      kv_heads_of(arguments, heads), head_dim_of(arguments, hidden, heads), padded_vocab(arguments, notes),
      arguments.has("--swiglu"), norm_of(arguments, notes), !arguments.has("--disable-bias-linear"),
      !arguments.has("--untie-embeddings-and-output-weights"));
  return text + positions_of(arguments) + experts_of(arguments, ffn);
}

std::string dtype_of(const Arguments& arguments) {
  return arguments.has("--fp8-format") ? "fp8"
         : arguments.has("--bf16")     ? "bf16"
         : arguments.has("--fp16")     ? "fp16"
                                       : "fp32";
}

/// Replicas, as many as torchrun's processes hold; one, with a note, where that is not known.
std::int64_t replicas_of(const Arguments& arguments, std::int64_t ranks_of_one, std::vector<std::string>& notes) {
  const auto either = [&](std::string_view a, std::string_view b) {
    return arguments.count(arguments.has(a) ? a : b, range_of("parallel.data"));
  };
  const auto nodes = either("--nnodes", "--num-nodes");
  const auto in_a_node = either("--nproc-per-node", "--nproc_per_node");
  if (!in_a_node) {
    notes.emplace_back(
        "how many processes there are is not said (--nnodes, --nproc-per-node of torchrun): one replica is assumed");
    return 1;
  }
  const std::int64_t processes = *in_a_node * nodes.value_or(1);
  if (processes % ranks_of_one != 0) {
    notes.push_back(
        fmt::format("{} x {} processes (--nnodes x --nproc-per-node of torchrun) do not hold whole replicas "
                    "of {} ranks: one replica is assumed",
                    nodes.value_or(1), *in_a_node, ranks_of_one));
    return 1;
  }
  return arguments.derived("replicas", processes / ranks_of_one, range_of("parallel.data"),
                           "choose fewer processes, or larger replicas");
}

std::string recompute_of(const Arguments& arguments) {
  constexpr std::string_view flag = "--recompute-granularity";
  const std::string how = arguments.text(flag).value_or("none");
  const Field* const setting = find_field("step.recompute");
  check(setting != nullptr, "recomputation is a setting");
  if (const std::optional<std::string> mistake = mistake_in(*setting, how)) {
    arguments.wrong(flag, fmt::format("is wrong: {}", *mistake));
  }
  return arguments.has("--recompute-activations") && how == "none" ? "selective" : how;
}

/// Pieces of a stage, as Megatron counts them: embedding and loss may each stand for a layer.
std::int64_t interleave_of(const Arguments& arguments, std::int64_t pipeline) {
  if (const auto pieces = arguments.count("--num-virtual-stages-per-pipeline-rank", range_of("parallel.interleave"))) {
    return *pieces;
  }
  const auto layers = arguments.count("--num-layers-per-virtual-pipeline-stage", layer_range);
  if (!layers) {
    return 1;
  }
  const std::int64_t divided = arguments.required("--num-layers", layer_range) +
                               (arguments.has("--account-for-embedding-in-pipeline-split") ? 1 : 0) +
                               (arguments.has("--account-for-loss-in-pipeline-split") ? 1 : 0);
  return arguments.derived("pieces of a stage", std::max<std::int64_t>(1, divided / pipeline / *layers),
                           range_of("parallel.interleave"), "make --num-layers-per-virtual-pipeline-stage larger");
}

/// --global-batch-size where it is left out: a micro batch a replica.
std::int64_t batch_of(const Arguments& arguments, std::int64_t micro, std::int64_t data) {
  const Counts range = range_of("batch");
  const std::optional<std::int64_t> said = arguments.count("--global-batch-size", range);
  return said ? *said : arguments.derived("sequences of a batch", micro * data, range, "write --global-batch-size");
}

/// What replicas share. Where no strategy is named, Megatron's FSDP shares nothing, PyTorch's the weights too.
int zero_of(const Arguments& arguments) {
  const bool has_fsdp = arguments.has("--use-megatron-fsdp") || arguments.has("--use-custom-fsdp");
  if (!has_fsdp && !arguments.has("--use-torch-fsdp2")) {
    return arguments.has("--use-distributed-optimizer") ? 1 : 0;
  }
  constexpr std::array<std::string_view, 4> shared{"no_shard", "optim", "optim_grads", "optim_grads_params"};
  constexpr std::string_view flag = "--data-parallel-sharding-strategy";
  const std::string how = arguments.text(flag).value_or(has_fsdp ? "no_shard" : "optim_grads_params");
  const auto* const found = std::ranges::find(shared, how);
  if (found == shared.end()) {
    arguments.wrong(flag, fmt::format("is {}; {}", in_quotes(how), remedy_for(how, shared, "strategies")));
  }
  return static_cast<int>(found - shared.begin());
}

std::string run_of(const Arguments& arguments, std::vector<std::string>& notes) {
  const auto count = [&](std::string_view flag, std::string_view setting) {
    return arguments.count(flag, range_of(setting)).value_or(1);
  };
  const std::int64_t tensor = count("--tensor-model-parallel-size", "ranks");
  const std::int64_t pipeline = count("--pipeline-model-parallel-size", "parallel.pipeline");
  const std::int64_t context = count("--context-parallel-size", "parallel.context");
  const std::int64_t micro = count("--micro-batch-size", "step.micro_batch");
  const std::int64_t data = replicas_of(arguments, tensor * pipeline * context, notes);
  return fmt::format(
      "# From a command line of Megatron-LM.\nschema: commfuse.run/1\nscope: step\nranks: {}\nseq: {}\nbatch: {}\n"
      "dtype: {}\nparallel:\n  sequence_parallel: {}\n  pipeline: {}\n  interleave: {}\n  data: {}\n  context: {}\n"
      "  experts: {}\n  zero: {}\nstep:\n  micro_batch: {}\n  recompute: {}\n",
      tensor, arguments.required("--seq-length", range_of("seq")), batch_of(arguments, micro, data),
      dtype_of(arguments), arguments.has("--sequence-parallel") ? "on" : "off", pipeline,
      interleave_of(arguments, pipeline), data, context, count("--expert-model-parallel-size", "parallel.experts"),
      zero_of(arguments), micro, yaml_scalar(recompute_of(arguments)));
}

/// The products of a layer's forward pass, by their names in the file.
constexpr std::array products{"qkv_fprop", "proj_fprop", "fc1_fprop", "fc2_fprop"};

struct Overlap {
  std::map<std::string, int> strategies;  // ours, by how many products have it
  std::map<std::int64_t, int> slices;     // of pipeline
  std::vector<std::string> without;       // products that this file leaves serial here
};

void read_product(YamlMap& root, const char* product, Overlap& overlap) {
  std::optional<YamlMap> map = root.optional_map(product);
  const std::string method = map ? map->text("method") : "none";
  if (method == "ring_exchange") {
    ++overlap.strategies["ring_exchange"];
  } else if (method == "pipeline") {
    ++overlap.strategies["sliced"];
    ++overlap.slices[map->has("num_splits") ? map->count("num_splits") : 4];
  } else {
    overlap.without.emplace_back(product);
  }
}

/// Keys that have nothing here, and other products, are known and passed over.
void pass_over(const YamlValue& value, YamlMap& root) {
  for (const YamlValue::Field& field : value.fields()) {
    if (std::optional<YamlMap> map = root.optional_map(field.key)) {
      for (const std::string& key : map->keys()) {
        map->optional_value(key);
      }
    }
  }
}

constexpr auto overlap_of_step =
    "userbuffers' ways of overlap are those of the forward pass; a whole step is simulated as sliced, by the best "
    "number "
    "of "
    "slices at every site";

/// Of a whole step, where schedules are those of all its sites.
std::string strategy_of_step(bool overlaps) {
  return fmt::format("strategy:\n  name: {}\n", overlaps ? "sliced" : "serial");
}

template <class Key>
Key most_common(const std::map<Key, int>& counts) {
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

MegatronImport read_megatron(std::string_view text, const std::string& path, const std::string& name) {
  const Arguments arguments(text, path);
  MegatronImport import;
  import.model = model_of(arguments, name, import.notes);
  import.run = run_of(arguments, import.notes);
  arguments.note_left_out(import.notes);
  const bool overlaps = arguments.has("--tp-comm-overlap");
  import.run += strategy_of_step(overlaps);
  if (overlaps) {
    import.notes.emplace_back(overlap_of_step);
  }
  return import;
}

void add_overlap(const std::string& path, MegatronImport& import) {
  YamlFile file(path);
  YamlMap root = file.root();
  pass_over(file.top(), root);
  Overlap overlap;
  for (const char* product : products) {
    read_product(root, product, overlap);
  }
  file.finish();
  import.run.erase(std::min(import.run.find("strategy:\n"), import.run.size()));
  import.run += strategy_of_step(!overlap.strategies.empty());
  if (overlap.strategies.empty()) {
    std::erase(import.notes, overlap_of_step);
    import.notes.push_back(fmt::format("{} overlaps no product of the forward pass in a way known here: serial", path));
    return;
  }
  const std::string strategy = most_common(overlap.strategies);
  import.notes.push_back(fmt::format(
      "most products of {} are run as: --scope layer --strategy {}{}{}", path, strategy,
      strategy == "sliced" ? fmt::format(" --slices {}", most_common(overlap.slices)) : "",
      overlap.without.empty() ? "" : fmt::format("; without overlap: {}", fmt::join(overlap.without, ", "))));
}

}  // namespace commfuse::import
