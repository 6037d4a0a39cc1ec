// SPDX-License-Identifier: Apache-2.0
#include "sim/import/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "model/config_error.h"
#include "model/text/shell_word.h"
#include "sim/import/deepspeed.h"
#include "sim/import/megatron.h"
#include "sim/import/nemo.h"
#include "sim/import/torchtitan.h"

namespace commfuse::import {

namespace {

constexpr FormatOption gpus{"--gpus", "N", "GPUs that the job runs on"};
constexpr FormatOption model{"--model", "NAME", "Model: a name in configs/models, or a path"};

constexpr std::array megatron_options{
    FormatOption{"--overlap", "FILE", "File passed as --tp-comm-overlap-cfg; the step uses its methods"}};
constexpr std::array torchtitan_options{gpus, model};
constexpr std::array deepspeed_options{
    model, FormatOption{"--seq", "N", "Sequence length in tokens; 32K is 32768"}, gpus,
    FormatOption{"--micro-batch", "N", "Sequences per GPU, if the file has auto or no value"},
    FormatOption{"--batch", "N", "Sequences of all GPUs, if the file has auto or no value"}};
constexpr std::array nemo_options{
    gpus, FormatOption{"OVERRIDES", "KEY=VALUE", "Keys to change, in Hydra's syntax: model.num_layers=2"}};

constexpr std::array all_formats{
    Format{.name = "megatron",
           .summary = "A model and a training step from Megatron-LM's arguments",
           .file = "Command line, or the shell script that contains it",
           .about = "The script is parsed, not run: arrays, quotes, NAME=value and ${NAME} work.",
           .example = "  commfuse-sim import megatron train_gpt3_175b.sh --name mine\n"
                      "  commfuse-sim run --config mine.run.yaml --hardware dgx-h100-x2",
           .options = megatron_options,
           .read = read_megatron,
           .is = is_megatron},
    Format{.name = "nemo",
           .summary = "A model and a training step from NeMo's or Megatron-Bridge's YAML",
           .file = "NeMo's megatron_gpt_config.yaml, or a run_config.yaml of Megatron-Bridge",
           .about = "Python recipes are not supported: give the run_config.yaml that a run saves.",
           .example = "  commfuse-sim import nemo run_config.yaml --gpus 16 model.num_layers=32",
           .options = nemo_options,
           .read = read_nemo,
           .is = is_nemo},
    Format{.name = "torchtitan",
           .summary = "A training step from torchtitan's TOML",
           .file = "A torchtitan TOML file",
           .about = "The model is that flavor's file in configs/models; --model chooses another.",
           .example = "  commfuse-sim import torchtitan llama3_70b.toml --gpus 256 --name mine",
           .options = torchtitan_options,
           .read = read_torchtitan,
           .is = is_torchtitan},
    Format{.name = "deepspeed",
           .summary = "A training step from DeepSpeed's JSON",
           .file = "JSON file passed as --deepspeed_config",
           .about = "The file names no model, sequence length or number of GPUs: give --model, --seq\n"
                    "and --gpus.",
           .example = "  commfuse-sim import deepspeed ds_config.json --model llama-3.1-8b --seq 8K \\\n"
                      "    --gpus 16",
           .options = deepspeed_options,
           .read = read_deepspeed,
           .is = is_deepspeed}};

/// Returns whether the text looks like the config.json of a Hugging Face model.
bool is_model_config(std::string_view text, std::string_view path) {
  const auto has = [&](std::string_view key) { return text.find(key) != std::string_view::npos; };
  return path.ends_with(".json") && (has("\"architectures\"") || has("\"model_type\""));
}

}  // namespace

std::span<const Format> formats() { return all_formats; }

std::string format_names() {
  std::vector<std::string_view> names;
  std::ranges::transform(all_formats, std::back_inserter(names), &Format::name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const Format& format_of(std::string_view text, const std::string& path) {
  std::vector<const Format*> fitting;
  for (const Format& format : all_formats) {
    if (format.is(text)) {
      fitting.push_back(&format);
    }
  }
  if (fitting.empty() && is_model_config(text, path)) {
    throw ConfigError(
        fmt::format("{}: this is the configuration of a Hugging Face model, which needs no import; use --model {}",
                    path, shell_word(path)));
  }
  if (fitting.size() != 1) {
    throw ConfigError(
        fmt::format("{}: the format cannot be detected {}; write commfuse-sim import FORMAT {}, with one of {}", path,
                    fitting.empty() ? "from its content" : "with certainty", shell_word(path), format_names()));
  }
  return *fitting.front();
}

}  // namespace commfuse::import
