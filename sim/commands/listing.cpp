// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "model/check.h"
#include "model/config/field.h"
#include "model/config/framework.h"
#include "model/config/hf_config.h"
#include "model/config/implementation.h"
#include "model/config_error.h"
#include "model/hardware/nccl_tuning.h"
#include "model/strategies/strategies.h"
#include "model/workload/layers.h"
#include "model/workload/parameters.h"

namespace commfuse::sim {

namespace {

namespace fs = std::filesystem;

/// Returns a number such as "102K", "229M" or "70.55B".
std::string in_billions(std::int64_t count) {
  const auto number = static_cast<double>(count);
  return number < 999.5e3   ? fmt::format("{:.0f}K", number / 1e3)
         : number < 999.5e6 ? fmt::format("{:.0f}M", number / 1e6)
                            : fmt::format("{:.4g}B", number / 1e9);
}

/// Returns words such as "2 kv heads, delta networks in 30 of 40 layers, 8 of 256 experts, 3 dense layers".
std::string layers_in_words(const Transformer& model) {
  const LayerCounts counts = layer_counts(model);
  std::int64_t windows = 0;
  for (const LayerRun& run : layer_runs(model)) {
    windows += run.kind.attention && run.kind.window > 0 ? run.count : 0;
  }
  const std::string heads = model.latent                    ? "latent"
                            : model.kv_heads == model.heads ? ""
                            : model.kv_heads == 1           ? "1 kv head"
                                                            : fmt::format("{} kv heads", model.kv_heads);
  std::vector<std::string> words;
  const auto add = [&](bool is_present, std::string text) {
    if (is_present) {
      words.push_back(std::move(text));
    }
  };
  add(!heads.empty(), heads);
  add(model.latent && model.latent->indexer, "sparse");
  add(windows > 0, fmt::format("windows in {} of {}", windows, counts.attention));
  add(counts.state_space > 0,
      fmt::format(
          "{} in {} of {} layers",
          model.state_space && model.state_space->recurrence == Recurrence::gated_delta ? "delta networks" : "Mamba-2",
          counts.state_space, model.layers));
  add(model.experts.has_value(),
      model.experts ? fmt::format("{} of {} experts", model.experts->active, model.experts->count) : "");
  add(model.experts && counts.dense > 0,
      fmt::format("{} dense {}", counts.dense, counts.dense == 1 ? "layer" : "layers"));
  add(model.weights.has_value(), model.weights ? model.weights->name : "");
  return fmt::format("{}", fmt::join(words, ", "));
}

void add_model(const Transformer& model, Listing& listing) {
  const ModelParameters count = parameters_of(model);
  listing.rows.push_back({model.name, in_billions(count.total()), in_billions(count.active()),
                          fmt::format("{}", model.layers), fmt::format("{}", model.hidden), layers_in_words(model)});
}

Listing empty_models() {
  return {{{"model", true}, {"parameters"}, {"active"}, {"layers"}, {"hidden"}, {"features", true}}, {}};
}

/// Returns whether the name is that of a model's config: "config.json" or, in a collection, "NAME_config.json". Hugging
/// Face stores configs of other things next to it.
bool is_model_config(std::string_view name) {
  constexpr std::array<std::string_view, 8> others{
      "adapter_config.json",   "generation_config.json", "hf_quant_config.json",  "preprocessor_config.json",
      "processor_config.json", "quantize_config.json",   "tokenizer_config.json", "video_preprocessor_config.json"};
  return name.ends_with("config.json") && std::find(others.begin(), others.end(), name) == others.end();
}

}  // namespace

Listing listed_models() {
  Listing listing = empty_models();
  for (const std::string& name : known_names(Catalogue::models)) {
    add_model(load_model(name), listing);
  }
  return listing;
}

Listing listed_models_in(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code broken;  // set for a link that leads nowhere
    if (is_model_config(entry->path().filename().string()) && entry->is_regular_file(broken)) {
      files.push_back(entry->path());
    }
  }
  if (error || files.empty()) {
    throw ConfigError(fmt::format("{}: {}; give a folder with config.json files", folder,
                                  error ? error.message() : "the folder contains no config.json"));
  }
  std::sort(files.begin(), files.end());
  Listing listing = empty_models();
  for (const fs::path& file : files) {
    add_model(read_hf_config(file).model, listing);
  }
  return listing;
}

Listing listed_machines(Catalogue catalogue, bool clusters) {
  Listing listing{
      {{"name", true}, {"GPUs"}, {"bf16 TFLOP/s"}, {"memory"}, {"HBM TB/s"}, {"link GB/s"}, {"network GB/s"}}, {}};
  if (!clusters) {
    listing.columns.pop_back();
  }
  const std::vector<std::string> nodes = known_names(Catalogue::nodes);
  for (const std::string& name : known_names(catalogue)) {
    if (clusters == (std::find(nodes.begin(), nodes.end(), name) != nodes.end())) {
      continue;
    }
    const Machine machine = load_machine(name);
    const Accelerator& chip = machine.accelerator;
    std::vector<std::string> row{
        name,
        clusters ? fmt::format("{} x {}", machine.nodes, machine.gpus_per_node)
                 : fmt::format("{}", machine.gpus_per_node),
        chip.supports(DType::bf16) ? fmt::format("{:.0f}", chip.dense_peak(DType::bf16).value / 1e12) : "-",
        fmt::format("{:.0f} GB", static_cast<double>(chip.hbm_capacity.count) / 1e9),
        fmt::format("{:.2f}", chip.hbm_bandwidth.value.value / 1e12),
        fmt::format("{:.0f}", machine.link.nominal_rate.value.value / 1e9)};
    if (clusters) {
      row.push_back(machine.network ? fmt::format("{:.0f}", machine.network->nominal_rate.value.value / 1e9) : "-");
    }
    listing.rows.push_back(std::move(row));
  }
  return listing;
}

