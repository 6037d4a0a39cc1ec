// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "model/config/catalogue.h"
#include "model/config/choices.h"
#include "model/config/field.h"
#include "model/config/framework.h"
#include "model/config/implementation.h"
#include "model/config/settings.h"
#include "model/config/yaml_reader.h"
#include "model/config_error.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr std::string_view framework_schema = "commfuse.framework/1";
constexpr Range<double> power_range{0.0, 2.0};
constexpr Range<double> attention_time_range{0.1, 10.0};
constexpr Range<double> bytes_range{4.0, 1000.0};
constexpr Range<double> loss_memory_range{0.0, 100.0};

void read_host(YamlMap map, Framework& into) {
  if (map.optional_value("issue")) {
    into.issue = map.duration_parameter("issue");
  }
  into.host_runs_ahead = map.boolean("runs_ahead");
}

void read_kernels(YamlMap map, Framework& into) {
  if (map.optional_value("misaligned_power")) {
    into.misaligned_power = map.number_parameter("misaligned_power", power_range);
  }
  if (std::optional<YamlMap> times = map.optional_map("attention_time")) {
    for (const NcclGeneration generation : all_nccl_generations) {
      if (times->optional_value(name_of(generation))) {
        into.attention_time[static_cast<std::size_t>(generation)] =
            times->number_parameter(name_of(generation), attention_time_range);
      }
    }
  }
  into.fuses_accumulation = map.boolean("fused_accumulation");
  if (map.optional_value("narrow_weights")) {
    into.narrows_weights = map.boolean("narrow_weights");
  }
  into.loss_bytes = map.number("loss_bytes", bytes_range);
  if (map.optional_value("loss_memory")) {
    into.loss_memory = map.number_parameter("loss_memory", loss_memory_range);
  }
}

/// Returns the GEMMs that the implementation runs. Notes a mistake for anything but a list of their names.
std::vector<Scope> read_implementation_sites(YamlMap map) {
  constexpr std::string_view key = "implementation_sites";
  const YamlValue value = *map.optional_value(key);
  std::vector<Scope> sites;
  if (value.kind() != YamlKind::list) {
    map.mistake(key, fmt::format("{0} must be a list, as in {0}: [qkv, gate_up]", key));
    return sites;
  }
  for (const YamlValue& item : value.items()) {
    const std::string word = item.kind() == YamlKind::scalar ? item.text() : "";
    const auto* const site = std::ranges::find(implementation_scopes, word, [](Scope scope) { return name_of(scope); });
    if (site != implementation_scopes.end()) {
      sites.push_back(*site);
      continue;
    }
    std::vector<std::string_view> words;
    for (const Scope scope : implementation_scopes) {
      words.push_back(name_of(scope));
    }
    map.mistake(key, fmt::format("unknown site {}; {}", in_quotes(word), remedy_for(word, words, "sites")));
  }
  return sites;
}

/// Returns the parts of a layer that selective recomputation runs again. Notes a mistake for anything but a list of
/// their names.
SelectiveRecompute read_selective(YamlMap map) {
  constexpr std::string_view key = "selective_recompute";
  const YamlValue value = *map.optional_value(key);
  SelectiveRecompute selective{.attention_core = false};
  if (value.kind() != YamlKind::list || value.items().empty()) {
    map.mistake(key, fmt::format("{0} must be a list of parts, as in {0}: [attention_core]", key));
    return selective;
  }
  for (const YamlValue& item : value.items()) {
    const std::string word = item.kind() == YamlKind::scalar ? item.text() : "";
    const auto* const part = std::ranges::find(recomputed_parts, word, &RecomputedPart::name);
    if (part != recomputed_parts.end()) {
      selective.*part->member = true;
      continue;
    }
    std::vector<std::string_view> words;
    std::ranges::transform(recomputed_parts, std::back_inserter(words), &RecomputedPart::name);
    map.mistake(key, fmt::format("unknown part {}; {}", in_quotes(word), remedy_for(word, words, "parts")));
  }
  return selective;
}

/// Notes a mistake for each listed GEMM that the implementation has no kernels for.
void note_uncovered_sites(YamlMap map, const Framework& framework) {
  for (const Scope site : *framework.implementation_sites) {
    // In backward passes, an implementation runs the GEMM of the input's gradient, which follows an all-gather.
    const SiteKind kind = is_backward(site) ? SiteKind::ag_gemm : kinds_of(site).front();
    if (!covers(*framework.implementation, kind)) {
      map.mistake("implementation_sites",
                  fmt::format("{} has no kernels for {}; remove the site, or name another implementation",
                              framework.implementation->name, name_of(site)));
    }
  }
}

void read_tensor(const YamlFile& file, YamlMap map, Framework& into) {
  const std::string word = map.text("overlap", "none");
  into.tensor_overlap = find_strategy(word);
  if (into.tensor_overlap == nullptr && word != "none" && !word.empty()) {
    std::vector<std::string_view> words{"none"};
    for (const Strategy& strategy : strategies()) {
      words.push_back(strategy.name);
    }
    map.mistake("overlap",
                fmt::format("unknown strategy {}; {}", in_quotes(word), remedy_for(word, words, "strategies")));
  }
  if (map.optional_value("implementation")) {
    const std::string name = map.text("implementation", "te");
    if (into.tensor_overlap != nullptr) {
      map.mistake("implementation",
                  "overlap already determines how GEMMs overlap collectives; write overlap: none, or remove this line");
    }
    try {
      into.implementation =
          name.empty() ? nullptr : load_implementation(beside_file(file.path(), Catalogue::implementations, name));
    } catch (const ConfigError& error) {
      map.mistake("implementation", error.what());
    }
  }
  if (map.optional_value("implementation_sites")) {
    into.implementation_sites = read_implementation_sites(map);
    if (!map.has("implementation")) {
      map.mistake("implementation_sites",
                  "no implementation runs these GEMMs; add one, as in implementation: te, or remove this line");
    }
    if (into.implementation != nullptr) {
      note_uncovered_sites(map, into);
    }
  }
  into.overlaps_backward = map.boolean("backward_beside_products");
}

