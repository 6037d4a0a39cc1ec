// SPDX-License-Identifier: Apache-2.0
#include "sim/point/unused_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "model/config/choices.h"
#include "model/strategies/strategies.h"
#include "sim/point/grid.h"

namespace commfuse {

namespace {

bool is_of_variable(const Settings& settings, const Field& field) {
  return settings.at(field).origin.source == Source::environment && settings.at(field).text != field.preset;
}

std::string ignore(Settings& settings, const Field& field, std::string_view reason) {
  std::string note = fmt::format("note: {} is ignored; {}\n", settings.at(field).origin.where, reason);
  settings.put(field, {std::string(field.preset), {}});
  return note;
}

/// Returns whether the setting is an option of strategies that none of the named strategies has.
bool is_option_of_others(const Field& field, const ScheduleChoice& schedules) {
  const std::span<const Option> options = all_options();
  const auto option = std::ranges::find(options, field.key, [](Option known) { return entry_of(known).key; });
  return option != options.end() && !schedules.named.empty() &&
         std::ranges::none_of(schedules.named, [&](const Strategy* named) { return named->takes(*option); });
}

/// Returns why no run of these settings can use the field; empty if one can.
std::string why_unused(const Settings& settings, const Field& field) {
  const RunChoices run = choices_of(settings);
  if (!field.uses.has(run.scope.work)) {
    return fmt::format("scope {} does not support '{}'", name_of(run.scope), field.key);
  }
  if (is_option_of_others(field, run.schedules)) {
    return fmt::format("strategy {} does not use '{}'", settings.text("strategy.name"), field.key);
  }
  return "";
}

/// Settings that only draws of jitter use.
constexpr std::array<std::string_view, 2> drawn_with{"samples", "seed"};

/// Returns whether some point has jitter.
bool draws_jitter(const Grid& grid) {
  const Field& jitter = *find_field("jitter");
  for (const GridAxis& axis : grid.axes) {
    if (const auto place = std::ranges::find(axis.fields, &jitter); place != axis.fields.end()) {
      const auto f = static_cast<std::size_t>(place - axis.fields.begin());
      return std::ranges::any_of(axis.steps, [&](const auto& step) { return step[f].text != "none"; });
    }
  }
  return grid.settings.text("jitter") != "none";
}

/// Returns why no point draws anything; empty if one does.
std::string_view why_nothing_is_drawn(const Grid& grid) {
  return !draws_jitter(grid)      ? "without jitter; add --jitter default, or remove this setting"
         : has_whole_models(grid) ? "on whole models, whose percentiles follow from formulas; remove this setting"
                                  : "";
}

bool chooses_work(const Field* field) { return field->key == "scope" || field->key == "strategy.name"; }

bool varies_field(const GridAxis& axis, const Field& field) {
  return std::ranges::find(axis.fields, &field) != axis.fields.end();
}

/// Returns the settings with every scope and every list of strategies that the axes hold.
std::vector<Settings> works_of(const Grid& grid) {
  std::vector<Settings> works{grid.settings};
  for (const GridAxis& axis : grid.axes) {
    if (std::ranges::none_of(axis.fields, chooses_work)) {
      continue;
    }
    std::vector<Settings> varied;
    for (const Settings& work : works) {
      for (const std::vector<Setting>& step : axis.steps) {
        varied.push_back(work);
        for (std::size_t f = 0; f < axis.fields.size(); ++f) {
          varied.back().put(*axis.fields[f], step[f]);
        }
      }
    }
    works = std::move(varied);
  }
  return works;
}

}  // namespace

std::string ignore_unused_variables(Grid& grid) {
  std::string notes;
  const std::vector<Settings> works = works_of(grid);
  for (const Field& field : run_fields()) {
    const bool is_varied =
        std::ranges::any_of(grid.axes, [&](const GridAxis& axis) { return varies_field(axis, field); });
    if (is_varied || !is_of_variable(grid.settings, field)) {
      continue;
    }
    for (const Settings& work : works) {
      if (const std::string reason = why_unused(work, field); !reason.empty()) {
        notes += ignore(grid.settings, field, reason);
        break;
      }
    }
  }
  return notes;
}

std::string ignore_unused_variables(Settings& settings) {
  Grid grid{.settings = std::move(settings)};
  std::string notes = ignore_unused_variables(grid);
  settings = std::move(grid.settings);
  return notes;
}

std::string ignore_unused_variables(Settings& settings, Use work, std::string_view work_in_words) {
  std::string notes;
  for (const Field& field : run_fields()) {
    if (is_of_variable(settings, field) && !field.uses.has(work)) {
      notes += ignore(settings, field, fmt::format("{} does not use '{}'", work_in_words, field.key));
    }
  }
  return notes;
}

std::string notes_on_unused_draws(const Grid& grid) {
  const std::string_view reason = why_nothing_is_drawn(grid);
  if (reason.empty()) {
    return "";
  }
  std::string notes;
  const auto add = [&](std::string_view where) { notes += fmt::format("note: {} has no effect {}\n", where, reason); };
  for (const std::string_view key : drawn_with) {
    const Field& field = *find_field(key);
    const auto axis = std::ranges::find_if(grid.axes, [&](const GridAxis& a) { return varies_field(a, field); });
    if (axis != grid.axes.end()) {
      add(axis->origin.where);
    } else if (grid.settings.text(key) != field.preset) {
      add(grid.settings.at(field).origin.where);
    }
  }
  return notes;
}

namespace {

/// Returns the texts of the setting at the points of the grid, before constraints.
std::vector<std::string> texts_of(const Grid& grid, const Field& field) {
  const auto axis = std::ranges::find_if(grid.axes, [&](const GridAxis& a) { return varies_field(a, field); });
  if (axis == grid.axes.end()) {
    return {grid.settings.text(field.key)};
  }
  const auto index = static_cast<std::size_t>(std::ranges::find(axis->fields, &field) - axis->fields.begin());
  std::vector<std::string> texts;
  for (const std::vector<Setting>& step : axis->steps) {
    texts.push_back(step[index].text);
  }
  return texts;
}

bool is_everywhere(const Grid& grid, std::string_view key, std::string_view text) {
  return std::ranges::all_of(texts_of(grid, *find_field(key)), [&](const std::string& value) { return value == text; });
}

/// Returns a note on a setting that has no effect; empty if it has its default at every point.
std::string note_on_unused_method(const Grid& grid, std::string_view key, std::string_view why) {
  const Field& field = *find_field(key);
  if (is_everywhere(grid, key, field.preset)) {
    return "";
  }
  const auto axis = std::ranges::find_if(grid.axes, [&](const GridAxis& a) { return varies_field(a, field); });
  return fmt::format("note: {} has no effect {}\n",
                     axis == grid.axes.end() ? grid.settings.at(field).origin.where : axis->origin.where, why);
}

bool has_scope(const Grid& grid, std::string_view scope) {
  const std::vector<std::string> scopes = texts_of(grid, *find_field("scope"));
  return std::ranges::find(scopes, scope) != scopes.end();
}

/// Returns whether some point sums over ranks: over tensor ranks, or gradients over replicas.
bool has_sums(const Grid& grid) {
  const bool has_replicas = std::ranges::any_of(std::array{"parallel.data", "parallel.context", "parallel.ulysses"},
                                                [&](std::string_view key) { return !is_everywhere(grid, key, "1"); });
  return !is_everywhere(grid, "ranks", "1") || (has_scope(grid, "step") && has_replicas);
}

}  // namespace

std::string notes_on_unused_methods(const Grid& grid, const Library& library) {
  const bool has_latent = std::ranges::any_of(texts_of(grid, *find_field("model")), [&](const std::string& name) {
    return library.model(name).latent.has_value();
  });
  std::string notes;
  if (!has_latent && has_scope(grid, "decode")) {  // other scopes refuse the setting
    notes +=
        note_on_unused_method(grid, "step.latent_decode", "on models without latent attention; remove this setting");
  }
  if (!has_sums(grid)) {
    notes +=
        note_on_unused_method(grid, "all_reduce_kernel", "with one rank; choose more --ranks, or remove this setting");
  }
  return notes;
}

std::string notes_on_unused_draws(const Settings& settings) {
  return notes_on_unused_draws(Grid{.settings = settings});
}

std::string notes_on_unused_draws(const Settings& settings, Use work) {
  if (work != Use::lab) {
    return notes_on_unused_draws(settings);
  }
  Settings without_seed = settings;
  const Field& seed = *find_field("seed");
  without_seed.put(seed, {std::string(seed.preset), {}});
  return notes_on_unused_draws(without_seed);
}

}  // namespace commfuse