Listing listed_strategies() {
  Listing listing{{{"strategy", true}, {"what it does", true}}, {}};
  for (const Strategy& strategy : strategies()) {
    listing.rows.push_back({std::string(strategy.name), std::string(strategy.summary)});
  }
  return listing;
}

namespace {

/// Returns words such as "hopper, blackwell"; "-" if there are no measurements.
std::string measured_in_words(const ImplementationCosts& costs) {
  std::vector<std::string_view> names;
  for (const NcclGeneration generation : all_nccl_generations) {
    if (costs.measured[static_cast<std::size_t>(generation)]) {
      names.push_back(name_of(generation));
    }
  }
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Listing listed_implementations() {
  Listing listing{{{"implementation", true},
                   {"strategy", true},
                   {"transport", true},
                   {"measured on", true},
                   {"what it does", true}},
                  {}};
  for (const auto& implementation : load_implementations("all")) {
    listing.rows.push_back({implementation->name, std::string(implementation->strategy->name),
                            std::string(name_of(implementation->transport)), measured_in_words(implementation->costs),
                            implementation->summary});
  }
  return listing;
}

namespace {

/// Returns the strategy or implementation for tensor parallelism, such as "te"; "exposed" if nothing overlaps.
std::string tensor_parallel_in_words(const Framework& framework) {
  return framework.tensor_overlap != nullptr   ? std::string(framework.tensor_overlap->name)
         : framework.implementation != nullptr ? framework.implementation->name
                                               : "exposed";
}

}  // namespace

Listing listed_frameworks() {
  Listing listing{
      {{"framework", true}, {"tensor parallel", true}, {"gradients", true}, {"issue/us", false}, {"what it is", true}},
      {}};
  for (const std::string& name : known_names(Catalogue::frameworks)) {
    const Framework framework = load_framework(name);
    listing.rows.push_back({framework.name, tensor_parallel_in_words(framework),
                            std::string(name_of(with_defaults_of(framework, TrainingPlan{}).gradient_dtype)),
                            fmt::format("{:.3g}", 1e6 * to_seconds(framework.issue.value)), framework.summary});
  }
  return listing;
}

namespace {

struct ScopeLine {
  std::string_view name;
  std::string_view doc;
};
constexpr std::array scope_lines{
    ScopeLine{"qkv", "all-gather, then the GEMM of queries, keys and values"},
    ScopeLine{"out_proj", "GEMM after attention, then reduce-scatter"},
    ScopeLine{"gate_up", "all-gather, then the first GEMM of the MLP"},
    ScopeLine{"down", "second GEMM of the MLP, then reduce-scatter"},
    ScopeLine{"attention", "attention block: qkv, attention, out_proj"},
    ScopeLine{"mlp", "MLP: gate_up, activation, down"},
    ScopeLine{"layer", "one layer: norms, attention block, MLP, residuals"},
    ScopeLine{"qkv_backward", "backward pass of qkv: gradients of input and weight"},
    ScopeLine{"out_proj_backward", "backward pass of out_proj"},
    ScopeLine{"gate_up_backward", "backward pass of gate_up"},
    ScopeLine{"down_backward", "backward pass of down"},
    ScopeLine{"out_proj_ar", "GEMM after attention, then all-reduce"},
    ScopeLine{"down_ar", "second GEMM of the MLP, then all-reduce"},
    ScopeLine{"mlp_ar", "two MLPs with all-reduces, no sequence parallelism"},
    ScopeLine{"ulysses", "attention block under Ulysses sequence parallelism"},
    ScopeLine{"fsdp_gate_up", "gate_up with a gathered weight (FSDP, ZeRO 3)"},
    ScopeLine{"data_parallel", "MLP forward and backward with sharded weights"},
    ScopeLine{"step", "training step of a whole model"},
    ScopeLine{"prefill", "prefill of a whole model"},
    ScopeLine{"decode", "one decoding step of a whole model: a token per sequence"},
};

}  // namespace

Listing listed_scopes() {
  Listing listing{{{"scope", true}, {"what is simulated", true}}, {}};
  for (const std::string_view name : find_field("scope")->choices()) {
    const auto* const line = std::find_if(scope_lines.begin(), scope_lines.end(),
                                          [&](const ScopeLine& candidate) { return candidate.name == name; });
    check(line != scope_lines.end(), "every scope has its line");
    listing.rows.push_back({std::string(name), std::string(line->doc)});
  }
  return listing;
}

}  // namespace commfuse::sim
