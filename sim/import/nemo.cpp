// SPDX-License-Identifier: Apache-2.0
// Keys: NVIDIA/NeMo, examples/nlp/language_modeling/conf/megatron_gpt_config.yaml; NVIDIA-NeMo/Megatron-Bridge,
// docs/megatron-lm-to-megatron-bridge.md and the run_config.yaml that a run saves.
#include "sim/import/nemo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/config_error.h"
#include "model/text/suggest.h"
#include "sim/import/key_lists.h"
#include "sim/import/keyed_file.h"
#include "sim/import/megatron_arguments.h"
#include "sim/import/megatron_flags.h"

namespace commfuse::import {

namespace {

/// Conversion of a key's value to a flag.
enum class Meaning : std::uint8_t {
  value,      ///< the value of the flag
  on,         ///< a switch, set if true
  off,        ///< a switch, set if false
  gated,      ///< an activation; the switch is set if the activation is gated
  norm,       ///< the name of a norm
  groups,     ///< a number of query groups; also sets --group-query-attention
  fp8,        ///< a switch, set unless the value is null or false
  precision,  ///< a precision such as "bf16-mixed", "16" or "32"
  optimizer   ///< the name of the optimizer; a distributed optimizer shards its state
};

/// A key whose name differs from the flag's name.
struct Alias {
  std::string_view key;
  std::string_view flag;
  Meaning meaning = Meaning::value;
};

constexpr std::array aliases{
    Alias{"model.encoder_seq_length", "--seq-length"},
    Alias{"dataset.sequence_length", "--seq-length"},
    Alias{"dataset.seq_length", "--seq-length"},
    Alias{"model.num_moe_experts", "--num-experts"},
    Alias{"model.override_vocab_size", "--vocab-size"},
    Alias{"model.virtual_pipeline_model_parallel_size", "--num-virtual-stages-per-pipeline-rank"},
    Alias{"model.activations_checkpoint_granularity", "--recompute-granularity"},
    Alias{"trainer.devices", "--nproc-per-node"},
    Alias{"trainer.num_nodes", "--nnodes"},
    Alias{"model.gated_linear_unit", "--swiglu", Meaning::on},
    Alias{"model.activation", "--swiglu", Meaning::gated},
    Alias{"model.add_bias_linear", "--disable-bias-linear", Meaning::off},
    Alias{"model.bias", "--disable-bias-linear", Meaning::off},
    Alias{"model.share_embeddings_and_output_weights", "--untie-embeddings-and-output-weights", Meaning::off},
    Alias{"model.ub_tp_comm_overlap", "--tp-comm-overlap", Meaning::on},
    Alias{"model.use_flash_attention", "--use-flash-attn", Meaning::on},
    Alias{"ddp.grad_reduce_in_fp32", "--grad-reduce-in-bf16", Meaning::off},
    Alias{"mixed_precision.grad_reduce_in_fp32", "--grad-reduce-in-bf16", Meaning::off},
    Alias{"model.normalization", "--normalization", Meaning::norm},
    Alias{"model.num_query_groups", "--num-query-groups", Meaning::groups},
    Alias{"model.fp8", "--fp8-format", Meaning::fp8},
    Alias{"mixed_precision.fp8", "--fp8-format", Meaning::fp8},
    Alias{"mixed_precision", "--bf16", Meaning::precision},
    Alias{"trainer.precision", "--bf16", Meaning::precision},
    Alias{"model.precision", "--bf16", Meaning::precision},
    Alias{"model.optim.name", "--optimizer", Meaning::optimizer},
    Alias{"optimizer.optimizer", "--optimizer", Meaning::optimizer}};

/// Sections whose keys are named like flags. If two sections give a flag different values, the later section wins. A
/// switch is set if any section sets it.
constexpr std::array<std::string_view, 7> sections{"model", "train",        "optimizer",      "ddp",
                                                   "dist",  "comm_overlap", "mixed_precision"};

std::string_view section_of(std::string_view key) { return key.substr(0, key.find('.')); }

/// Returns the name after the section: "init_method" for "model.init_method.std". Returns the whole key for
/// "model.optim.lr" and for keys outside these sections.
std::string_view name_of(std::string_view key) {
  const std::string_view section = section_of(key);
  if (key.starts_with("model.optim.")) {
    return key;  // some keys of this section change the communication
  }
  if (section.size() == key.size() || std::ranges::find(sections, section) == sections.end()) {
    return key;
  }
  return section_of(key.substr(section.size() + 1));
}

const Alias* find_alias(std::string_view key) {
  const auto* const alias = std::ranges::find(aliases, key, &Alias::key);
  return alias == aliases.end() ? nullptr : alias;
}

/// Returns the key of a flag for messages.
std::string spelling_of(std::string_view flag) {
  if (flag == "--micro-batch-size" || flag == "--global-batch-size" || flag == "--vocab-size") {
    return key_of(flag);  // these keys are not in section `model`
  }
  return "model." + key_of(flag);
}

/// Replaces a relative reference such as ${.hidden_size}, which names a key of the same section, by the absolute one.
std::string absolute(const std::string& text, std::string_view key) {
  if (!text.starts_with("${.")) {
    return text;
  }
  return fmt::format("${{{}{}", key.substr(0, std::min(key.rfind('.'), key.size())), text.substr(2));
}

/// Resolves references such as ${model.hidden_size}, also through a chain of references.
class Interpolation {
 public:
  explicit Interpolation(const KeyedFile& file) : file_(&file) {}

