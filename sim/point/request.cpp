// SPDX-License-Identifier: Apache-2.0
#include "sim/point/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/config/bandwidth_choice.h"
#include "model/config/catalogue.h"
#include "model/config/choices.h"
#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/workload/layers.h"
#include "sim/engine/load_faults.h"

namespace commfuse {

namespace {

/// Returns the scopes that use the setting: "scope step or decode", "a layer's scope".
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
  const std::string_view last = names.back();
  names.pop_back();
  return names.empty() ? fmt::format("scope {}", last) : fmt::format("scope {} or {}", fmt::join(names, ", "), last);
}

/// Throws ConfigError for whole models, and for a setting that layers do not use.
void require_layer(const Settings& settings, const RunChoices& run) {
  if (run.scope.is_whole_model()) {
    throw ConfigError(
        fmt::format("scope {} is a whole model, which only `commfuse-sim run` and `sweep` simulate; choose a layer's "
                    "scope",
                    name_of(run.scope)));
  }
  require_used_by_scope(settings);
}

constexpr std::int64_t max_tokens = std::int64_t{1} << 30;

std::vector<const Strategy*> strategies_of(const ScheduleChoice& choice) {
  std::vector<const Strategy*> candidates = choice.named;
  if (candidates.empty()) {
    for (const Strategy& strategy : strategies()) {
      candidates.push_back(&strategy);
    }
  }
  return candidates;
}

/// Throws the ConfigError for a strategy that the user named but that has no schedule for the scope.
[[noreturn]] void refuse(const Strategy& strategy, Scope scope) {
  std::vector<std::string_view> applicable_names;
  for (const Strategy& other : strategies()) {
    if (applies(other, kinds_of(scope))) {
      applicable_names.push_back(other.name);
    }
  }
  throw ConfigError(fmt::format("strategy {} has no schedule for scope {}; strategies with one: {}", strategy.name,
                                name_of(scope), fmt::join(applicable_names, ", ")));
}

/// Throws ConfigError for an option that the user set and no named strategy uses.
void require_use(const Settings& settings, const std::vector<const Strategy*>& named, Option option) {
  const std::string_view key = entry_of(option).key;
  const auto uses_option = [&](const Strategy* strategy) { return strategy->takes(option); };
  if (settings.has(key) && std::none_of(named.begin(), named.end(), uses_option)) {
    throw ConfigError(fmt::format("{} is {}, but strategy {} does not use it; remove it or add a strategy that does",
                                  key, settings.text(key), settings.text("strategy.name")));
  }
}

/// The options of a strategy that the user fixed; the rest are at their defaults.
struct Wish {
  StrategyOptions options;
  OptionSet fixed;
};

Wish wish_of(const Strategy& strategy, const RunChoices& run) {
  Wish wish;
  wish.options.dtype = run.dtype;
  for (const Option option : all_options()) {
    if (strategy.takes(option) && run.schedules.fixed.has(option)) {
      copy(option, run.schedules.options, wish.options);
      wish.fixed.add(option);
    }
  }
  return wish;
}

bool covers_scope(const Implementation& implementation, Scope scope) {
  return std::ranges::all_of(kinds_of(scope), [&](SiteKind kind) { return covers(implementation, kind); });
}

/// Throws the ConfigError for an implementation that the user named but that does not cover the scope.
[[noreturn]] void refuse(const Implementation& implementation, Scope scope) {
  std::vector<std::string_view> covered_names;
  for (const Scope other : all_scopes) {
    if (covers_scope(implementation, other)) {
      covered_names.push_back(name_of(other));
    }
  }
  throw ConfigError(fmt::format(
      "implementation {} does not cover scope {}{}; scopes that it covers: {}", implementation.name, name_of(scope),
      is_backward(scope) ? ", as it was measured in forward passes only" : "", fmt::join(covered_names, ", ")));
}

/// Returns true if the schedule leaves attention uncut, as nested rings do, where the user fixed a cut that the
/// strategy can make.
bool drops_cut(const Strategy& strategy, std::span<const SiteKind> kinds, const Wish& wish,
               const StrategyOptions& schedule) {
  return wish.fixed.has(Option::attention) && schedule.attention != wish.options.attention &&
         relevant_options(strategy, kinds, wish.options).has(Option::attention);
}

/// Throws ConfigError if the user fixed nested rings and a cut of attention: nested rings leave attention whole.
void require_cut_possible(const Strategy& strategy, std::span<const SiteKind> kinds, const Wish& wish) {
  const StrategyOptions& wanted = wish.options;
  const bool may_be_rings = wanted.form == Form::ring || !wish.fixed.has(Option::form);
  if (!wish.fixed.has(Option::attention) || wanted.attention == AttentionCut::whole || !wish.fixed.has(Option::inner) ||
      wanted.inner <= 1 || !may_be_rings) {
    return;
  }
  StrategyOptions nested = wanted;
  nested.form = Form::ring;
  StrategyOptions flat = nested;
  flat.inner = 1;
  if (relevant_options(strategy, kinds, flat).has(Option::attention) &&
      !relevant_options(strategy, kinds, nested).has(Option::attention)) {
    throw ConfigError(
        fmt::format("{} is {} and {} is {}, but nested rings of {} do not cut attention; remove one of them",
                    entry_of(Option::inner).key, wanted.inner, entry_of(Option::attention).key,
                    word_of(attention_words, wanted.attention), strategy.name));
  }
}

/// Returns the schedules of one strategy that agree with the fixed options.
std::vector<StrategyOptions> variants_of(const Strategy& strategy, std::span<const SiteKind> kinds,
                                         const RunChoices& run) {
  const Wish wish = wish_of(strategy, run);
  require_cut_possible(strategy, kinds, wish);
  if (!refusal_of(strategy, kinds, wish.options, run.ranks).empty()) {
    return {wish.options};  // running these options reports the reason
  }
  std::vector<StrategyOptions> variants =
      distinct(strategy, kinds, strategy.variants(wish.options, wish.fixed), run.ranks);
  std::erase_if(variants, [&](const StrategyOptions& variant) {
    return !refusal_of(strategy, kinds, variant, run.ranks).empty() || drops_cut(strategy, kinds, wish, variant);
  });
  return variants;
}

/// Returns the strategies with a schedule for the scope. Throws ConfigError if a named strategy has none, and if a
/// fixed parameter belongs to none of them.
std::vector<const Strategy*> applicable(const Settings& settings, const RunChoices& run) {
  std::vector<const Strategy*> strategies = strategies_of(run.schedules);
  for (const Option option : all_options()) {
    require_use(settings, strategies, option);
  }
  const std::vector<SiteKind> kinds = kinds_of(run.scope.layer);
  std::erase_if(strategies, [&](const Strategy* strategy) {
    const bool is_inapplicable = !applies(*strategy, kinds);
    if (is_inapplicable && !run.schedules.named.empty()) {
      refuse(*strategy, run.scope.layer);
    }
    return is_inapplicable;
  });
  return strategies;
}

}  // namespace

