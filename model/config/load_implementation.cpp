// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/config/catalogue.h"
#include "model/config/field.h"
#include "model/config/implementation.h"
#include "model/config/load_model.h"
#include "model/config/overlap_keys.h"
#include "model/config/read_described.h"
#include "model/config/yaml_reader.h"
#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr std::string_view implementation_schema = "commfuse.implementation/1";
constexpr Range<std::int64_t> rank_range{2, 1024};

/// Returns the noun for a value of a key: "site" for the key "sites".
std::string_view noun_of(std::string_view key) { return key.substr(0, key.size() - (key.ends_with('s') ? 1 : 0)); }

std::string plural_noun_of(std::string_view key) {
  return key == "strategy" ? "strategies" : fmt::format("{}s", noun_of(key));
}

/// Returns the member of `choices` with this name; notes a mistake when there is none.
template <class Values, class Name>
auto named(YamlMap map, std::string_view key, std::string_view word, const Values& choices, const Name& name) {
  std::vector<std::string_view> words;
  for (const auto& choice : choices) {
    if (name(choice) == word) {
      return std::optional(choice);
    }
    words.push_back(name(choice));
  }
  if (!word.empty()) {  // an empty word means a missing key, which is noted already
    map.mistake(key, fmt::format("unknown {} {}; {}", noun_of(key), in_quotes(word),
                                 remedy_for(word, words, plural_noun_of(key))));
  }
  return std::optional<typename Values::value_type>{};
}

/// Returns a list of strings; empty when the key is absent.
std::vector<std::string> texts_of(YamlMap map, std::string_view key) {
  std::vector<std::string> texts;
  const std::optional<YamlValue> list = map.optional_value(key);
  if (!list) {
    return texts;
  }
  const std::vector<YamlValue> items = list->kind() == YamlKind::list ? list->items() : std::vector<YamlValue>{};
  for (const YamlValue& item : items) {
    if (item.kind() == YamlKind::scalar && !item.text().empty()) {
      texts.push_back(item.text());
    }
  }
  if (items.empty() || texts.size() < items.size()) {
    map.mistake(key, fmt::format("{0} must be a list of words, as in {0}: [one, another]", key));
  }
  return texts;
}

/// Returns a list of words, each one of `choices`. Notes a mistake when the list is absent.
template <class T, class Values>
std::vector<T> list_of(YamlMap map, std::string_view key, const Values& choices) {
  std::vector<T> values;
  const std::vector<std::string> words = texts_of(map, key);
  if (!map.has(key)) {
    map.mistake(key, fmt::format("{} is missing; write a list", key));
  }
  for (const std::string& word : words) {
    if (const auto value = named(map, key, word, choices, [](const auto& each) { return name_of(each); })) {
      values.push_back(*value);
    }
  }
  return values;
}

/// Reads the strategy, its options, and the set of options that the file fixes.
template <class Into>
void read_strategy(YamlMap map, Into& into) {
  const std::string word = map.text("strategy");
  const auto strategy = named(map, "strategy", word, all_strategies, [](const Strategy* known) { return known->name; });
  into.strategy = strategy ? *strategy : &serial_strategy;
  const std::optional<YamlMap> options = map.optional_map("options");
  for (const std::string& key : options ? options->keys() : std::vector<std::string>{}) {
    const std::string text = YamlMap(*options).text(key);
    const std::optional<Option> option = option_named(key);
    if (!strategy) {
      continue;  // the options of an unknown strategy cannot be checked
    }
    if (!option || !into.strategy->takes(*option)) {
      YamlMap(*options).mistake(key, fmt::format("{} has no option {}; remove it", word, in_quotes(key)));
    } else if (const auto mistake = mistake_in(*find_field(entry_of(*option).key), text)) {
      YamlMap(*options).mistake(key, *mistake);
    } else {
      put(*option, text, into.options);
      into.fixed.add(*option);
    }
  }
}

/// Reads costs in layers: the transport's defaults, then the file's values for all generations, then its values for one
/// generation.
ImplementationCosts read_costs(YamlMap map, const std::string& name, Transport transport) {
  ImplementationCosts costs;
  const YamlMap all_generations = map.map("costs");
  std::optional<YamlMap> measured_on = map.optional_map("measured_on");
  for (const NcclGeneration generation : all_nccl_generations) {
    const auto index = static_cast<std::size_t>(generation);
    ImplementedSites& sites = costs.generations[index];
    sites.name = name;
    for (const ImplementedKind& kind : implemented_kinds) {
      (sites.*kind.costs).rate_share = rate_share_of(transport, generation);
    }
    sites.gemm_rs.sums_in_switch = sites.gemm_ar.sums_in_switch = transport == Transport::multimem;
    read_described(all_generations, sites);
    if (std::optional<YamlMap> one_generation =
            measured_on ? measured_on->optional_map(name_of(generation)) : std::nullopt) {
      read_described(*one_generation, sites);
      costs.measured[index] = true;
    } else if (sites.elsewhere.value > sites.residual.value) {
      sites.residual = sites.elsewhere;
    }
  }
  return costs;
}