/// Returns true if the file names a strategy that overlaps GEMMs with collectives.
bool names_overlap(YamlMap root) {
  const std::optional<YamlValue> map = root.optional_value("tensor_parallel");
  if (!map || map->kind() != YamlKind::map) {
    return false;
  }
  return std::ranges::any_of(map->fields(), [](const YamlValue::Field& field) {
    return field.key == "overlap" && field.value.kind() == YamlKind::scalar && field.value.text() != "none";
  });
}

/// Fills the fields that a file omits with those of the catalogue's framework that the file extends. Throws ConfigError
/// if `extends` names anything else; notes a mistake if that framework extends another.
void inherit(YamlFile& file, YamlMap root) {
  if (!root.optional_value("extends")) {
    return;
  }
  const std::string choice = root.text("extends");
  const std::vector<std::string> known = known_names(Catalogue::frameworks);
  if (std::ranges::find(known, choice) == known.end()) {
    if (!choice.empty()) {  // text() notes a missing word
      const std::vector<std::string_view> names(known.begin(), known.end());
      root.mistake("extends",
                   fmt::format("unknown framework {}; {}", in_quotes(choice), remedy_for(choice, names, "frameworks")));
    }
    for (const std::string& key : root.keys()) {
      root.optional_value(key);  // marks the key as known
    }
    file.finish();
  }
  YamlFile base(find_config(Catalogue::frameworks, choice));
  YamlMap base_root = base.root();
  base_root.schema(framework_schema);
  if (base_root.has("extends")) {
    root.mistake("extends", fmt::format("{} extends another framework; name one that extends none", in_quotes(choice)));
  }
  std::vector<std::string_view> own_keys{"schema", "name", "extends"};
  if (names_overlap(root)) {  // a strategy replaces the implementation of the base
    own_keys.insert(own_keys.end(), {"tensor_parallel.implementation", "tensor_parallel.implementation_sites"});
  }
  file.extend(base, root.optional_value("extends")->place(), own_keys);
}

std::string remedy_for_setting(std::string_view wrong) {
  std::vector<std::string_view> keys;
  for (const Field& field : run_fields()) {
    if (is_chosen_by_frameworks(field)) {
      keys.push_back(field.key);
    }
  }
  return remedy_for(wrong, keys, "settings");
}

void read_settings(YamlMap map, Framework& into) {
  for (const std::string& key : map.keys()) {
    const Field* field = find_field(key);
    if (field == nullptr || !is_chosen_by_frameworks(*field)) {
      map.optional_value(key);
      map.mistake(key, fmt::format("frameworks cannot choose {}; {}", in_quotes(key), remedy_for_setting(key)));
      continue;
    }
    const std::string text = map.text(key);
    if (text.empty()) {
      continue;  // text() has noted the mistake
    }
    if (const auto mistake = mistake_in(*field, text)) {
      map.mistake(key, *mistake);
    } else {
      into.settings.emplace_back(key, text);
    }
  }
}

}  // namespace

bool is_chosen_by_frameworks(const Field& field) {
  const bool is_only_for_steps = field.uses.has(Use::step) && !field.uses.has(Use::layer) && field.key != "framework";
  return is_only_for_steps || field.key == "attention_kernel";
}

Framework load_framework(std::string_view name_or_path) {
  Framework loaded;
  if (name_or_path == "none") {
    return loaded;
  }
  YamlFile file(find_config(Catalogue::frameworks, name_or_path));
  YamlMap root = file.root();
  root.schema(framework_schema);
  inherit(file, root);
  loaded.name = root.text("name");
  // Rows of results could not distinguish such a framework from a strategy, or from no framework.
  if (loaded.name == "none" || find_strategy(loaded.name) != nullptr) {
    root.mistake(
        "name", fmt::format("the name {} has another meaning in results; choose another name", in_quotes(loaded.name)));
  }
  loaded.summary = root.text("summary");
  read_host(root.map("host"), loaded);
  read_kernels(root.map("kernels"), loaded);
  read_tensor(file, root.map("tensor_parallel"), loaded);
  if (root.optional_value("selective_recompute")) {
    loaded.selective = read_selective(root);
  }
  if (const std::optional<YamlMap> settings = root.optional_map("settings")) {
    read_settings(*settings, loaded);
  }
  file.finish();
  return loaded;
}

std::vector<const Strategy*> strategies_by_default(const Framework& framework) {
  return framework.tensor_overlap == nullptr ? std::vector<const Strategy*>{} : std::vector{framework.tensor_overlap};
}

Settings with_defaults_of(const Framework& framework, Settings settings) {
  for (const auto& [key, text] : framework.settings) {
    const Field& field = *find_field(key);
    if (settings.at(field).origin.source == Source::preset) {
      settings.put(field, {.text = text, .origin = {Source::preset, framework.name}});
    }
  }
  return settings;
}

TrainingPlan with_defaults_of(const Framework& framework, const TrainingPlan& plan) {
  RunChoices run;
  run.plan = plan;
  for (const auto& [key, text] : framework.settings) {
    find_field(key)->put(text, run);
  }
  return run.plan;
}

}  // namespace commfuse
