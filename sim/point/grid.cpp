// SPDX-License-Identifier: Apache-2.0
#include "sim/point/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "model/config/choices.h"
#include "model/config_error.h"
#include "sim/point/point_list.h"
#include "sim/point/point_runner.h"

namespace commfuse {

namespace {

/// Returns the values of a setting in the grid, each once.
std::vector<std::string> values_of(const Grid& grid, std::string_view key) {
  const Field* field = find_field(key);
  std::vector<std::string> values;
  for (const GridAxis& axis : grid.axes) {
    for (std::size_t f = 0; f < axis.fields.size(); ++f) {
      for (const std::vector<Setting>& step : axis.steps) {
        if (axis.fields[f] == field && std::find(values.begin(), values.end(), step[f].text) == values.end()) {
          values.push_back(step[f].text);
        }
      }
    }
  }
  return values.empty() ? std::vector{grid.settings.text(key)} : values;
}

/// Returns the origin of the axis that varies a setting, otherwise the origin of the setting.
Origin origin_in(const Grid& grid, const Field& field) {
  for (const GridAxis& axis : grid.axes) {
    if (std::find(axis.fields.begin(), axis.fields.end(), &field) != axis.fields.end()) {
      return axis.origin;
    }
  }
  return grid.settings.at(field).origin;
}

/// Adds a mistake once, even if several files share it.
void note(const ConfigError& error, std::vector<std::string>& mistakes) {
  if (std::find(mistakes.begin(), mistakes.end(), error.what()) == mistakes.end()) {
    mistakes.emplace_back(error.what());
  }
}

/// Returns the settings that fill a MachineChoice, without the machine's name.
std::vector<const Field*> machine_settings() {
  std::vector<const Field*> settings;
  for (const Field& field : run_fields()) {
    RunChoices run;
    field.put(field.example, run);
    if (run.machine != MachineChoice() && field.key != "hardware") {
      settings.push_back(&field);
    }
  }
  return settings;
}

/// Loads the machine of the settings with every combination of values that the grid has for these fields.
void load_with(const Grid& grid, std::span<const Field* const> fields, Settings settings, Library& library) {
  if (fields.empty()) {
    library.load_machine(settings);
    return;
  }
  const Field& field = *fields.front();
  for (const std::string& text : values_of(grid, field.key)) {
    settings.put(field, {text, origin_in(grid, field)});
    load_with(grid, fields.subspan(1), settings, library);
  }
}

/// Loads each hardware with all link rates of the grid.
void load_machines(const Grid& grid, Library& library, std::vector<std::string>& mistakes) {
  Settings settings = grid.settings;
  const auto put = [&](std::string_view key, const std::string& text) {
    const Field& field = *find_field(key);
    settings.put(field, {text, origin_in(grid, field)});
  };
  const std::vector<std::string> uncertainty = values_of(grid, "uncertainty");
  put("uncertainty", std::find(uncertainty.begin(), uncertainty.end(), "on") == uncertainty.end() ? "off" : "on");
  const std::vector<const Field*> machine_fields = machine_settings();
  for (const std::string& hardware : values_of(grid, "hardware")) {
    put("hardware", hardware);
    try {
      load_with(grid, machine_fields, settings, library);
    } catch (const ConfigError& error) {
      note(error, mistakes);
    }
  }
}

}  // namespace

Library library_of(const Grid& grid) {
  Library library;
  std::vector<std::string> mistakes;
  const auto load_all = [&](std::string_view key, void (Library::*load)(const std::string&)) {
    for (const std::string& name : values_of(grid, key)) {
      try {
        (library.*load)(name);
      } catch (const ConfigError& error) {
        note(error, mistakes);
      }
    }
  };
  load_all("model", &Library::load_model);
  load_machines(grid, library, mistakes);
  load_all("jitter", &Library::load_jitter);
  load_all("faults", &Library::load_faults);
  load_all("as", &Library::load_implementations);
  if (!mistakes.empty()) {
    throw ConfigError(fmt::format("{}", fmt::join(mistakes, "\n")));
  }
  return library;
}

void require_whole_models(const std::vector<Settings>& points) {
  for (const Settings& settings : points) {
    if (!is_whole_model(settings)) {
      throw ConfigError(fmt::format("scope {} cannot be combined with whole models; run them separately",
                                    name_of(choices_of(settings).scope)));
    }
  }
}

bool has_whole_models(const Grid& grid) {
  const Field& field = *find_field("scope");
  std::vector<Settings> scopes;
  for (const std::string& scope : values_of(grid, field.key)) {
    scopes.push_back(grid.settings);
    scopes.back().put(field, {scope, origin_in(grid, field)});
  }
  const bool has_whole_model = std::any_of(scopes.begin(), scopes.end(), is_whole_model);
  if (has_whole_model) {
    require_whole_models(scopes);
  }
  return has_whole_model;
}

std::vector<Settings> points_of(const Grid& grid) {
  const PointList list(grid, max_run_points);
  PointCursor cursor(list);
  std::vector<Settings> points;
  points.reserve(list.size());
  for (std::size_t point = 0; point < list.size(); ++point) {
    points.push_back(cursor.at(point));
  }
  return points;
}

void require_all_runnable(const std::vector<Settings>& points, const Library& library) {
  for (const Settings& settings : points) {
    if (runs_generated(settings, library)) {
      candidates_of(settings);
      require_runnable(point_of(settings, library));
    }
  }
}

void require_all_runnable(const PointList& points, const Library& library) {
  StructureCache structures;
  PointRunner runner(library, structures);
  PointCursor cursor(points);
  for (std::size_t point = 0; point < points.size(); ++point) {
    runner.require_runnable(cursor.at(point));
  }
}

}  // namespace commfuse