  /// Returns the value to which a reference leads, and a string without references unchanged. Returns nothing if the
  /// text contains more than a reference, or if the reference does not lead to a scalar within eight steps.
  [[nodiscard]] std::optional<std::string> operator()(const std::string& text) const {
    std::string value = text;
    constexpr int longest_chain = 8;
    for (int i = 0; i < longest_chain; ++i) {
      if (value.find("${") == std::string::npos) {
        return value;
      }
      if (!value.starts_with("${") || value.find('}') != value.size() - 1) {
        return std::nullopt;
      }
      const std::string name = value.substr(2, value.size() - 3);
      const auto& entries = file_->entries();
      const auto entry = entries.find(name);
      if (entry == entries.end() || entry->second.kind != EntryKind::scalar) {
        return std::nullopt;
      }
      value = absolute(entry->second.text, name);
    }
    return std::nullopt;
  }

 private:
  const KeyedFile* file_;
};

/// Requests all readable keys, so that note_unread() can distinguish misspellings from unknown keys.
void request_all_keys(KeyedFile& file) {
  for (const Alias& alias : aliases) {
    file.find(alias.key);
  }
  for (const std::string_view flag : read_flags()) {
    file.find("model." + key_of(flag));
  }
}

/// Converts keys to flags.
class Reader {
 public:
  Reader(KeyedFile& file, Arguments& arguments, std::vector<std::string>& notes)
      : file_(file), arguments_(arguments), notes_(notes) {}

  void read() {
    for (const std::string_view section : sections) {
      read_section(section);
    }
    read_section("trainer");
    read_section("dataset");
    read_padding();
  }

 private:
  void read_section(std::string_view section) {
    std::vector<std::string> keys;
    for (const auto& [key, entry] : file_.entries()) {
      if (section_of(key) == section) {
        keys.push_back(key);
      }
    }
    for (const std::string& key : keys) {
      read_key(key, section);
    }
  }

  void read_key(const std::string& key, std::string_view section) {
    const Alias* const alias = find_alias(key);
    const bool has_names = std::ranges::find(sections, section) != sections.end();
    const std::string flag = alias != nullptr                           ? std::string(alias->flag)
                             : has_names && key.size() > section.size() ? flag_of(key.substr(section.size() + 1))
                                                                        : std::string();
    if (!flag.empty() && misspelled(flag)) {
      arguments_.set(flag, {"", file_.entries().at(key).where, key});  // for a message if the right key is missing
    }
    if (flag.empty() || !is_read(flag)) {
      return;
    }
    const Entry entry = first_of_list(*file_.find(key), flag);
    if (entry.kind == EntryKind::null || entry.text == "???") {
      return;
    }
    const Meaning default_meaning = is_switch(flag) ? Meaning::on : Meaning::value;
    const Meaning meaning = alias != nullptr ? alias->meaning : default_meaning;
    const bool keeps_text = meaning == Meaning::value || meaning == Meaning::groups;  // Arguments expands the text.
    take(keeps_text ? entry : expanded(entry), flag, meaning);
  }

  /// Returns the entry with the value of the key to which its text refers. Throws ConfigError without such a value.
  [[nodiscard]] Entry expanded(Entry entry) const {
    std::optional<std::string> value = arguments_.dialect().expand(absolute(entry.text, entry.key));
    if (!value) {
      KeyedFile::wrong(entry, fmt::format("is {}, whose value this file does not set; write the value instead",
                                          in_quotes(entry.text)));
    }
    entry.text = *std::move(value);
    return entry;
  }