void Library::load(const Settings& settings) {
  const RunChoices run = choices_of(settings);
  load_model(run.model);
  load_machine(settings);
  load_jitter(run.jitter);
  load_faults(run.faults);
  load_implementations(run.schedules.implementations);
}

void Library::load_model(const std::string& name) { models_.emplace(name, commfuse::load_model(name)); }

void Library::load_machine(const Settings& settings) {
  const RunChoices run = choices_of(settings);
  auto known = machines_.find(run.machine);
  if (known == machines_.end()) {
    auto file = std::ranges::find(hardware_, run.machine.hardware, &std::pair<std::string, Machine>::first);
    if (file == hardware_.end()) {
      hardware_.emplace_back(run.machine.hardware, commfuse::load_machine(run.machine.hardware));
      file = std::prev(hardware_.end());
    }
    Machine machine = with_chosen_links(file->second, settings);
    const auto accelerator = static_cast<std::size_t>(file - hardware_.begin());
    known =
        machines_.emplace(run.machine, LoadedMachine{.machine = std::move(machine), .accelerator = accelerator}).first;
  }
  // There is one raised machine per parameter, so raised machines are created only if uncertainty is requested.
  LoadedMachine& loaded = known->second;
  const bool decodes = run.scope.work == Use::decode;
  std::shared_ptr<const std::vector<RaisedMachine>>& raised = decodes ? loaded.raised_for_decoding : loaded.raised;
  if (run.uncertainty && raised == nullptr) {
    raised = std::make_shared<const std::vector<RaisedMachine>>(decodes ? raised_for_steps(loaded.machine)
                                                                        : raised_beside_decoding(loaded.machine));
  }
}

