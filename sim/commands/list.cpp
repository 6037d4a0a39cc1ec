// SPDX-License-Identifier: Apache-2.0
// commfuse-sim list: what there is to choose from, a line each.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "model/check.h"
#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/field.h"
#include "model/config/hf_config.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/strategies/strategies.h"
#include "model/workload/layers.h"
#include "model/workload/parameters.h"
#include "reports/rows.h"
#include "sim/commands/commands.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

namespace {

namespace fs = std::filesystem;

struct Column {
  std::string name;
  bool is_text = false;  ///< Flush left.
};

/// Cells by row.
struct Listing {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

std::string in_billions(std::int64_t count) {
  const auto number = static_cast<double>(count);
  return number < 1e9 ? fmt::format("{:.0f}M", number / 1e6) : fmt::format("{:.4g}B", number / 1e9);
}

/// "attention in 10 of 40 layers, 30 gated delta networks; 256 experts, 8 active, 1 shared".
std::string layers_in_words(const Transformer& model) {
  const LayerCounts counts = layer_counts(model);
  std::int64_t windows = 0;
  for (const LayerRun& run : layer_runs(model)) {
    windows += run.kind.attention && run.kind.window > 0 ? run.count : 0;
  }
  const std::string heads = model.latent                    ? "latent"
                            : model.kv_heads == model.heads ? ""
                                                            : fmt::format("{} kv heads", model.kv_heads);
  std::vector<std::string> words;
  const auto add = [&](bool is_there, std::string text) {
    if (is_there) {
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
  return {{{"model", true}, {"parameters"}, {"active"}, {"layers"}, {"hidden"}, {"what it has", true}}, {}};
}

Listing models() {
  Listing listing = empty_models();
  for (const std::string& name : known_names(Catalogue::models)) {
    add_model(load_model(name), listing);
  }
  return listing;
}

/// Every config.json below a folder, and files that are called like it.
Listing models_in(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file(error) && name.ends_with("config.json") && name != "generation_config.json" &&
        name != "hf_quant_config.json" && name != "tokenizer_config.json" && name != "preprocessor_config.json") {
      files.push_back(entry.path());
    }
  }
  if (error || files.empty()) {
    throw ConfigError(fmt::format("{}: {}; give a folder with config.json files", folder,
                                  error ? error.message() : "no config.json is below it"));
  }
  std::sort(files.begin(), files.end());
  Listing listing = empty_models();
  for (const fs::path& file : files) {
    add_model(read_hf_config(file).model, listing);
  }
  return listing;
}

/// Dense 16-bit TFLOP/s, memory, rates of links.
Listing machines(Catalogue catalogue, bool clusters) {
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

Listing all_strategies() {
  Listing listing{{{"strategy", true}, {"what it does", true}}, {}};
  for (const Strategy& strategy : strategies()) {
    listing.rows.push_back({std::string(strategy.name), std::string(strategy.summary)});
  }
  return listing;
}

struct ScopeLine {
  std::string_view name;
  std::string_view doc;
};
constexpr std::array scope_lines{
    ScopeLine{"qkv", "all-gather, then the product that makes queries, keys and values"},
    ScopeLine{"out_proj", "product behind attention, then reduce-scatter"},
    ScopeLine{"gate_up", "all-gather, then the first product of the MLP"},
    ScopeLine{"down", "second product of the MLP, then reduce-scatter"},
    ScopeLine{"attention", "attention block: qkv, attention, out_proj"},
    ScopeLine{"mlp", "MLP: gate_up, activation, down"},
    ScopeLine{"layer", "one layer: norms, attention block, MLP, residuals"},
    ScopeLine{"qkv_backward", "backward pass of qkv: gradients of input and weight"},
    ScopeLine{"out_proj_backward", "backward pass of out_proj"},
    ScopeLine{"gate_up_backward", "backward pass of gate_up"},
    ScopeLine{"down_backward", "backward pass of down"},
    ScopeLine{"mlp_ar", "two MLPs with all-reduces, no sequence parallelism"},
    ScopeLine{"ulysses", "attention block under Ulysses sequence parallelism"},
    ScopeLine{"fsdp_gate_up", "gate_up whose weight is gathered (FSDP, ZeRO 3)"},
    ScopeLine{"data_parallel", "MLP forward and backward with sharded weights"},
    ScopeLine{"step", "training step of a whole model"},
    ScopeLine{"prefill", "prompts through a whole model"},
    ScopeLine{"decode", "one token a sequence through a whole model"},
};

Listing all_scopes_listed() {
  Listing listing{{{"scope", true}, {"what is simulated", true}}, {}};
  for (const std::string_view name : find_field("scope")->choices()) {
    const auto* const line =
        std::find_if(scope_lines.begin(), scope_lines.end(), [&](const ScopeLine& one) { return one.name == name; });
    check(line != scope_lines.end(), "every scope has its line");
    listing.rows.push_back({std::string(name), std::string(line->doc)});
  }
  return listing;
}

std::vector<std::string> names_of(const Listing& listing) {
  std::vector<std::string> names;
  for (const Column& column : listing.columns) {
    names.push_back(column.name);
  }
  return names;
}

std::string table_of(const Listing& listing) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < listing.columns.size(); ++column) {
    widths.push_back(listing.columns[column].name.size());
    for (const std::vector<std::string>& row : listing.rows) {
      widths.back() = std::max(widths.back(), row[column].size());
    }
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      text += column == 0 ? "" : "  ";
      text += listing.columns[column].is_text ? fmt::format("{:<{}}", cells[column], widths[column])
                                              : fmt::format("{:>{}}", cells[column], widths[column]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = line(names_of(listing));
  for (const std::vector<std::string>& row : listing.rows) {
    text += line(row);
  }
  return text;
}

std::string markdown_of(const Listing& listing) {
  std::string text = fmt::format("| {} |\n|", fmt::join(names_of(listing), " | "));
  for (const Column& column : listing.columns) {
    text += column.is_text ? "---|" : "---:|";
  }
  text += "\n";
  for (const std::vector<std::string>& row : listing.rows) {
    text += fmt::format("| {} |\n", fmt::join(row, " | "));
  }
  return text;
}

std::string csv_of(const Listing& listing) {
  const auto line = [](const std::vector<std::string>& cells) {
    const std::vector<Value> values(cells.begin(), cells.end());
    return reports::csv_line(std::span<const Value>(values));
  };
  std::string text = line(names_of(listing));
  for (const std::vector<std::string>& row : listing.rows) {
    text += line(row);
  }
  return text;
}

struct ListRequest {
  std::string what;
  std::string folder;
  std::string format = "table";
};

Listing listing_of(const ListRequest& request) {
  constexpr std::array<std::string_view, 5> kinds{"models", "hardware", "clusters", "strategies", "scopes"};
  if (request.what == "gpus" || request.what == "machines") {
    return machines(Catalogue::nodes, false);
  }
  require_word("WHAT", request.what, kinds, "list");
  if (!request.folder.empty() && request.what != "models") {
    throw ConfigError(fmt::format("FOLDER: {} have no folder; remove it, or list models", request.what));
  }
  return request.what == "models"     ? request.folder.empty() ? models() : models_in(request.folder)
             : request.what == "hardware" ? machines(Catalogue::nodes, false)
         : request.what == "clusters" ? machines(Catalogue::hardware, true)
         : request.what == "scopes"   ? all_scopes_listed()
                                      : all_strategies();
}

}  // namespace

void add_list(CLI::App& app, int& status) {
  add_verb(app, "list", "List models, hardware, clusters, strategies or scopes", [&status](CLI::App& command) {
    const auto request = std::make_shared<ListRequest>();
    offers_words(command.add_option("WHAT", request->what, "models, hardware, clusters, strategies or scopes"),
                 {"models", "hardware", "clusters", "strategies", "scopes"});
    command.add_option("FOLDER", request->folder, "With models: a folder of config.json files in place of ours");
    offers_words(command.add_option("-o,--output", request->format, "Format: table, markdown or csv")
                     ->type_name("FORMAT")
                     ->capture_default_str(),
                 {"table", "markdown", "csv"});
    command.footer(
        "Examples:\n"
        "  commfuse-sim list hardware\n"
        "  commfuse-sim list models -o csv");
    command.callback([request, &status] {
      constexpr std::array<std::string_view, 3> formats{"table", "markdown", "csv"};
      require_word("--output", request->format, formats, "format");
      if (request->what.empty()) {
        fmt::print("models\nhardware\nclusters\nstrategies\nscopes\n");
        return;
      }
      const Listing listing = listing_of(*request);
      fmt::print("{}", request->format == "table"      ? table_of(listing)
                       : request->format == "markdown" ? markdown_of(listing)
                                                       : csv_of(listing));
      status = exit_code::done;
    });
  });
}

}  // namespace commfuse::sim