  /// Two settings may be lists: the exchange of keys, by layer, and the context ranks, by level. Returns the first
  /// value of such a list, which is enough, and any other entry unchanged.
  Entry first_of_list(Entry entry, std::string_view flag) {
    const bool is_by_layer = flag == "--cp-comm-type";
    const bool may_be_list = is_by_layer || flag == "--hierarchical-context-parallel-sizes";
    if (!may_be_list || entry.kind != EntryKind::list || entry.items.empty()) {
      return entry;
    }
    const std::string first = entry.items.front();
    if (is_by_layer && std::ranges::any_of(entry.items, [&](const std::string& item) { return item != first; })) {
      notes_.push_back(fmt::format("{} differs between layers: {} is assumed for all", entry.key, in_quotes(first)));
    }
    entry.kind = EntryKind::scalar;
    entry.text = first;
    return entry;
  }

  void take(const Entry& entry, const std::string& flag, Meaning meaning) {
    if (entry.kind != EntryKind::scalar) {
      KeyedFile::wrong(entry, "is a list or a map; write one value");
    }
    switch (meaning) {
      case Meaning::value: set(flag, entry, entry.text); break;
      case Meaning::on: set_if(KeyedFile::flag(entry), flag, entry); break;
      case Meaning::off: set_if(!KeyedFile::flag(entry), flag, entry); break;
      case Meaning::gated: set_if(entry.text.find("glu") != std::string::npos, flag, entry); break;
      case Meaning::norm: set(flag, entry, norm_of(entry.text)); break;
      case Meaning::groups:
        set("--group-query-attention", entry, "");
        set(flag, entry, entry.text);
        break;
      case Meaning::fp8: set_if(truth_of(entry.text) != false, flag, entry); break;
      case Meaning::precision: take_precision(entry); break;
      case Meaning::optimizer: take_optimizer(entry); break;
    }
  }

  /// Converts NeMo's names of the two norms to Megatron's.
  static std::string norm_of(const std::string& word) {
    return word == "rmsnorm" ? "RMSNorm" : word.find("layernorm") != std::string::npos ? "LayerNorm" : word;
  }

  /// Reads values such as "bf16-mixed", "16" and "bf16_with_fp8_delayed_scaling_mixed".
  void take_precision(const Entry& entry) {
    const std::string& text = entry.text;
    const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
    set_if(has("fp8"), "--fp8-format", entry);
    set_if(has("bf16") || has("bfloat16"), "--bf16", entry);
    const bool is_fp16 = text == "16" || has("fp16") || has("float16") || text.starts_with("16-");
    set_if(is_fp16 && !has("bf16") && !has("bfloat16"), "--fp16", entry);
    if (!arguments_.has("--bf16") && !arguments_.has("--fp16") && !arguments_.has("--fp8-format") && !has("32")) {
      KeyedFile::wrong(entry, fmt::format("is {}; write bf16-mixed, 16-mixed or 32", in_quotes(text)));
    }
  }

  void take_optimizer(const Entry& entry) {
    const std::string& text = entry.text;
    const bool is_distributed = text.find("distributed") != std::string::npos;
    set_if(is_distributed, "--use-distributed-optimizer", entry);
    set("--optimizer", entry, is_distributed || text == "fused_adam" || text == "megatron_fused_adam" ? "adam" : text);
  }

  void set_if(bool is_set, const std::string& flag, const Entry& entry) {
    if (is_set) {
      set(flag, entry, "");
    }
  }

  void set(const std::string& flag, const Entry& entry, const std::string& text) {
    const Argument* const before = arguments_.find(flag);
    const std::string value = absolute(text, entry.key);
    const auto& expand = arguments_.dialect().expand;
    if (before != nullptr && before->text != value && expand(before->text) != expand(value)) {
      notes_.push_back(fmt::format("{} is {}, and {} is {}: the latter is used", before->spelling,
                                   in_quotes(before->text), entry.key, in_quotes(text)));
    }
    arguments_.set(flag, {value, entry.where, entry.key});
  }

  /// Uses the vocabulary size as the padded size if should_pad_vocab is false.
  void read_padding() {
    const Entry* const pads = file_.find("model.should_pad_vocab");
    const Argument* const vocab = arguments_.find("--vocab-size");
    if (pads != nullptr && pads->kind != EntryKind::null && !KeyedFile::flag(*pads) && vocab != nullptr) {
      arguments_.set("--padded-vocab-size", *vocab);
    }
  }

