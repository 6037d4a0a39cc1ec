// SPDX-License-Identifier: Apache-2.0
// Flags and defaults: NVIDIA/Megatron-LM, megatron/training/arguments.py.
#include "sim/import/megatron.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "model/check.h"
#include "model/config/field.h"
#include "model/config/load_model.h"
#include "model/config/settings.h"
#include "model/config_error.h"
#include "model/text/files.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "sim/import/key_lists.h"
#include "sim/import/megatron_arguments.h"
#include "sim/import/megatron_flags.h"
#include "sim/import/shell_words.h"
#include "sim/import/step_settings.h"

namespace commfuse::import {

namespace {

/// Returns the remedy "write --flag", in the spelling of the source.
std::string written(const Arguments& arguments, std::string_view flag) {
  return fmt::format("write {}", arguments.spelled(flag));
}

std::string experts_of(const Arguments& arguments, std::int64_t ffn) {
  const std::optional<std::int64_t> count = arguments.count("--num-experts", expert_range);
  if (!count) {
    return {};
  }
  return fmt::format("experts:\n  count: {}\n  active: {}\n  ffn: {}\n", *count,
                     arguments.count("--moe-router-topk", expert_range).value_or(2),
                     arguments.count("--moe-ffn-hidden-size", model_size_range).value_or(ffn));
}

/// Returns the number of rows in the embedding: --padded-vocab-size, or --vocab-size padded so that every tensor rank
/// has an equal number of whole blocks (128 rows by default).
std::int64_t padded_vocab(const Arguments& arguments, std::vector<std::string>& notes) {
  if (const auto padded = arguments.count("--padded-vocab-size", vocab_range)) {
    return *padded;
  }
  constexpr std::int64_t gpt_2 = 50257;
  const std::optional<std::int64_t> given = arguments.count("--vocab-size", vocab_range);
  if (!given) {
    notes.push_back(fmt::format("{} is missing, because the tokenizer defines it: {}, as in GPT-2, is assumed",
                                arguments.spelled("--vocab-size"), gpt_2));
  }
  const std::int64_t unit = arguments.count("--make-vocab-size-divisible-by", vocab_range).value_or(128) *
                            arguments.count("--tensor-model-parallel-size", range_of("ranks")).value_or(1);
  return arguments.derived("rows of the embedding", (given.value_or(gpt_2) + unit - 1) / unit * unit, vocab_range,
                           fmt::format("make {} smaller", arguments.spelled("--make-vocab-size-divisible-by")));
}

/// Returns --ffn-hidden-size. Its default is 4 x hidden; for a gated MLP two thirds of that, rounded down to a multiple
/// of 64, so that the MLP has about as many weights.
std::int64_t ffn_of(const Arguments& arguments, std::int64_t hidden) {
  const std::int64_t default_columns = arguments.has("--swiglu") ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden;
  const std::optional<std::int64_t> given = arguments.count("--ffn-hidden-size", model_size_range);
  return given ? *given
               : arguments.derived("columns of the MLP", default_columns, model_size_range,
                                   written(arguments, "--ffn-hidden-size"));
}

std::int64_t head_dim_of(const Arguments& arguments, std::int64_t hidden, std::int64_t heads) {
  const std::optional<std::int64_t> given = arguments.count("--kv-channels", head_range);
  if (!given && hidden % heads != 0) {
    arguments.wrong("--num-attention-heads",
                    fmt::format("is {}, which does not divide {} {} evenly; write one that "
                                "does, or {}",
                                heads, arguments.spelled("--hidden-size"), hidden, arguments.spelled("--kv-channels")));
  }
  return given
             ? *given
             : arguments.derived("columns of a head", hidden / heads, head_range, written(arguments, "--kv-channels"));
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

/// Returns the line of the model file about learned positions; empty if positions are not learned.
std::string positions_of(const Arguments& arguments) {
  const bool are_learned =
      arguments.text("--position-embedding-type").value_or("learned_absolute") == "learned_absolute";
  if (!are_learned || arguments.has("--use-rotary-position-embeddings") || arguments.has("--no-position-embedding")) {
    return {};
  }
  const std::int64_t seq = arguments.required("--seq-length", range_of("seq"));
  const std::optional<std::int64_t> given = arguments.count("--max-position-embeddings", model_size_range);
  return fmt::format("positions: {}\n", given ? *given
                                              : arguments.derived("learned positions", seq, model_size_range,
                                                                  written(arguments, "--max-position-embeddings")));
}

/// Returns our name for the norm.
std::string_view norm_of(const Arguments& arguments, std::vector<std::string>& notes) {
  const std::string norm = arguments.text("--normalization").value_or("LayerNorm");
  if (norm != "LayerNorm" && norm != "RMSNorm") {
    notes.push_back(fmt::format("{} {} has no counterpart: LayerNorm is assumed", arguments.spelled("--normalization"),
                                in_quotes(norm)));
  }
  return norm == "RMSNorm" ? "rms" : "layer";
}

std::string model_of(const Arguments& arguments, const std::string& name, std::vector<std::string>& notes) {
  const std::int64_t hidden = arguments.required("--hidden-size", model_size_range);
  const std::int64_t heads = arguments.required("--num-attention-heads", head_range);
  const std::int64_t ffn = ffn_of(arguments, hidden);
  const std::string text = fmt::format(
      "# {}\nschema: commfuse.model/1\nname: {}\nlayers: {}\nhidden: {}\nffn: {}\n"
      "heads: {}\nkv_heads: {}\nhead_dim: {}\nvocab: {}\ngated_mlp: {}\nnorm: {}\nbiases: {}\ntied_embeddings: {}\n",
      arguments.dialect().origin, yaml_scalar(name), arguments.required("--num-layers", layer_range), hidden, ffn,
      heads, kv_heads_of(arguments, heads), head_dim_of(arguments, hidden, heads), padded_vocab(arguments, notes),
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

/// Returns the number of replicas among torchrun's processes. Returns 1, with a note, if the number of processes is
/// unknown or does not make whole replicas. Throws ConfigError instead if --gpus sets this number.
std::int64_t replicas_of(const Arguments& arguments, std::int64_t ranks_per_replica, std::vector<std::string>& notes) {
  const auto either = [&](std::string_view a, std::string_view b) {
    return arguments.count(arguments.has(a) ? a : b, range_of("parallel.data"));
  };
  const auto nodes = either("--nnodes", "--num-nodes");
  const auto processes_per_node = either("--nproc-per-node", "--nproc_per_node");
  if (!processes_per_node) {
    notes.push_back(fmt::format("the number of processes is not given ({}): one replica is assumed",
                                arguments.dialect().processes));
    return 1;
  }
  const std::int64_t processes = *processes_per_node * nodes.value_or(1);
  if (processes % ranks_per_replica != 0 && arguments.spelled("--nproc-per-node") == "--gpus") {
    arguments.wrong("--nproc-per-node",
                    fmt::format("is {}, not a multiple of the {} GPUs of a replica; choose a multiple", processes,
                                ranks_per_replica));
  }
  if (processes % ranks_per_replica != 0) {
    std::string processes_text = arguments.dialect().processes;
    processes_text.replace(processes_text.find(", "), 2, " x ");
    notes.push_back(fmt::format("{} x {} processes ({}) do not form whole replicas of {} ranks: one replica is assumed",
                                nodes.value_or(1), *processes_per_node, processes_text, ranks_per_replica));
    return 1;
  }
  return arguments.derived("replicas", processes / ranks_per_replica, range_of("parallel.data"),
                           "choose fewer processes, or larger replicas");
}

std::string recompute_of(const Arguments& arguments) {
  constexpr std::string_view flag = "--recompute-granularity";
  const std::string granularity = arguments.text(flag).value_or("none");
  const Field* const setting = find_field("step.recompute");
  check(setting != nullptr, "recomputation is a setting");
  if (const std::optional<std::string> mistake = mistake_in(*setting, granularity)) {
    arguments.wrong(flag, fmt::format("is wrong: {}", *mistake));
  }
  return arguments.has("--recompute-activations") && granularity == "none" ? "selective" : granularity;
}

/// Returns the number of chunks per stage. As in Megatron, embedding and loss may each count as a layer.
std::int64_t interleave_of(const Arguments& arguments, std::int64_t pipeline) {
  if (const auto chunks = arguments.count("--num-virtual-stages-per-pipeline-rank", range_of("parallel.interleave"))) {
    return *chunks;
  }
  const auto layers = arguments.count("--num-layers-per-virtual-pipeline-stage", layer_range);
  if (!layers) {
    return 1;
  }
  const std::int64_t divided = arguments.required("--num-layers", layer_range) +
                               (arguments.has("--account-for-embedding-in-pipeline-split") ? 1 : 0) +
                               (arguments.has("--account-for-loss-in-pipeline-split") ? 1 : 0);
  return arguments.derived("chunks of a stage", std::max<std::int64_t>(1, divided / pipeline / *layers),
                           range_of("parallel.interleave"),
                           fmt::format("make {} larger", arguments.spelled("--num-layers-per-virtual-pipeline-stage")));
}

/// Returns --global-batch-size. Its default is one micro-batch per replica.
std::int64_t batch_of(const Arguments& arguments, std::int64_t micro, std::int64_t data) {
  const Counts range = range_of("batch");
  const std::optional<std::int64_t> given = arguments.count("--global-batch-size", range);
  return given ? *given
               : arguments.derived("sequences of a batch", micro * data, range,
                                   written(arguments, "--global-batch-size"));
}

/// Returns the ZeRO stage. Without a sharding strategy, Megatron's FSDP shards nothing, while PyTorch's FSDP shards
/// optimizer state, gradients and weights.
int zero_of(const Arguments& arguments) {
  const bool has_fsdp = arguments.has("--use-megatron-fsdp") || arguments.has("--use-custom-fsdp");
  if (!has_fsdp && !arguments.has("--use-torch-fsdp2")) {
    return arguments.has("--use-distributed-optimizer") ? 1 : 0;
  }
  constexpr std::array<std::string_view, 4> strategies{"no_shard", "optim", "optim_grads", "optim_grads_params"};
  constexpr std::string_view flag = "--data-parallel-sharding-strategy";
  const std::string strategy = arguments.text(flag).value_or(has_fsdp ? "no_shard" : "optim_grads_params");
  const auto* const match = std::ranges::find(strategies, strategy);
  if (match == strategies.end()) {
    arguments.wrong(flag,
                    fmt::format("is {}; {}", in_quotes(strategy), remedy_for(strategy, strategies, "strategies")));
  }
  return static_cast<int>(match - strategies.begin());
}

bool is_sgd(const Arguments& arguments, std::vector<std::string>& notes) {
  const std::string name = arguments.text("--optimizer").value_or("adam");
  if (name != "adam" && name != "adamw" && name != "sgd") {
    notes.push_back(
        fmt::format("{} {} has no counterpart: Adam is assumed", arguments.spelled("--optimizer"), in_quotes(name)));
  }
  return name == "sgd";
}

/// Returns the value of a flag; nothing if the flag is missing or its value has an unknown variable.
std::optional<std::string> word_of(const Arguments& arguments, std::string_view flag) {
  const Argument* const argument = arguments.find(flag);
  return argument == nullptr ? std::nullopt : arguments.dialect().expand(argument->text);
}

/// Returns whether the dropout probability of a flag is above 0. Megatron-LM's default is 0.1.
bool drops(const Arguments& arguments, std::string_view flag, std::vector<std::string>& notes) {
  if (!arguments.has(flag)) {
    return true;
  }
  const std::optional<std::string> word = word_of(arguments, flag);
  const std::optional<double> share = word ? parse_number(*word) : std::nullopt;
  if (!share) {
    notes.push_back(fmt::format("{} {} is not a number: its default of 0.1 is assumed", arguments.spelled(flag),
                                in_quotes(arguments.find(flag)->text)));
  }
  return share.value_or(0.1) > 0.0;
}

/// Transformer Engine and FlashAttention do not write attention scores to memory; Megatron-LM's own layers do.
bool has_fused_attention(const Arguments& arguments) {
  const std::string backend = word_of(arguments, "--attention-backend").value_or("auto");
  const bool is_local = word_of(arguments, "--transformer-impl").value_or("transformer_engine") == "local";
  const bool is_unfused = backend == "unfused" || backend == "local" || (is_local && backend == "auto");
  return !is_unfused || arguments.has("--use-flash-attn");
}

/// Gradients use 32 bits unless --grad-reduce-in-bf16 is set, or fp16 is on without a flag that requests 32 bits
/// (megatron/training/arguments.py). With --grad-reduce-in-bf16, gradients have the dtype of the weights, whatever the
/// name of the flag says (megatron/core/distributed/distributed_data_parallel.py).
std::string gradient_dtype_of(const Arguments& arguments, std::string_view dtype) {
  if (dtype == "fp32") {
    return "fp32";
  }
  if (dtype == "fp16") {
    const bool is_wide =
        arguments.has("--accumulate-allreduce-grads-in-fp32") && !arguments.has("--grad-reduce-in-bf16");
    return is_wide ? "fp32" : "fp16";
  }
  return arguments.has("--grad-reduce-in-bf16") ? "bf16" : "fp32";
}

/// By default, Megatron-LM reduces gradients after the backward pass; PyTorch's FSDP overlaps both.
bool overlaps_gradients(const Arguments& arguments) {
  const std::string& flag = arguments.dialect().overlap_flag;
  return flag.empty() || arguments.has(flag) || arguments.has("--use-torch-fsdp2");
}

constexpr auto context_exchange_types =
    std::to_array<std::string_view>({"p2p", "all_gather", "allgather", "a2a", "a2a+p2p"});

/// Reads how context ranks exchange keys and values; by default, all context ranks pass them around a ring. An
/// all-to-all makes context ranks Ulysses ranks. A hierarchy names the ranks of its all-to-alls first, then the ranks
/// of its ring.
void read_context_exchange(const Arguments& arguments, StepSettings& step, std::vector<std::string>& notes) {
  constexpr std::string_view flag = "--cp-comm-type";
  constexpr std::string_view sizes = "--hierarchical-context-parallel-sizes";
  constexpr auto& types = context_exchange_types;
  const std::string type = arguments.text(flag).value_or("p2p");
  if (std::ranges::find(types, type) == types.end()) {
    arguments.wrong(flag, fmt::format("is {}; {}", in_quotes(type), remedy_for(type, types, "types")));
  }
  step.context_exchange = type.starts_with("all") ? ContextExchange::all_gather : ContextExchange::ring;
  if (type == "a2a") {
    std::swap(step.ulysses, step.context);
  } else if (type == "a2a+p2p" && !arguments.has(sizes)) {
    notes.push_back(fmt::format("{} is a2a+p2p without {}: all context ranks pass keys and values around a ring",
                                arguments.spelled(flag), arguments.spelled(sizes)));
  } else if (type == "a2a+p2p") {
    step.ulysses = arguments.count(sizes, {1, step.context}).value_or(1);
    if (step.context % step.ulysses != 0) {
      arguments.wrong(sizes, fmt::format("begins with {}, which does not divide {} context ranks; write one that does",
                                         step.ulysses, step.context));
    }
    step.context /= step.ulysses;
  }
}

StepSettings step_of(const Arguments& arguments, std::vector<std::string>& notes) {
  const auto count = [&](std::string_view flag, std::string_view setting) {
    return arguments.count(flag, range_of(setting)).value_or(1);
  };
  StepSettings step;
  step.tensor = count("--tensor-model-parallel-size", "ranks");
  step.pipeline = count("--pipeline-model-parallel-size", "parallel.pipeline");
  step.context = count("--context-parallel-size", "parallel.context");
  step.micro_batch = count("--micro-batch-size", "step.micro_batch");
  step.data = replicas_of(arguments, step.tensor * step.pipeline * step.context, notes);
  read_context_exchange(arguments, step, notes);
  step.seq = arguments.required("--seq-length", range_of("seq"));
  step.batch = batch_of(arguments, step.micro_batch, step.data);
  step.dtype = dtype_of(arguments);
  step.sequence_parallel = arguments.has("--sequence-parallel");
  step.interleave = interleave_of(arguments, step.pipeline);
  step.experts = count("--expert-model-parallel-size", "parallel.experts");
  step.zero = zero_of(arguments);
  step.recompute = recompute_of(arguments);
  step.is_sgd = is_sgd(arguments, notes);
  // Ranks that share a sequence need Transformer Engine.
  step.fused_attention = step.context * step.ulysses > 1 || has_fused_attention(arguments);
  const bool drops_scores = drops(arguments, "--attention-dropout", notes);
  step.dropout = drops(arguments, "--hidden-dropout", notes) || (drops_scores && !step.fused_attention);
  step.gradient_dtype = gradient_dtype_of(arguments, step.dtype);
  step.overlap_gradients = overlaps_gradients(arguments);
  const Dialect& dialect = arguments.dialect();
  step.framework = arguments.has("--tp-comm-overlap") ? dialect.framework_with_overlap : dialect.framework;
  return step;
}

/// Throws ConfigError unless every rank has whole heads and whole experts.
void require_whole_shares(const Arguments& arguments, const StepSettings& step) {
  const auto require = [&](std::string_view flag, std::int64_t ranks, std::string_view shared, Counts range) {
    const std::optional<std::int64_t> count = arguments.count(shared, range);
    if (count && *count % ranks != 0) {
      arguments.wrong(flag, fmt::format("is {}, which does not divide {} {} evenly; write one that does", ranks,
                                        arguments.spelled(shared), *count));
    }
  };
  if (arguments.has("--tensor-model-parallel-size")) {
    require("--tensor-model-parallel-size", step.tensor, "--num-attention-heads", head_range);
  }
  if (arguments.has("--expert-model-parallel-size")) {
    require("--expert-model-parallel-size", step.experts, "--num-experts", expert_range);
  }
}

/// The first few distinct values of each flag, as written.
using Repeats = std::map<std::string, std::vector<std::string>>;

/// Returns the readable flags between `if` and `fi`, or `case` and `esac`, sorted by name.
std::vector<std::string> flags_in_branches(const std::vector<ShellWord>& words) {
  std::set<std::string> flags;
  int depth = 0;
  for (const ShellWord& word : words) {
    depth += word.text == "if" || word.text == "case" ? 1 : 0;
    depth -= depth > 0 && (word.text == "fi" || word.text == "esac") ? 1 : 0;
    const std::string flag = word.text.substr(0, word.text.find('='));
    if (depth > 0 && is_read(flag)) {
      flags.insert(flag);
    }
  }
  return {flags.begin(), flags.end()};
}

void remember(const std::string& flag, const std::string& value, Repeats& repeats) {
  constexpr std::size_t max_values = 8;
  std::vector<std::string>& values = repeats[flag];
  if (values.size() < max_values && std::ranges::find(values, value) == values.end()) {
    values.push_back(value);
  }
}

/// Returns for example "'1' or '2'", with long values truncated.
std::string choice_of(const std::vector<std::string>& values) {
  constexpr std::size_t longest = 60;
  std::vector<std::string> shown;
  for (const std::string& value : values) {
    shown.push_back(in_quotes(value.size() > longest ? value.substr(0, longest) + "..." : value));
  }
  return fmt::format("{}", fmt::join(shown, " or "));
}

/// Adds a sentence about the variables and flags that have several values in a script, because of branches or several
/// launches. Since the script is not run, the sentence states which value is used.
void note_repeats(std::string_view text, const Arguments& arguments, const Repeats& repeats,
                  std::vector<std::string>& notes) {
  constexpr std::size_t limit = 20;
  std::vector<std::string> remarks;
  for (const Reassigned& variable : reassigned(text)) {
    remarks.push_back(fmt::format("{} is {} ({} used)", variable.name, choice_of(variable.values),
                                  variable.holds_flags ? "the flags of all are" : "the last is"));
  }
  for (const auto& [flag, values] : repeats) {
    std::vector<std::string> different;
    for (const std::string& value : values) {
      std::string meant = arguments.dialect().expand(value).value_or(value);
      if (std::ranges::find(different, meant) == different.end()) {
        different.push_back(std::move(meant));
      }
    }
    if (different.size() > 1) {
      const std::string& last = arguments.find(flag)->text;
      remarks.push_back(fmt::format("{} is {} ({} is used)", flag, choice_of(different),
                                    choice_of({arguments.dialect().expand(last).value_or(last)})));
    }
  }
  if (const std::vector<std::string> branches = flags_in_branches(shell_words(text)); !branches.empty()) {
    remarks.push_back(fmt::format("used regardless of their branch's condition: {}", fmt::join(branches, ", ")));
  }
  if (arguments.has("--bf16") && arguments.has("--fp16")) {
    remarks.emplace_back("--bf16 and --fp16 are both given (--bf16 is used)");
  }
  if (!remarks.empty()) {
    const std::size_t shown = std::min(remarks.size(), limit);
    notes.push_back(fmt::format("the script is read, not run: {}{}", fmt::join(std::span(remarks).first(shown), "; "),
                                remarks.size() > limit ? fmt::format("; and {} more", remarks.size() - limit) : ""));
  }
}

/// Adds a sentence if --cp-comm-type names several types, one for each layer, of which only the first is used.
void note_exchanges_by_layer(const std::vector<ShellWord>& words, std::vector<std::string>& notes) {
  const auto flag = std::ranges::find(words, "--cp-comm-type", &ShellWord::text);
  if (flag == words.end() || flag + 1 == words.end()) {
    return;
  }
  const std::string& first = (flag + 1)->text;
  for (auto word = flag + 2; word != words.end(); ++word) {
    if (std::ranges::find(context_exchange_types, word->text) == context_exchange_types.end()) {
      return;
    }
    if (word->text != first) {
      notes.push_back(fmt::format("--cp-comm-type differs between layers: {} is assumed for all", in_quotes(first)));
      return;
    }
  }
}

/// Returns the flags of a string with their values. If a flag is repeated, its last value counts, as in Megatron.
Arguments arguments_of(std::string_view text, const std::string& path, Repeats& repeats) {
  const std::vector<ShellWord> words = shell_words(text);
  Arguments arguments(
      path,
      {.origin = "From a command line of Megatron-LM.",
       .missing = "give the whole command line, or the script that builds it",
       .processes = "--nnodes, --nproc-per-node of torchrun",
       .noun = "flags",
       .known_as = "a flag of Megatron-LM",
       .spelling = [](std::string_view flag) { return std::string(flag); },
       .overlap_flag = "--overlap-grad-reduce",
       .framework = "megatron-lm",
       .framework_with_overlap = "megatron-core-2024",
       .expand = [variables = assignments(words)](const std::string& word) { return expanded(word, variables); }});
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    if (!word.starts_with("--")) {
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    const bool has_value = !takes_no_value(flag) && i + 1 < words.size() && !words[i + 1].text.starts_with("--");
    const std::string value = equals != std::string::npos ? word.substr(equals + 1)
                              : has_value                 ? words[i + 1].text
                                                          : "";
    if (is_read(flag) && !is_switch(flag)) {
      remember(flag, value, repeats);
    }
    arguments.set(flag, {value, fmt::format("{}:{}", path, words[i].line), flag});
  }
  return arguments;
}

/// Adds a sentence for every flag that changes the work and has no counterpart, a sentence for every likely
/// misspelling, and a single sentence for all unknown flags.
void note_unsupported(const Arguments& arguments, std::vector<std::string>& notes) {
  const KeyLists lists = megatron_keys();
  std::vector<std::pair<const Unsupported*, const Argument*>> unsupported;
  std::vector<std::string> misspellings;
  std::vector<std::string> unknown;
  for (const auto& [flag, argument] : arguments.flags()) {
    const std::string key = key_of(flag);
    if (is_read(flag)) {
      continue;
    }
    if (const Unsupported* const match = find_unsupported(lists.unsupported, key)) {
      unsupported.emplace_back(match, &argument);
    } else if (const std::optional<std::string_view> meant = misspelled(flag)) {
      misspellings.push_back(
          fmt::format("{}: {} is unknown and ignored; did you mean '{}'?", argument.where, in_quotes(flag), *meant));
    } else if (why_irrelevant(lists.irrelevant, key).empty()) {
      unknown.push_back(in_quotes(flag));
    }
  }
  std::ranges::stable_sort(unsupported, {}, [](const auto& entry) { return entry.first; });  // in the order of the list
  for (const auto& [entry, argument] : unsupported) {
    if (!is_neutral(*entry, argument->text.empty() ? "true" : argument->text)) {
      notes.push_back(fmt::format("{} has no counterpart and is ignored: {}", argument->spelling, entry->instead));
    }
  }
  notes.insert(notes.end(), misspellings.begin(), misspellings.end());
  note_unknown(unknown, notes);
}

}  // namespace

Imported import_of(const Arguments& arguments, const std::string& name) {
  Imported import;
  import.model = model_of(arguments, name, import.notes);
  import.step = step_of(arguments, import.notes);
  import.origin = arguments.dialect().origin;
  require_whole_shares(arguments, import.step);
  return import;
}

Imported read_megatron(std::string_view text, const std::string& path, const std::string& name) {
  Repeats repeats;
  const Arguments arguments = arguments_of(text, path, repeats);
  Imported import = import_of(arguments, name);
  note_repeats(text, arguments, repeats, import.notes);
  note_exchanges_by_layer(shell_words(text), import.notes);
  note_unsupported(arguments, import.notes);
  return import;
}

Imported read_megatron(const Source& source) {
  constexpr std::string_view no_gathers = "--disable-tp-comm-overlap-ag";
  constexpr std::string_view no_scatters = "--disable-tp-comm-overlap-rs";
  const std::string text = read_small_file(source.path);
  Imported import = read_megatron(text, source.path, source.name);
  Repeats unused;
  const Arguments arguments = arguments_of(text, source.path, unused);
  const OverlapSwitches switches{.gathers = !arguments.has(no_gathers), .scatters = !arguments.has(no_scatters)};
  if (const std::optional<std::string> overlap = source.options.text("--overlap")) {
    add_overlap(*overlap, import, switches);
    if (!arguments.has("--tp-comm-overlap") && import.step.implementation_sites) {
      import.notes.push_back(fmt::format(
          "{} lacks --tp-comm-overlap, without which Megatron-LM overlaps none of the GEMMs of {}: add it to "
          "the script, or remove --overlap",
          source.path, *overlap));
    }
    return import;
  }
  if (arguments.has("--tp-comm-overlap-cfg")) {
    import.notes.emplace_back("the methods of --tp-comm-overlap-cfg are not used; add --overlap with that file");
  }
  if (arguments.has("--tp-comm-overlap")) {
    add_default_overlap(import, switches);
  }
  return import;
}

bool is_megatron(std::string_view text) {
  const auto has = [&](std::string_view flag) { return text.find(flag) != std::string_view::npos; };
  return has("--tensor-model-parallel-size") || (has("--num-layers") && has("--hidden-size"));
}

}  // namespace commfuse::import