/// Reads what the implementation supports. Requires `into.strategy` to be set.
void read_support(YamlMap map, Implementation& into) {
  into.sites = list_of<SiteKind>(map, "sites", implemented_sites);
  for (const SiteKind kind : into.sites) {
    if (!applies(*into.strategy, std::array{kind})) {
      map.mistake("sites",
                  fmt::format("strategy {} has no schedule for {} sites; remove {}, or choose another strategy",
                              into.strategy->name, name_of(kind), name_of(kind)));
    }
  }
  into.dtypes = list_of<DType>(map, "dtypes", all_dtypes);
  into.experts = map.optional_value("experts") && map.boolean("experts");
  into.max_ranks = static_cast<std::int32_t>(map.count("ranks", rank_range));
  into.max_nodes = map.optional_value("nodes") ? static_cast<int>(map.count("nodes", node_range)) : 1;
  into.generations = list_of<NcclGeneration>(map, "generations", all_nccl_generations);
}

constexpr std::array<std::string_view, 6> fittable{"per_call", "per_step",   "product_time",
                                                   "cut_cost", "rate_share", "rate"};

/// Returns the names of the kinds of sites whose costs can be fitted.
std::vector<std::string_view> fitted_kinds() {
  std::vector<std::string_view> names;
  for (const ImplementedKind& kind : implemented_kinds) {
    if (kind.is_fitted) {
      names.push_back(name_of(kind.kind));
    }
  }
  return names;
}

constexpr std::size_t max_fitted = 4;

void read_fitted(YamlMap map, Implementation& into) {
  const std::vector<std::string_view> kinds = fitted_kinds();
  for (const std::string& name : texts_of(map, "fit")) {
    const std::string site = name.substr(0, name.find('.'));
    const std::string leaf = name.substr(name.find('.') + 1);
    const bool is_of_one_kind = std::ranges::find(kinds, site) != kinds.end();
    if ((site != leaf && !is_of_one_kind) || std::ranges::find(fittable, leaf) == fittable.end()) {
      map.mistake("fit",
                  fmt::format("unknown parameter {}; choose from {}, with a prefix such as {}. for one kind of "
                              "site ({})",
                              in_quotes(name), fmt::join(fittable, ", "), kinds.front(), fmt::join(kinds, ", ")));
    }
    if (std::ranges::find(into.fitted, name) != into.fitted.end()) {
      map.mistake("fit", fmt::format("{} is given twice; keep one of them", in_quotes(name)));
    }
    into.fitted.push_back(name);
  }
  if (into.fitted.size() > max_fitted) {
    map.mistake("fit", fmt::format("{} parameters are too many for the few measured rows; keep at most {}",
                                   into.fitted.size(), max_fitted));
  }
}

/// Reads the schedule of one key: generated by a strategy for a scope, or from a schedule file.
OverlapKey read_overlap_key(const YamlFile& file, YamlMap map, const std::string& key) {
  OverlapKey into{.key = key, .method = map.text("method"), .fixed = {}};
  const auto scope = named(map, "scope", map.text("scope"), all_scopes, [](Scope known) { return name_of(known); });
  into.scope = scope.value_or(Scope::qkv);
  if (map.optional_value("schedule")) {
    into.file = beside_file(file.path(), Catalogue::schedules, map.text("schedule"));
    try {
      find_config(Catalogue::schedules, into.file);
    } catch (const ConfigError& error) {
      map.mistake("schedule", error.what());
    }
    return into;
  }
  read_strategy(map, into);
  if (scope && !applies(*into.strategy, kinds_of(*scope))) {
    map.mistake("strategy", fmt::format("strategy {} has no schedule for scope {}; choose another strategy or scope",
                                        into.strategy->name, name_of(*scope)));
  }
  return into;
}

std::vector<OverlapKey> read_overlap_keys(const YamlFile& file, YamlMap root) {
  std::vector<OverlapKey> keys;
  if (std::optional<YamlMap> map = root.optional_map("keys")) {
    for (const std::string& key : map->keys()) {
      keys.push_back(read_overlap_key(file, map->map(key), key));
    }
  }
  return keys;
}