  KeyedFile& file_;
  Arguments& arguments_;
  std::vector<std::string>& notes_;
};

/// Applies a Hydra override: "key=value", "+key=value", "++key=value" or "~key".
void override_key(KeyedFile& file, std::string_view word) {
  if (word.starts_with('~')) {
    file.remove(word.substr(1, word.find('=') - 1));
    return;
  }
  const std::size_t begin = std::min(word.find_first_not_of('+'), word.size());
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals <= begin) {
    throw ConfigError(fmt::format("{} changes no key; write one, as in model.num_layers=2", in_quotes(word)));
  }
  const std::string key(word.substr(begin, equals - begin));
  std::string_view value = word.substr(equals + 1);
  const bool is_quoted =
      value.size() > 1 && (value.front() == '\'' || value.front() == '"') && value.back() == value.front();
  const bool is_null = !is_quoted && (value == "null" || value.empty());
  value = is_quoted ? value.substr(1, value.size() - 2) : value;
  file.remove(key);
  file.put({key, is_null ? EntryKind::null : EntryKind::scalar, std::string(value), {}, in_quotes(word)});
}

constexpr std::array irrelevant_nemo_keys{
    Irrelevant{
        "checkpoints, logging and checks",
        "checkpoint.* exp_manager.* logger.* profiling.* rerun_state_machine.* straggler.* nvrx_straggler.* ft.* "
        "inprocess_restart.* tensor_inspect.* run.* job_type name restore_from_path hydra.* defaults"},
    Irrelevant{"data, tokens and training hyperparameters",
               "dataset.* tokenizer.* rng.* scheduler.* validation.* trainer.max_* trainer.val_* trainer.limit_* "
               "trainer.log_* trainer.gradient_clip_val trainer.check_val_*"},
    Irrelevant{
        "parts of PyTorch Lightning",
        "trainer.accelerator trainer.logger trainer.enable_* trainer.replace_sampler_ddp trainer.use_distributed_* "
        "trainer.benchmark trainer.strategy trainer.callbacks trainer.plugins trainer.num_sanity_val_steps "
        "trainer.resume_from_checkpoint trainer.deterministic"},
    Irrelevant{"training hyperparameters, and the kernel and buffers of the optimizer",
               "model.optim.lr model.optim.weight_decay model.optim.betas model.optim.eps model.optim.sched.* "
               "model.optim.bucket_cap_mb model.optim.contiguous_* model.optim.capturable model.optim.adam_w_mode "
               "model.optim.bias_correction model.optim.average_grad_sync model.optim.pipeline_size "
               "model.optim.min_lr model.optim.momentum model.optim.nesterov model.optim.amsgrad"},
    Irrelevant{"Python objects in the file", "_target_ *._target_ *._call_ *._args_ *._partial_"}};

/// Options of NVIDIA/apex, apex/contrib/optimizers/distributed_fused_adam.py.
constexpr std::array unsupported_optimizer_keys{
    Unsupported{"model.optim.overlap_grad_sync", "gradients are reduced during the backward pass", "true"},
    Unsupported{"model.optim.overlap_param_sync", "the ZeRO stage determines when weights are gathered"},
    Unsupported{"model.optim.grad_sync_dtype", "gradients are reduced in 32 bits", "fp32 float32 32 torch.float32"},
    Unsupported{"model.optim.param_sync_dtype", "weights are gathered in their dtype"},
    Unsupported{"model.optim.dtype", "the optimizer keeps 32-bit states", "fp32 float32 32 torch.float32"},
    Unsupported{"model.optim.with_scaled_states", "the optimizer keeps 32-bit states"},
    Unsupported{"model.optim.store_params", "the optimizer keeps 32-bit weights", "true"},
    Unsupported{"model.optim.store_param_remainders", "the optimizer keeps 32-bit weights"},
    Unsupported{"model.optim.distribute_within_nodes", "all replicas share the optimizer's state"},
    Unsupported{"model.optim.nccl_ub", "collectives take the times of the machine's table"}};

constexpr std::string_view all_forward = "megatron-bridge overlaps every GEMM of a forward pass where that saves time";

/// Keys of Megatron-Core's ModelParallelConfig that have an effect only with tp_comm_overlap.
constexpr std::array unsupported_overlap_keys{
    Unsupported{"tp_comm_overlap_ag", all_forward, "true"},
    Unsupported{"tp_comm_overlap_rs", all_forward, "true"},
    Unsupported{"tp_comm_split_ag", all_forward, "true"},
    Unsupported{"tp_comm_split_rs", all_forward, "true"},
    Unsupported{"tp_comm_overlap_disable_qkv", all_forward},
    Unsupported{"tp_comm_overlap_disable_fc1", all_forward},
    Unsupported{"tp_comm_bulk_dgrad", "gradients of column-parallel inputs overlap the gather of these inputs", "true"},
    Unsupported{"tp_comm_bulk_wgrad", "gradients of column-parallel weights overlap the inputs' reduce-scatter",
                "true"},
    Unsupported{"tp_comm_overlap_rs_dgrad", "gradients of column-parallel weights overlap the inputs' reduce-scatter"}};

/// Adds a note if the file chooses methods of overlap for single GEMMs.
void note_overlap_methods(const KeyedFile& file, std::vector<std::string>& notes) {
  const auto chosen = std::ranges::find_if(file.entries(), [](const auto& entry) {
    const std::string_view name = name_of(entry.first);
    return (name == "tp_comm_overlap_cfg" || name == "ub_tp_comm_overlap_cfg") && entry.second.kind != EntryKind::null;
  });
  if (chosen != file.entries().end()) {
    notes.push_back(fmt::format("{}: the methods of {} are not used: {}", chosen->second.where,
                                in_quotes(name_of(chosen->first)), all_forward));
  }
}

/// Looks up keys of `sections` by their name after the section, and all other keys by their whole name.
void note_unread_keys(const KeyedFile& file, bool overlaps, std::vector<std::string>& notes) {
  const KeyLists lists = megatron_keys();
  std::vector<Irrelevant> ignored(lists.irrelevant.begin(), lists.irrelevant.end());
  ignored.insert(ignored.end(), irrelevant_nemo_keys.begin(), irrelevant_nemo_keys.end());
  std::vector<Unsupported> unsupported(lists.unsupported.begin(), lists.unsupported.end());
  unsupported.insert(unsupported.end(), unsupported_optimizer_keys.begin(), unsupported_optimizer_keys.end());
  if (overlaps) {
    unsupported.insert(unsupported.end(), unsupported_overlap_keys.begin(), unsupported_overlap_keys.end());
    note_overlap_methods(file, notes);
  }
  note_unread(file, {ignored, unsupported}, notes, name_of);
}

/// Returns whether the file sets overlap_grad_reduce. By default, gradients are reduced during the backward pass.
bool sets_overlap(const KeyedFile& file) {
  return std::ranges::any_of(file.entries(), [](const auto& entry) {
    return entry.first.ends_with(".overlap_grad_reduce") && entry.second.kind == EntryKind::scalar;
  });
}

Dialect dialect_of(const KeyedFile& file) {
  return {.origin = "From a NeMo configuration.",
          .missing =
              "recipes of Megatron-Bridge are Python, which is not supported: give the run_config.yaml that a run "
              "saves, or add the key",
          .processes = "trainer.num_nodes, trainer.devices or --gpus",
          .noun = "keys",
          .known_as = "a key of NeMo",
          .spelling = spelling_of,
          .overlap_flag = sets_overlap(file) ? "--overlap-grad-reduce" : "",
          .framework = "megatron-lm",
          .framework_with_overlap = "megatron-bridge",
          .expand = Interpolation(file)};
}

}  // namespace