void Library::load_jitter(const std::string& name) { jitters_.emplace(name, load_jitter_tables(name)); }

void Library::load_faults(const std::string& name) { faults_.emplace(name, commfuse::load_faults(name)); }

void Library::load_implementations(const std::string& names) {
  if (!implementations_.contains(names)) {
    implementations_.emplace(names, commfuse::load_implementations(names));
  }
}

LoadedJitter load_jitter_tables(const std::string& name) {
  const Jitter jitter = load_jitter(name);
  auto tables = std::make_shared<const JitterTables>(jitter);
  return tables->is_still() ? LoadedJitter{} : LoadedJitter{std::move(tables), provenances_of(jitter)};
}

MonteCarloOptions monte_carlo_of(const RunChoices& run, std::shared_ptr<const JitterTables> jitter) {
  return {.jitter = std::move(jitter), .seed = run.seed, .samples = static_cast<std::size_t>(samples_of(run))};
}

VerdictRule verdict_rule_of(const Settings& settings) { return choices_of(settings).verdict; }

// Called for every point of a grid, so it reads a single setting.
bool is_whole_model(const Settings& settings) { return !scope_named(settings.text("scope")); }

const Field* unused_setting(const Settings& settings, Use work) {
  const Field* of_framework = nullptr;
  for (const Field& field : run_fields()) {
    if (field.uses.has(work) || settings.at(field).text == field.preset) {
      continue;
    }
    if (settings.at(field).origin.source != Source::preset) {
      return &field;
    }
    of_framework = of_framework == nullptr ? &field : of_framework;
  }
  return of_framework;
}

void require_used_by_scope(const Settings& settings) {
  const ScopeChoice scope = choices_of(settings).scope;
  if (const Field* const unused = unused_setting(settings, scope.work)) {
    throw ConfigError(fmt::format("{}: scope {} does not support '{}'; remove it, or choose {}",
                                  settings.at(*unused).origin.where, name_of(scope), unused->key,
                                  scopes_using(*unused)));
  }
}

ExpertSplit experts_of(Scope scope, const Transformer& model) {
  if (!is_expert_gemm(scope, model)) {
    return {};
  }
  return {.count = model.experts->count,
          .active = model.experts->active,
          .ranks = model.experts->layer_ranks,
          .cut = scope == Scope::gate_up ? WeightCut::columns : WeightCut::contraction};
}

Point point_of(const Settings& settings, const Library& library) {
  const RunChoices run = choices_of(settings);
  require_layer(settings, run);
  const LoadedJitter& jitter = library.jitter(run.jitter);
  Point point{.model = library.model(run.model), .machine = library.machine(run.machine)};
  point.link_bandwidth = run.machine.link_bandwidth;
  point.network_bandwidth = run.machine.network_bandwidth;
  point.scope = run.scope.layer;
  point.ranks = run.ranks;
  point.batch = run.batch;
  point.seq = run.seq;
  point.dtype = run.dtype;
  point.price = run.price;
  point.price.window = window_of(first_attending(point.model));
  point.price.experts = experts_of(point.scope, point.model);
  point.simulation = run.simulation;
  if (run.uncertainty) {
    point.raised = library.raised(run.machine);
  }
  point.jitter = run.jitter;
  point.fault_file = run.faults;
  point.faults = library.faults(run.faults);
  point.monte_carlo = monte_carlo_of(run, jitter.tables);
  point.jitter_provenances = jitter.provenances;
  return point;
}

void require_simulatable(const Point& point) {
  if (point.batch > max_tokens / point.seq) {
    throw ConfigError(fmt::format("batch {} times seq {} is too large; the limit is {} tokens",
                                  format_count(point.batch), format_count(point.seq), format_count(max_tokens)));
  }
  require_machine(point);
}

void require_runnable(const Point& point) {
  require_simulatable(point);
  require_possible(point);
}