template <class Values, class Name>
std::string names_of(const Values& values, const Name& name) {
  std::vector<std::string> names;
  for (const auto& value : values) {
    names.emplace_back(name(value));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

struct ReadFile {
  std::shared_ptr<const Implementation> implementation;
  std::vector<OverlapKey> keys;
};

ReadFile read_file(std::string_view name_or_path) {
  YamlFile file(find_config(Catalogue::implementations, name_or_path));
  YamlMap root = file.root();
  root.schema(implementation_schema);
  auto loaded = std::make_shared<Implementation>();
  loaded->name = root.text("name");
  loaded->summary = root.text("summary");
  loaded->use = root.text("use");
  loaded->known_as = texts_of(root, "known_as");
  const std::string transport = root.text("transport");
  loaded->transport = named(root, "transport", transport, all_transports, [](auto transport_kind) {
                        return name_of(transport_kind);
                      }).value_or(Transport::nccl);
  loaded->stands_in = root.optional_value("stands_in") && root.boolean("stands_in");
  read_strategy(root, *loaded);
  read_support(root.map("supports"), *loaded);
  loaded->costs = read_costs(root, loaded->name, loaded->transport);
  read_fitted(root, *loaded);
  if (std::optional<YamlMap> without = root.optional_map("without")) {
    for (const std::string& table : without->keys()) {
      loaded->without[table] = read_costs(without->map(table), loaded->name, loaded->transport);
    }
  }
  std::vector<OverlapKey> keys = read_overlap_keys(file, root);
  file.finish();
  return {std::move(loaded), std::move(keys)};
}

}  // namespace

std::shared_ptr<const Implementation> load_implementation(std::string_view name_or_path) {
  return read_file(name_or_path).implementation;
}

std::vector<OverlapKey> load_overlap_keys(std::string_view name_or_path) { return read_file(name_or_path).keys; }

std::vector<std::shared_ptr<const Implementation>> load_implementations(std::string_view names) {
  std::vector<std::shared_ptr<const Implementation>> loaded;
  const std::vector<std::string> files = listed_names(Catalogue::implementations, names);
  for (const std::string& file : files) {
    loaded.push_back(load_implementation(file));
    const auto same = std::ranges::find(loaded, loaded.back()->name, &Implementation::name) - loaded.begin();
    if (same + 1 < std::ssize(loaded)) {  // rows of results could not distinguish them
      throw ConfigError(fmt::format("{} and {} are both implementations called {}; give one of them another name",
                                    in_quotes(files[static_cast<std::size_t>(same)]), in_quotes(file),
                                    in_quotes(loaded.back()->name)));
    }
  }
  return loaded;
}

bool covers(const Implementation& implementation, SiteKind kind) {
  return std::ranges::find(implementation.sites, kind) != implementation.sites.end();
}

std::string unmeasured_in_words(const Implementation& implementation, const Machine& machine) {
  return implementation.costs.was_measured_on(machine)
             ? std::string{}
             : fmt::format("{} was not measured on GPUs such as {}", implementation.name, machine.accelerator.name);
}

std::string refusal_of(const Implementation& implementation, const Machine& machine, std::int32_t ranks, DType dtype) {
  const auto& nccl = machine.link.collective.nccl;
  const auto has = [](const auto& list, auto wanted) { return std::ranges::find(list, wanted) != list.end(); };
  if (nccl == nullptr || nccl->tuning.rccl || !has(implementation.generations, nccl->tuning.generation)) {
    return fmt::format("{} does not run on {}; it is for {}", implementation.name, machine.name,
                       names_of(implementation.generations, [](auto generation) { return name_of(generation); }));
  }
  const bool needs_switch = implementation.transport == Transport::multimem || covers(implementation, SiteKind::mlp_ar);
  if (needs_switch && !sums_in_switch(machine)) {
    return fmt::format("{} needs a switch that sums (NVLS), which {} lacks; choose another implementation",
                       implementation.name, machine.name);
  }
  if (ranks > implementation.max_ranks || ranks > implementation.max_nodes * machine.gpus_per_node) {
    const std::int32_t most_ranks =
        std::min(implementation.max_ranks, implementation.max_nodes * machine.gpus_per_node);
    return fmt::format("{} supports up to {} on {}; choose fewer ranks", implementation.name,
                       most_ranks == 1 ? "1 rank" : fmt::format("{} ranks", most_ranks),
                       implementation.max_nodes == 1 ? "one node" : fmt::format("{} nodes", implementation.max_nodes));
  }
  if (!has(implementation.dtypes, dtype)) {
    return fmt::format("{} has no kernels for {}; choose {}", implementation.name, name_of(dtype),
                       names_of(implementation.dtypes, [](auto supported) { return name_of(supported); }));
  }
  return {};
}

}  // namespace commfuse
