// SPDX-License-Identifier: Apache-2.0
#include "sim/point/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/config/bandwidth_choice.h"
#include "model/config/catalogue.h"
#include "model/config/choices.h"
#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/workload/layers.h"
#include "sim/engine/load_faults.h"

namespace commfuse {

namespace {

/// A scope of one layer, or the whole model of that name.
Use use_of_scope(const Settings& settings) {
  for (const auto& [name, use] : whole_model_scopes) {
    if (name == settings.text("scope")) {
      return use;
    }
  }
  return Use::layer;
}

/// "scope step or decode", "a layer's scope": scopes that use the setting.
std::string scopes_using(const Field& field) {
  if (field.uses.has(Use::layer)) {
    return "a layer's scope";
  }
  std::vector<std::string_view> names;
  for (const auto& [name, use] : whole_model_scopes) {
    if (field.uses.has(use)) {
      names.push_back(name);
    }
  }
  return fmt::format("scope {}", fmt::join(names, " or "));
}

/// Throws ConfigError for whole models, and for a setting that layers do not use.
Scope layer_scope_of(const Settings& settings) {
  if (is_whole_model(settings)) {
    throw ConfigError(
        fmt::format("scope {} is a whole model, which only `commfuse-sim run` and `sweep` simulate; choose a layer's "
                    "scope",
                    settings.text("scope")));
  }
  require_used_by_scope(settings);
  return *scope_named(settings.text("scope"));
}

constexpr std::int64_t most_tokens = std::int64_t{1} << 30;

std::vector<const Strategy*> strategies_of(std::string_view list) {
  std::vector<const Strategy*> found;
  for (const Strategy& strategy : strategies()) {
    if (list == "all") {
      found.push_back(&strategy);
    }
  }
  for (const std::string_view name : split_list(list)) {
    if (name != "all") {
      found.push_back(find_strategy(name));
    }
  }
  return found;
}

std::string key_of(Option option) { return fmt::format("strategy.{}", name_of(option)); }

/// Among all strategies those without a schedule for the scope are passed over; asked for by name, that is a mistake.
void require_only_listed(const Strategy& strategy, Scope scope, std::string_view list) {
  if (list == "all") {
    return;
  }
  std::vector<std::string_view> others;
  for (const Strategy& other : strategies()) {
    if (applies(other, kinds_of(scope))) {
      others.push_back(other.name);
    }
  }
  throw ConfigError(fmt::format("strategy {} has no schedule for scope {}; those that have: {}", strategy.name,
                                name_of(scope), fmt::join(others, ", ")));
}

/// A parameter that no strategy takes is a slip, not a wish.
void require_use(const Settings& settings, const std::vector<const Strategy*>& named, Option option) {
  const std::string key = key_of(option);
  const auto takes = [&](const Strategy* strategy) { return strategy->uses.has(option); };
  if (settings.has(key) && std::none_of(named.begin(), named.end(), takes)) {
    throw ConfigError(fmt::format("{} is {}, but strategy {} does not use it; remove it or add a strategy that does",
                                  key, settings.text(key), settings.text("strategy.name")));
  }
}

/// What the user fixed of a strategy; the rest at its defaults.
struct Wish {
  StrategyOptions options;
  OptionSet fixed;
};

Wish wish_of(const Strategy& strategy, const Settings& settings) {
  Wish wish;
  wish.options.dtype = *dtype_named(settings.text("dtype"));
  for (const Option option : all_options) {
    const std::string key = key_of(option);
    if (strategy.uses.has(option) && settings.has(key)) {
      put(option, is_count(option) ? std::to_string(settings.count(key)) : settings.text(key), wish.options);
      wish.fixed.add(option);
    }
  }
  return wish;
}

std::int32_t ranks_of(const Settings& settings) { return static_cast<std::int32_t>(settings.count("ranks")); }

/// The schedules of one strategy that agree with what the user fixed.
std::vector<StrategyOptions> variants_of(const Strategy& strategy, std::span<const SiteKind> kinds,
                                         const Settings& settings) {
  const auto [base, fixed] = wish_of(strategy, settings);
  const std::int32_t ranks = ranks_of(settings);
  if (!refusal_of(strategy, kinds, base, ranks).empty()) {
    return {base};  // whoever runs it says why not
  }
  std::vector<StrategyOptions> all = distinct(strategy, kinds, strategy.variants(base, fixed), ranks);
  std::erase_if(all, [&](const StrategyOptions& one) { return !refusal_of(strategy, kinds, one, ranks).empty(); });
  return all;
}

/// Those named that have a schedule for the scope. Throws ConfigError where a fixed parameter belongs to none of them.
std::vector<const Strategy*> applicable(const Settings& settings, Scope scope) {
  const std::string& list = settings.text("strategy.name");
  std::vector<const Strategy*> named = strategies_of(list);
  for (const Option option : all_options) {
    require_use(settings, named, option);
  }
  std::erase_if(named, [&](const Strategy* strategy) {
    const bool has_none = !applies(*strategy, kinds_of(scope));
    if (has_none) {
      require_only_listed(*strategy, scope, list);
    }
    return has_none;
  });
  return named;
}

}  // namespace

void Library::load(const Settings& settings) {
  load_model(settings.text("model"));
  load_machine(settings);
  load_jitter(settings.text("jitter"));
  load_faults(settings.text("faults"));
}

void Library::load_model(const std::string& name) { models_.emplace(name, commfuse::load_model(name)); }

Library::MachineKey Library::key_of(const Settings& settings) {
  return {settings.text("hardware"), settings.text("link_bandwidth"), settings.text("network_bandwidth")};
}

void Library::load_machine(const Settings& settings) {
  MachineKey key = key_of(settings);
  if (!machines_.contains(key)) {
    Machine machine = machine_of(settings);
    // Many machines, so only where somebody asks how sure a time is.
    std::shared_ptr<const std::vector<RaisedMachine>> raised;
    if (chosen(switch_choices, settings.text("uncertainty"))) {
      raised = std::make_shared<const std::vector<RaisedMachine>>(raised_by_error(machine));
    }
    machines_.emplace(std::move(key), LoadedMachine{std::move(machine), std::move(raised)});
  }
}

void Library::load_jitter(const std::string& name) { jitters_.emplace(name, load_jitter_tables(name)); }

void Library::load_faults(const std::string& name) { faults_.emplace(name, commfuse::load_faults(name)); }

LoadedJitter load_jitter_tables(const std::string& name) {
  const Jitter jitter = load_jitter(name);
  auto tables = std::make_shared<const JitterTables>(jitter);
  return tables->is_still() ? LoadedJitter{} : LoadedJitter{std::move(tables), leans_on(jitter)};
}

MonteCarloOptions monte_carlo_of(const Settings& settings, std::shared_ptr<const JitterTables> jitter) {
  return {.jitter = std::move(jitter),
          .seed = static_cast<std::uint64_t>(settings.count("seed")),
          .samples = static_cast<std::size_t>(samples_of(settings))};
}

VerdictRule verdict_rule_of(const Settings& settings) {
  return {.difference = settings.share("verdict.difference"), .probability = settings.share("verdict.probability")};
}

bool is_whole_model(const Settings& settings) { return use_of_scope(settings) != Use::layer; }

const Field* unused_setting(const Settings& settings, Use work) {
  for (const Field& field : run_fields()) {
    if (!field.uses.has(work) && settings.at(field).text != field.preset) {
      return &field;
    }
  }
  return nullptr;
}

void require_used_by_scope(const Settings& settings) {
  if (const Field* const unused = unused_setting(settings, use_of_scope(settings))) {
    throw ConfigError(fmt::format("{}: scope {} does not use {}; remove it, or choose {}",
                                  settings.at(*unused).origin.where, settings.text("scope"), unused->key,
                                  scopes_using(*unused)));
  }
}

Point point_of(const Settings& settings, const Library& library) {
  Point point{.model = library.model(settings.text("model")), .machine = library.machine(settings)};
  point.link_bandwidth = settings.text("link_bandwidth");
  point.network_bandwidth = settings.text("network_bandwidth");
  point.scope = layer_scope_of(settings);
  point.ranks = static_cast<std::int32_t>(settings.count("ranks"));
  point.batch = settings.count("batch");
  point.seq = settings.count("seq");
  point.dtype = *dtype_named(settings.text("dtype"));
  point.price.interference = chosen(interference_choices, settings.text("interference"));
  point.price.launch = chosen(launch_choices, settings.text("launch"));
  point.price.attention = chosen(attention_choices, settings.text("attention_kernel"));
  point.price.window = window_of(first_attending(point.model));
  point.evaluator = chosen(evaluator_choices, settings.text("evaluator"));
  if (chosen(switch_choices, settings.text("uncertainty"))) {
    point.raised = library.raised(settings);
  }
  point.symmetry = chosen(switch_choices, settings.text("symmetry"));
  point.jitter = settings.text("jitter");
  point.fault_file = settings.text("faults");
  point.faults = library.faults(point.fault_file);
  point.monte_carlo = monte_carlo_of(settings, library.jitter(point.jitter).tables);
  point.jitter_leans_on = library.jitter(point.jitter).leans_on;
  return point;
}

void require_playable(const Point& point) {
  if (point.batch > most_tokens / point.seq) {
    throw ConfigError(fmt::format("batch {} times seq {} is too large; the most is {} tokens",
                                  format_count(point.batch), format_count(point.seq), format_count(most_tokens)));
  }
  require_machine(point);
}

void require_runnable(const Point& point) {
  require_playable(point);
  require_possible(point);
}

bool names_strategies(const Settings& settings) {
  const std::span<const Field> fields = run_fields();
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
    return field.key.starts_with("strategy.") && settings.at(field).origin.source != Source::preset;
  });
}

std::vector<Candidates> candidates_of(const Settings& settings) {
  const Scope scope = layer_scope_of(settings);
  const bool each = chosen(variants_choices, settings.text("strategy.variants"));
  std::vector<Candidates> result;
  for (const Strategy* strategy : applicable(settings, scope)) {
    std::vector<StrategyOptions> options = variants_of(*strategy, kinds_of(scope), settings);
    if (!each) {
      result.push_back({strategy, std::move(options)});
      continue;
    }
    for (const StrategyOptions& one : options) {
      result.push_back({strategy, {one}});
    }
  }
  return result;
}

std::vector<Candidates> plain_candidates_of(const Settings& settings) {
  const Scope scope = layer_scope_of(settings);
  const std::vector<SiteKind> kinds = kinds_of(scope);
  std::vector<Candidates> result;
  for (const Strategy* strategy : applicable(settings, scope)) {
    const StrategyOptions wished = wish_of(*strategy, settings).options;
    const std::string refusal = refusal_of(*strategy, kinds, wished, ranks_of(settings));
    if (!refusal.empty()) {
      throw ConfigError(refusal);
    }
    result.push_back({strategy, {canonical(*strategy, kinds, wished, ranks_of(settings))}});
  }
  return result;
}

}  // namespace commfuse
