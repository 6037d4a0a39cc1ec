// SPDX-License-Identifier: Apache-2.0
// Keys and defaults: deepspeedai/DeepSpeed, docs/_pages/config-json.md. Derivation of missing batch sizes:
// runtime/config.py (_set_batch_related_parameters).
#include "sim/import/deepspeed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "model/config_error.h"
#include "model/text/counted.h"
#include "model/text/suggest.h"
#include "sim/import/deepspeed_keys.h"
#include "sim/import/key_lists.h"
#include "sim/import/keyed_file.h"
#include "sim/import/step_settings.h"

namespace commfuse::import {

namespace {

bool is_auto(const Entry* entry) { return entry != nullptr && entry->text == "auto"; }

/// Returns a count from the file; nothing if it is missing or "auto".
std::optional<std::int64_t> count_in(KeyedFile& file, std::initializer_list<std::string_view> keys, Counts range) {
  const Entry* const entry = file.first_of(keys);
  return entry == nullptr || is_auto(entry) ? std::nullopt : std::optional(KeyedFile::count(*entry, range));
}

template <class T>
T required(const std::optional<T>& value, const std::string& path, std::string_view flag, std::string_view what) {
  if (!value) {
    throw ConfigError(fmt::format("{}: a DeepSpeed configuration does not state {}; add {}", path, what, flag));
  }
  return *value;
}

/// Returns a count from the file, or from a flag if the file does not set it. Throws ConfigError if file and flag
/// differ.
std::optional<std::int64_t> either(KeyedFile& file, std::string_view key, const Options& options, std::string_view flag,
                                   Counts range) {
  const std::optional<std::int64_t> in_file = count_in(file, {key}, range);
  const std::optional<std::int64_t> in_flag = options.count(flag, range);
  if (in_file && in_flag && *in_file != *in_flag) {
    KeyedFile::wrong(*file.find(key), fmt::format("is {}, but {} is {}; remove the flag", *in_file, flag, *in_flag));
  }
  return in_file ? in_file : in_flag;
}

/// Batch sizes, any two of which determine the third, given the number of replicas.
struct Batches {
  std::optional<std::int64_t> batch;  ///< Sequences in all replicas.
  std::optional<std::int64_t> micro;
  std::optional<std::int64_t> steps;  ///< Micro-batches per replica.
};

[[noreturn]] void refuse_batches(const KeyedFile& file, const Batches& batches, std::int64_t replicas) {
  const auto shown = [](const std::optional<std::int64_t>& number) {
    return number ? fmt::format("{}", *number) : std::string("not set");
  };
  throw ConfigError(fmt::format(
      "{}: train_batch_size is {}, train_micro_batch_size_per_gpu {} and gradient_accumulation_steps {}; these do not "
      "fit {}; the first must be the product of the other two and the replicas",
      file.path(), shown(batches.batch), shown(batches.micro), shown(batches.steps), counted(replicas, "replica")));
}

void read_batches(KeyedFile& file, const Options& options, StepSettings& step, std::vector<std::string>& notes) {
  Batches batches{
      .batch = either(file, "train_batch_size", options, "--batch", range_of("batch")),
      .micro = either(file, "train_micro_batch_size_per_gpu", options, "--micro-batch", range_of("step.micro_batch")),
      .steps = count_in(file, {"gradient_accumulation_steps"}, range_of("batch"))};
  if (!batches.batch && !batches.micro) {
    throw ConfigError(
        fmt::format("{}: neither train_batch_size nor train_micro_batch_size_per_gpu is a number; add "
                    "--micro-batch or --batch",
                    file.path()));
  }
  if (!batches.steps && !(batches.batch && batches.micro)) {
    batches.steps = 1;
    if (is_auto(file.find("gradient_accumulation_steps"))) {
      notes.emplace_back(
          "gradient_accumulation_steps is auto, which the trainer fills in: its default of 1 is assumed");
    }
  }
  const std::int64_t limit = range_of("batch").most;
  const std::int64_t parts = product_within(limit, {step.data, batches.steps.value_or(1)}).value_or(0);
  if (parts == 0 || (batches.batch && *batches.batch % parts != 0)) {
    refuse_batches(file, batches, step.data);
  }
  const std::int64_t micro = batches.micro.value_or(batches.batch.value_or(0) / parts);
  const std::int64_t whole = product_within(limit, {micro, parts}).value_or(0);
  const std::int64_t batch = batches.batch.value_or(whole);
  if (whole == 0 || batch % whole != 0 || (batches.steps && batch != whole) ||
      micro > range_of("step.micro_batch").most) {
    refuse_batches(file, batches, step.data);
  }
  step.micro_batch = micro;
  step.batch = batch;
}

/// Reads the tensor, sequence and pipeline degrees. Returns their product, the number of ranks in a replica.
std::int64_t read_ranks(KeyedFile& file, StepSettings& step, std::vector<std::string>& notes) {
  const Counts tensor{0, range_of("ranks").most};
  step.tensor = std::max<std::int64_t>(
      1, count_in(file, {"tensor_parallel.autotp_size", "tensor_parallel.tp_size", "autotp_size"}, tensor).value_or(1));
  step.ulysses = count_in(file, {"sequence_parallel_size"}, range_of("parallel.ulysses")).value_or(1);
  const Entry* const stages = file.first_of({"pipeline.stages"});
  const bool has_stages = stages != nullptr && !is_auto(stages);
  step.pipeline = has_stages ? KeyedFile::count(*stages, range_of("parallel.pipeline")) : 1;
  if (!has_stages && file.has("pipeline")) {
    notes.emplace_back("pipeline: the number of stages is set in Python: one stage is assumed");
  }
  const auto ranks = product_within(gpus_range.most, {step.tensor, step.ulysses, step.pipeline});
  if (!ranks) {
    throw ConfigError(
        fmt::format("{}: a replica needs more than {} GPUs; choose smaller degrees", file.path(), gpus_range.most));
  }
  return *ranks;
}

void read_replicas(KeyedFile& file, const Options& options, StepSettings& step, std::vector<std::string>& notes) {
  const std::int64_t gpus =
      required(options.count("--gpus", gpus_range), file.path(), "--gpus N", "the number of GPUs");
  const std::int64_t ranks = read_ranks(file, step, notes);
  if (gpus % ranks != 0) {
    throw ConfigError(fmt::format("{}: --gpus {} is not a multiple of the {} GPUs of a replica; choose a multiple",
                                  file.path(), gpus, ranks));
  }
  step.data = gpus / ranks;
}

/// State of a section; `open` is "auto", which the trainer fills in.
enum class Switch : std::uint8_t { off, on, open };

Switch switch_of(KeyedFile& file, std::initializer_list<std::string_view> keys) {
  const Entry* const entry = file.first_of(keys);
  if (is_auto(entry)) {
    return Switch::open;
  }
  return entry != nullptr && KeyedFile::flag(*entry) ? Switch::on : Switch::off;
}

/// Returns the dtype of autocast, which DeepSpeed reads by several names (runtime/config.py, DtypeEnum).
std::string autocast_dtype(KeyedFile& file) {
  constexpr std::array<std::string_view, 4> bf16{"bfloat16", "bf16", "torch.bfloat16", "bfloat"};
  constexpr std::array<std::string_view, 4> fp16{"float16", "fp16", "torch.float16", "half"};
  const std::string word = file.word({"torch_autocast.dtype"}).value_or("bfloat16");
  const bool is_bf16 = std::ranges::find(bf16, word) != bf16.end();
  return is_bf16 ? "bf16" : std::ranges::find(fp16, word) != fp16.end() ? "fp16" : "fp32";
}

/// Returns the dtype that the trainer probably chooses, because bf16 or fp16 is "auto".
std::string assumed_dtype(KeyedFile& file, Switch bf16, Switch fp16, std::vector<std::string>& notes) {
  const bool is_bf16_off = bf16 == Switch::off && file.first_of({"bf16.enabled", "bfloat16.enabled"}) != nullptr;
  const std::string dtype = is_bf16_off ? "fp16" : "bf16";
  notes.push_back(fmt::format("{} auto, which the trainer fills in: {} is assumed",
                              bf16 != Switch::open   ? "fp16 is"
                              : fp16 != Switch::open ? "bf16 is"
                                                     : "bf16 and fp16 are",
                              dtype));
  return dtype;
}

std::string dtype_of(KeyedFile& file, std::vector<std::string>& notes) {
  const Switch bf16 = switch_of(file, {"bf16.enabled", "bfloat16.enabled"});
  const Switch fp16 = switch_of(file, {"fp16.enabled"});
  const Switch amp = switch_of(file, {"amp.enabled"});
  const Switch autocast = switch_of(file, {"torch_autocast.enabled"});
  const std::string cast_to = autocast_dtype(file);
  if (bf16 == Switch::on && fp16 == Switch::on) {
    KeyedFile::wrong(*file.find("fp16.enabled"), "is true, and bf16.enabled is too; keep one of them");
  }
  if (bf16 == Switch::on || (autocast == Switch::on && cast_to == "bf16")) {
    return "bf16";
  }
  if (fp16 == Switch::on || amp == Switch::on || (autocast == Switch::on && cast_to == "fp16")) {
    return "fp16";
  }
  if (bf16 == Switch::open || fp16 == Switch::open) {
    return assumed_dtype(file, bf16, fp16, notes);
  }
  return "fp32";
}

/// Returns whether the optimizer is SGD, whose state is negligible; Adam keeps two numbers per weight.
bool is_sgd(KeyedFile& file, std::vector<std::string>& notes) {
  constexpr std::array<std::string_view, 6> adams{"adam",       "adamw",      "fusedadam", "deepspeedcpuadam",
                                                  "onebitadam", "zerooneadam"};
  std::string name = file.word({"optimizer.type"}).value_or("AdamW");
  const std::string shown = name;
  std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
  if (name != "sgd" && std::ranges::find(adams, name) == adams.end()) {
    notes.push_back(fmt::format("optimizer.type {} has no counterpart: Adam is assumed", in_quotes(shown)));
  } else if (name == "onebitadam" || name == "zerooneadam") {
    notes.push_back(
        fmt::format("optimizer.type {} sends compressed gradients: uncompressed ones are simulated", shown));
  }
  return name == "sgd";
}

/// Without the key, or with "auto", DeepSpeed reduces gradients in bf16 or fp16 if one of them is on or "auto"
/// (runtime/engine.py, communication_data_type).
std::string gradient_dtype_of(KeyedFile& file, const StepSettings& step) {
  const Entry* const given = file.first_of({"communication_data_type"});
  if (given == nullptr || is_auto(given)) {
    const bool has_16_bits = switch_of(file, {"bf16.enabled", "bfloat16.enabled"}) != Switch::off ||
                             switch_of(file, {"fp16.enabled"}) != Switch::off;
    return has_16_bits ? step.dtype : "fp32";
  }
  constexpr std::array<std::string_view, 3> known{"fp32", "bf16", "fp16"};
  const std::string word = given->text == "bfp16" ? "bf16" : given->text;
  if (std::ranges::find(known, word) == known.end()) {
    KeyedFile::wrong(*given, fmt::format("is {}; write fp32, bf16 or fp16", in_quotes(given->text)));
  }
  return word;
}

/// Returns the stage of ZeRO. The trainer of Accelerate fills in "auto".
int zero_stage(KeyedFile& file, std::vector<std::string>& notes) {
  constexpr int accelerate_default = 2;
  if (is_auto(file.first_of({"zero_optimization.stage"}))) {
    notes.push_back(
        fmt::format("zero_optimization.stage is auto, which the trainer fills in: its default of {} is assumed",
                    accelerate_default));
    return accelerate_default;
  }
  return static_cast<int>(count_in(file, {"zero_optimization.stage"}, Counts{0, 3}).value_or(0));
}

/// By default, DeepSpeed overlaps the reduction of gradients only under ZeRO 3.
bool overlaps_gradients(KeyedFile& file, const StepSettings& step) {
  const Entry* const entry = file.first_of({"zero_optimization.overlap_comm"});
  return entry == nullptr || is_auto(entry) ? step.zero == 3 : KeyedFile::flag(*entry);
}

void note_recomputation(const KeyedFile& file, std::vector<std::string>& notes) {
  if (file.has("activation_checkpointing")) {
    notes.emplace_back(
        "activation_checkpointing: which layers are recomputed is chosen in Python: none is assumed; set "
        "step.recompute");
  }
}

}  // namespace

Imported read_deepspeed(const Source& source) {
  KeyedFile file = read_json(source.path);
  const Options& options = source.options;
  Imported import;
  StepSettings step;
  read_replicas(file, options, step, import.notes);
  import.model_name = required(chosen_model(options), source.path, "--model NAME", "the model");
  step.seq = required(options.count("--seq", range_of("seq")), source.path, "--seq N", "the sequence length");
  read_batches(file, options, step, import.notes);
  if (const Entry* const zero_section = file.first_of({"zero_optimization"});
      zero_section != nullptr && zero_section->kind != EntryKind::map) {
    KeyedFile::wrong(*zero_section,
                     fmt::format("is {}; write {{\"stage\": 1}}, or another stage", in_quotes(zero_section->text)));
  }
  step.zero = zero_stage(file, import.notes);
  step.dtype = dtype_of(file, import.notes);
  step.is_sgd = is_sgd(file, import.notes);
  step.gradient_dtype = gradient_dtype_of(file, step);
  step.overlap_gradients = overlaps_gradients(file, step);
  step.framework = "deepspeed";
  note_recomputation(file, import.notes);
  if (file.flag({"tensor_parallel.tp_overlap_comm"}) && step.tensor > 1) {
    import.notes.emplace_back(
        "tensor_parallel.tp_overlap_comm has no counterpart: collectives of tensor ranks are simulated as exposed");
  }
  note_unread(file, deepspeed_keys(), import.notes);
  import.step = step;
  import.origin = "From a DeepSpeed configuration.";
  return import;
}

bool is_deepspeed(std::string_view text) {
  const auto has = [&](std::string_view key) { return text.find(key) != std::string_view::npos; };
  return has("\"zero_optimization\"") || has("\"train_batch_size\"") || has("\"train_micro_batch_size_per_gpu\"");
}

}  // namespace commfuse::import
