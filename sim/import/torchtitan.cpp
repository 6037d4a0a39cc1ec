// SPDX-License-Identifier: Apache-2.0
// Keys and defaults: pytorch/torchtitan, torchtitan/config/job_config.py; for older releases,
// torchtitan/config_manager.py and train_configs/*.toml. Flavors: torchtitan/models/*/__init__.py.
#include "sim/import/torchtitan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/load_model.h"
#include "model/config_error.h"
#include "model/text/counted.h"
#include "model/text/suggest.h"
#include "sim/import/key_lists.h"
#include "sim/import/keyed_file.h"
#include "sim/import/step_settings.h"
#include "sim/import/torchtitan_keys.h"

namespace commfuse::import {

namespace {

struct Flavor {
  std::string_view name;
  std::string_view flavor;
  std::string_view model;  ///< Model of the catalogue with the same sizes.
};

constexpr std::array flavors{Flavor{"llama2", "7B", "llama-2-7b"},
                             Flavor{"llama2", "13B", "llama-2-13b"},
                             Flavor{"llama2", "70B", "llama-2-70b"},
                             Flavor{"llama3", "8B", "llama-3.1-8b"},
                             Flavor{"llama3", "70B", "llama-3.1-70b"},
                             Flavor{"llama3", "405B", "llama-3.1-405b"},
                             Flavor{"llama4", "17bx128e", "llama-4-maverick"},
                             Flavor{"deepseek_v3", "671B", "deepseek-v3"},
                             Flavor{"qwen3", "32B", "qwen3-32b"},
                             Flavor{"qwen3", "30B-A3B", "qwen3-30b-a3b"}};

/// Suffixes of flavors that differ only in the attention kernel.
constexpr std::array<std::string_view, 4> kernels{"_flex_attn", "_varlen_attn", "_flex", "_varlen"};

std::string_view without_kernel(std::string_view flavor) {
  for (const std::string_view kernel : kernels) {
    if (flavor.ends_with(kernel)) {
      return flavor.substr(0, flavor.size() - kernel.size());
    }
  }
  return flavor;
}

std::string model_of(KeyedFile& file, const Options& options) {
  const std::string name = file.word({"model.name"}).value_or("llama3");
  const Entry* const entry = file.find("model.flavor");
  const std::string flavor = file.word({"model.flavor"}).value_or("debugmodel");
  if (std::optional<std::string> chosen = chosen_model(options)) {
    return *chosen;
  }
  const auto* const match = std::ranges::find_if(
      flavors, [&](const Flavor& known) { return known.name == name && known.flavor == without_kernel(flavor); });
  if (match == flavors.end()) {
    throw ConfigError(fmt::format("{}: no model in the catalogue is flavor {} of {}; add --model NAME",
                                  entry == nullptr ? file.path() : entry->where, in_quotes(flavor), in_quotes(name)));
  }
  return std::string(match->model);
}

/// Returns a degree of parallelism; 1 if it is missing. Its section depends on the release of torchtitan.
std::int64_t degree(KeyedFile& file, std::string_view name, std::string_view setting) {
  return file
      .count(
          {fmt::format("parallelism.{}", name), fmt::format("experimental.{}", name), fmt::format("training.{}", name)},
          range_of(setting))
      .value_or(1);
}

/// Returns the entry of a key in [parallelism], or in [experimental], where older releases have it.
const Entry* parallel_entry(KeyedFile& file, std::string_view name) {
  return file.first_of({fmt::format("parallelism.{}", name), fmt::format("experimental.{}", name)});
}

/// Returns how context ranks read each other's keys and values; by default, each rank gathers all of them.
ContextExchange context_exchange_of(KeyedFile& file) {
  const Entry* const entry = parallel_entry(file, "context_parallel_rotate_method");
  if (entry == nullptr || entry->text == "allgather") {
    return ContextExchange::all_gather;
  }
  if (entry->text != "alltoall") {
    KeyedFile::wrong(*entry, fmt::format("is {}; write allgather or alltoall", in_quotes(entry->text)));
  }
  return ContextExchange::ring;  // Every step rotates one block by an all-to-all with a single peer.
}

/// Division of the replicas into copies of the state, and into the ranks that shard each copy.
struct Replicas {
  std::int64_t copies = 1;
  std::int64_t shards = 1;
};

/// Returns the entry with the number of ranks over which FSDP shards; nullptr if FSDP shards over all remaining ranks.
const Entry* shards_entry(KeyedFile& file) {
  const Entry* const entry = file.first_of({"parallelism.data_parallel_shard_degree",
                                            "training.data_parallel_shard_degree", "training.data_parallel_degree"});
  return entry == nullptr || entry->text == "-1" ? nullptr : entry;
}

/// Returns the product of the degrees. Throws ConfigError if it exceeds the largest number of GPUs.
std::int64_t gpus_within(const KeyedFile& file, std::initializer_list<std::int64_t> degrees) {
  const std::optional<std::int64_t> gpus = product_within(gpus_range.most, degrees);
  if (!gpus) {
    throw ConfigError(fmt::format("{}: the parallel degrees multiply to more than {} GPUs; choose smaller ones",
                                  file.path(), gpus_range.most));
  }
  return *gpus;
}

Replicas replicas_of(KeyedFile& file, const Options& options, const StepSettings& step) {
  Replicas replicas{.copies = degree(file, "data_parallel_replicate_degree", "parallel.data")};
  const Entry* const given = shards_entry(file);
  const std::optional<std::int64_t> gpus = options.count("--gpus", gpus_range);
  const std::int64_t ranks = gpus_within(file, {step.tensor, step.context, step.pipeline, replicas.copies});
  if (given != nullptr) {
    replicas.shards = KeyedFile::count(*given, range_of("parallel.data"));
    const std::int64_t product = gpus_within(file, {ranks, replicas.shards});
    if (gpus && *gpus != product) {
      KeyedFile::wrong(*given, fmt::format("is {}, so the degrees multiply to {} GPUs, but --gpus is {}; remove --gpus",
                                           replicas.shards, product, *gpus));
    }
    return replicas;
  }
  if (!gpus) {
    throw ConfigError(fmt::format(
        "{}: parallelism.data_parallel_shard_degree is -1 or absent, which means all remaining GPUs; add --gpus N",
        file.path()));
  }
  if (*gpus % ranks != 0) {
    throw ConfigError(
        fmt::format("{}: --gpus {} is not a multiple of the {} GPUs that the other degrees require; choose a multiple",
                    file.path(), *gpus, ranks));
  }
  replicas.shards = *gpus / ranks;
  return replicas;
}

/// Returns the ZeRO stage. FSDP shards the weights again after the forward pass (ZeRO 3), or keeps them gathered until
/// the backward pass (like ZeRO 2).
int zero_of(KeyedFile& file, const Replicas& replicas, const StepSettings& step, std::vector<std::string>& notes) {
  const Entry* const entry = parallel_entry(file, "fsdp_reshard_after_forward");
  const std::string policy = entry == nullptr ? "default" : entry->text;
  constexpr std::array<std::string_view, 3> policies{"default", "always", "never"};
  if (std::ranges::find(policies, policy) == policies.end()) {
    KeyedFile::wrong(*entry, fmt::format("is {}; {}", in_quotes(policy), remedy_for(policy, policies, "policies")));
  }
  if (replicas.shards == 1 && step.context == 1) {
    return 0;
  }
  if (replicas.copies > 1) {
    notes.push_back(fmt::format("hybrid sharding ({} copies of {}) has no counterpart: all {} replicas share the state",
                                replicas.copies, counted(replicas.shards, "shard"), replicas.copies * replicas.shards));
  }
  return policy == "never" || (policy == "default" && step.pipeline > 1) ? 2 : 3;
}

struct Schedule {
  std::string_view name;
  int chunks = 1;  ///< per stage
  bool zero_bubble = false;
  std::string_view instead{};  ///< the replacement that is simulated; empty if the schedule itself is simulated
};

/// The schedules of torch.distributed.pipelining.schedules.
constexpr std::array schedules{
    Schedule{"1F1B", 1},
    Schedule{"GPipe", 1, false, "1F1B is simulated"},
    Schedule{"Interleaved1F1B", 2},
    Schedule{"LoopedBFS", 2, false, "interleaved 1F1B is simulated"},
    Schedule{"InterleavedZeroBubble", 2, false, "interleaved 1F1B is simulated, without deferred gradients of weights"},
    Schedule{"ZBVZeroBubble", 1, true, "ZB-H1 is simulated, with one chunk per stage"},
    Schedule{"DualPipeV", 1, true, "ZB-H1 is simulated, with one chunk per stage"}};

const Schedule& schedule_of(KeyedFile& file) {
  const Entry* const entry = parallel_entry(file, "pipeline_parallel_schedule");
  if (entry == nullptr) {
    return schedules.front();
  }
  const auto* const schedule = std::ranges::find(schedules, entry->text, &Schedule::name);
  if (schedule == schedules.end()) {
    std::vector<std::string_view> names;
    std::ranges::transform(schedules, std::back_inserter(names), &Schedule::name);
    KeyedFile::wrong(*entry,
                     fmt::format("is {}; {}", in_quotes(entry->text), remedy_for(entry->text, names, "schedules")));
  }
  return *schedule;
}

void read_pipeline(KeyedFile& file, std::string_view model, StepSettings& step, std::vector<std::string>& notes) {
  step.pipeline = degree(file, "pipeline_parallel_degree", "parallel.pipeline");
  const Schedule& schedule = schedule_of(file);
  const Entry* const layers = parallel_entry(file, "pipeline_parallel_layers_per_stage");
  const std::optional<std::int64_t> layers_per_stage =
      layers == nullptr ? std::nullopt : std::optional(KeyedFile::count(*layers, layer_range));
  if (step.pipeline == 1) {
    return;
  }
  step.zero_bubble = schedule.zero_bubble;
  step.interleave = schedule.chunks;
  if (layers_per_stage && schedule.chunks > 1) {
    const std::int64_t stages = (load_model(model).layers + *layers_per_stage - 1) / *layers_per_stage;
    step.interleave = (stages + step.pipeline - 1) / step.pipeline;
    const Counts range = range_of("parallel.interleave");
    if (step.interleave > range.most) {
      KeyedFile::wrong(*layers, fmt::format("is {}, which makes {} stages per rank; write a larger number",
                                            *layers_per_stage, step.interleave));
    }
  }
  if (!schedule.instead.empty()) {
    notes.push_back(
        fmt::format("pipeline_parallel_schedule {} has no counterpart: {}", schedule.name, schedule.instead));
  }
}

/// Returns the number of sequences per micro-batch: with a pipeline, part of the local batch; otherwise, all of it.
std::int64_t micro_batch_of(KeyedFile& file, const StepSettings& step, std::int64_t local) {
  const Counts range = range_of("step.micro_batch");
  const Entry* const parts = file.first_of({"experimental.pipeline_parallel_microbatches"});
  const Entry* const size = file.first_of(
      {"parallelism.pipeline_parallel_microbatch_size", "experimental.pipeline_parallel_microbatch_size"});
  const std::optional<std::int64_t> given_parts =
      parts == nullptr ? std::nullopt : std::optional(KeyedFile::count(*parts, range));
  const std::int64_t given_size = size == nullptr ? 1 : KeyedFile::count(*size, range);
  if (step.pipeline == 1) {
    return local;
  }
  if (given_parts) {
    if (local % *given_parts != 0) {
      KeyedFile::wrong(*parts, fmt::format("is {}, which does not divide the local batch of {}; write one that does",
                                           *given_parts, local));
    }
    return local / *given_parts;
  }
  if (local % given_size != 0) {
    const std::string sentence =
        fmt::format("is {}, which does not divide the local batch of {}; write one that does", given_size, local);
    KeyedFile::wrong(*size, sentence);
  }
  return given_size;
}

void read_batch(KeyedFile& file, const Replicas& replicas, StepSettings& step) {
  const Counts range = range_of("batch");
  const std::int64_t local =
      file.count({"training.local_batch_size", "training.batch_size"}, range_of("step.micro_batch")).value_or(8);
  step.micro_batch = micro_batch_of(file, step, local);
  const std::int64_t batch = local * replicas.copies * replicas.shards;
  const Entry* const given = file.first_of({"training.global_batch_size"});
  step.batch = given == nullptr || given->text == "-1" ? batch : KeyedFile::count(*given, range);
  if (step.batch % batch != 0) {
    KeyedFile::wrong(*given,
                     fmt::format("is {}, not a multiple of {} ({} on each of {}); write a multiple", step.batch, batch,
                                 counted(local, "sequence"), counted(replicas.copies * replicas.shards, "replica")));
  }
  if (step.batch > range.most) {
    throw ConfigError(fmt::format("{}: the batch is {} sequences, above {}; make training.local_batch_size smaller",
                                  file.path(), step.batch, range.most));
  }
}

/// Returns what is recomputed. Selective recomputation is per operation ("op"), or of every layer whose number is a
/// multiple of the option (torchtitan/distributed/activation_checkpoint.py, _apply_layer_sac).
std::string recompute_of(KeyedFile& file, std::vector<std::string>& notes) {
  const std::string mode = file.word({"activation_checkpoint.mode"}).value_or("selective");
  const Entry* const option = file.first_of({"activation_checkpoint.selective_ac_option"});
  constexpr std::array<std::string_view, 3> modes{"none", "selective", "full"};
  constexpr std::string_view instead = "every second GEMM of every layer is recomputed instead, as with 'op'";
  if (mode == "memory_budget") {
    notes.push_back(fmt::format("activation_checkpoint.mode memory_budget is not modelled: {}", instead));
    return "selective";
  }
  if (std::ranges::find(modes, mode) == modes.end()) {
    KeyedFile::wrong(*file.find("activation_checkpoint.mode"),
                     fmt::format("is {}; {}", in_quotes(mode), remedy_for(mode, modes, "modes")));
  }
  const std::string operations = option == nullptr ? "2" : option->text;
  if (mode != "selective" || operations == "op") {
    return mode;
  }
  if (operations == "0" || operations == "1") {  // every layer
    return "full";
  }
  notes.push_back(
      fmt::format("activation_checkpoint.selective_ac_option {0} recomputes one whole layer of every {1}, which is not "
                  "modelled: {2}",
                  in_quotes(operations), operations, instead));
  return mode;
}

/// Returns the items of a list; none if `entry` is null.
std::vector<std::string> items_of(const Entry* entry) {
  if (entry != nullptr && entry->kind != EntryKind::list) {
    KeyedFile::wrong(*entry, fmt::format("is {}; write a list", in_quotes(entry->text)));
  }
  return entry == nullptr ? std::vector<std::string>() : entry->items;
}

bool names_eight_bits(std::string_view converter) {
  return converter == "float8" || converter == "mx" || converter.ends_with(".float8") || converter.ends_with(".mx");
}

/// Returns whether the converter applies only to grouped GEMMs, which only experts have.
bool is_of_experts(std::string_view converter) {
  return converter.find("grouped_mm") != std::string_view::npos || converter.find(".moe") != std::string_view::npos;
}

/// Converts PyTorch's name of a dtype to ours.
std::string dtype_in(const Entry& entry) {
  constexpr std::array<std::pair<std::string_view, const char*>, 3> dtypes{
      {{"bfloat16", "bf16"}, {"float16", "fp16"}, {"float32", "fp32"}}};
  const auto* const known = std::ranges::find(dtypes, entry.text, [](const auto& pair) { return pair.first; });
  if (known == dtypes.end()) {
    KeyedFile::wrong(entry, fmt::format("is {}; write bfloat16, float16 or float32", in_quotes(entry.text)));
  }
  return known->second;
}

std::string gemm_dtype_of(KeyedFile& file, std::vector<std::string>& notes) {
  const Entry* const converters = file.first_of({"model.converters"});
  bool is_eight_bits = file.flag({"float8.enable_float8_linear"});
  for (const std::string& converter : items_of(converters)) {
    if (!names_eight_bits(converter)) {
      notes.push_back(
          fmt::format("{}: converter {} has no counterpart and is ignored", converters->where, in_quotes(converter)));
    } else if (is_of_experts(converter)) {
      notes.push_back(fmt::format("{}: converter {} is ignored: experts have the dtype of the other GEMMs",
                                  converters->where, in_quotes(converter)));
    } else {
      is_eight_bits = true;
    }
  }
  const Entry* const entry = file.first_of({"training.mixed_precision_param"});
  if (is_eight_bits) {
    notes.emplace_back(
        "8-bit GEMMs: all linear layers are simulated in fp8, including those that filter_fqns excludes");
    return "fp8";
  }
  return entry == nullptr ? "bf16" : dtype_in(*entry);
}

bool names_sgd(KeyedFile& file, std::vector<std::string>& notes) {
  const std::string name = file.word({"optimizer.name"}).value_or("AdamW");
  if (name != "AdamW" && name != "Adam" && name != "SGD") {
    notes.push_back(fmt::format("optimizer.name {} has no counterpart: Adam is assumed", in_quotes(name)));
  }
  return name == "SGD";
}

/// Returns the dtype in which gradients are reduced, fp32 by default.
std::string gradient_dtype_of(KeyedFile& file) {
  const Entry* const entry = file.first_of({"training.mixed_precision_reduce"});
  return entry == nullptr ? "fp32" : dtype_in(*entry);
}

/// Returns whether collectives of tensor ranks overlap with GEMMs, which torchtitan does only in compiled models.
bool overlaps_collectives(KeyedFile& file, std::vector<std::string>& notes) {
  const Entry* const given = parallel_entry(file, "enable_async_tensor_parallel");
  const bool is_compiled = file.flag({"compile.enable", "training.compile"});
  const Entry* const components = file.first_of({"compile.components"});
  const std::vector<std::string> compiled = items_of(components);
  const bool has_model = components == nullptr || std::ranges::find(compiled, "model") != compiled.end();
  if (given == nullptr || !KeyedFile::flag(*given)) {
    return false;
  }
  if (!is_compiled || !has_model) {
    notes.push_back(
        fmt::format("{}: enable_async_tensor_parallel needs compile.enable with the component 'model': no "
                    "overlap is simulated",
                    given->where));
    return false;
  }
  return true;
}

}  // namespace

Imported read_torchtitan(const Source& source) {
  KeyedFile file = read_toml(source.path);
  Imported import;
  import.model_name = model_of(file, source.options);
  StepSettings step;
  step.tensor = degree(file, "tensor_parallel_degree", "ranks");
  step.context = degree(file, "context_parallel_degree", "parallel.context");
  step.context_exchange = context_exchange_of(file);
  step.experts = degree(file, "expert_parallel_degree", "parallel.experts");
  step.sequence_parallel = true;
  step.seq = file.count({"training.seq_len"}, range_of("seq")).value_or(2048);
  read_pipeline(file, import.model_name, step, import.notes);
  const Replicas replicas = replicas_of(file, source.options, step);
  step.data = replicas.copies * replicas.shards;
  step.zero = zero_of(file, replicas, step, import.notes);
  read_batch(file, replicas, step);
  step.dtype = gemm_dtype_of(file, import.notes);
  step.recompute = recompute_of(file, import.notes);
  step.is_sgd = names_sgd(file, import.notes);
  step.gradient_dtype = gradient_dtype_of(file);
  step.framework = overlaps_collectives(file, import.notes) ? "torchtitan-async-tp" : "torchtitan";
  note_unread(file, torchtitan_keys(), import.notes);
  import.step = step;
  import.origin = "From a torchtitan configuration.";
  return import;
}

bool is_torchtitan(std::string_view text) {
  const auto has = [&](std::string_view section) { return text.find(section) != std::string_view::npos; };
  return has("[training]") && (has("[parallelism]") || (has("[model]") && has("flavor")));
}

}  // namespace commfuse::import