bool names_strategies(const Settings& settings) {
  const std::span<const Field> fields = run_fields();
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
    return field.key.starts_with("strategy.") && settings.at(field).origin.source != Source::preset;
  });
}

std::vector<Candidates> candidates_of(const Settings& settings) {
  const RunChoices run = choices_of(settings);
  require_layer(settings, run);
  const std::vector<SiteKind> kinds = kinds_of(run.scope.layer);
  std::vector<Candidates> result;
  for (const Strategy* strategy : applicable(settings, run)) {
    std::vector<StrategyOptions> options = variants_of(*strategy, kinds, run);
    if (!run.schedules.each_variant) {
      result.push_back({strategy, std::move(options)});
      continue;
    }
    for (const StrategyOptions& variant : options) {
      result.push_back({strategy, {variant}});
    }
  }
  return result;
}

std::vector<StrategyOptions> schedules_of(const Implementation& implementation, Scope scope, std::int32_t ranks,
                                          DType dtype) {
  const Strategy& strategy = *implementation.strategy;
  StrategyOptions base = implementation.options;
  base.dtype = dtype;
  return distinct(strategy, kinds_of(scope), strategy.variants(base, implementation.fixed), ranks);
}

Implementations implementations_named(const Settings& settings, const Library& library) {
  return library.implementations(choices_of(settings).schedules.implementations);
}

const Implementation* implementation_of(const ResultRow& row, Implementations implementations) {
  if (row.implements.empty()) {
    return nullptr;
  }
  const auto match =
      std::ranges::find(implementations, row.strategy, [](const auto& implementation) { return implementation->name; });
  return match == implementations.end() ? nullptr : match->get();
}

std::vector<Candidates> implementations_of(const Settings& settings, const Library& library) {
  const RunChoices run = choices_of(settings);
  const std::string& names = run.schedules.implementations;
  std::vector<Candidates> result;
  for (const auto& implementation : library.implementations(names)) {
    if (names == "all" && implementation->stands_in) {
      continue;  // a stand-in represents kernels without a description
    }
    if (covers_scope(*implementation, run.scope.layer)) {
      result.push_back({implementation->strategy, schedules_of(*implementation, run.scope.layer, run.ranks, run.dtype),
                        implementation});
    } else if (names != "all") {
      refuse(*implementation, run.scope.layer);
    }
  }
  return result;
}

std::string refusal_of(const Implementation& implementation, const Point& point) {
  if (!covers_scope(implementation, point.scope)) {
    return fmt::format("{} has no kernel for scope {}", implementation.name, name_of(point.scope));
  }
  if (point.price.experts.count > 0 && !implementation.experts) {
    return fmt::format("{} has no kernels for experts; choose another implementation, or a model without experts",
                       implementation.name);
  }
  return refusal_of(implementation, point.machine, point.ranks, point.dtype);
}

Point priced_as(const Point& point, const Implementation& implementation) {
  return priced_as(point, implementation, implementation.costs);
}

Point priced_as(const Point& point, const Implementation& implementation, const ImplementationCosts& costs) {
  Point priced = point;
  priced.price.implementation = &costs.on(point.machine);
  if (implementation.transport == Transport::nccl && priced.price.interference == Interference::constant) {
    priced.price.interference = Interference::dynamic;
    priced.simulation.evaluator = Evaluator::automatic;  // replay cannot change rates
  }
  return priced;
}

std::vector<Candidates> plain_candidates_of(const Settings& settings) {
  const RunChoices run = choices_of(settings);
  require_layer(settings, run);
  const std::vector<SiteKind> kinds = kinds_of(run.scope.layer);
  std::vector<Candidates> result;
  for (const Strategy* strategy : applicable(settings, run)) {
    const Wish wish = wish_of(*strategy, run);
    require_cut_possible(*strategy, kinds, wish);
    const StrategyOptions& chosen = wish.options;
    const std::string refusal = refusal_of(*strategy, kinds, chosen, run.ranks);
    if (!refusal.empty()) {
      throw ConfigError(refusal);
    }
    result.push_back({strategy, {canonical(*strategy, kinds, chosen, run.ranks)}});
  }
  return result;
}

}  // namespace commfuse