Imported read_nemo(const Source& source) {
  if (source.path.ends_with(".py")) {
    throw ConfigError(
        fmt::format("{}: recipes in Python are not supported; give the run_config.yaml that a run of it saves "
                    "next to its checkpoints",
                    source.path));
  }
  KeyedFile file = read_yaml(source.path);
  for (const std::string& word : source.options.words("OVERRIDES")) {
    override_key(file, word);
  }
  Arguments arguments(source.path, dialect_of(file));
  std::vector<std::string> notes;
  request_all_keys(file);
  Reader(file, arguments, notes).read();
  if (const std::optional<std::int64_t> gpus = source.options.count("--gpus", gpus_range)) {
    arguments.set("--nnodes", {"1", "command line", "--gpus"});
    arguments.set("--nproc-per-node", {fmt::format("{}", *gpus), "command line", "--gpus"});
  }
  if (!arguments.has("--num-experts")) {
    file.find("model.expert_tensor_parallel_size");  // changes experts only
  }
  Imported import = import_of(arguments, source.name);
  import.notes.insert(import.notes.begin(), notes.begin(), notes.end());
  note_unread_keys(file, arguments.has("--tp-comm-overlap"), import.notes);
  return import;
}

bool is_nemo(std::string_view text) { return text.find("tensor_model_parallel_size:") != std::string_view::npos; }

}  // namespace commfuse::import
