// SPDX-License-Identifier: Apache-2.0
#include "sim/point/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>

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

/// Returns the settings that fill a MachineChoice.
std::vector<const Field*> machine_settings() {
  std::vector<const Field*> settings;
  for (const Field& field : run_fields()) {
    RunChoices run;
    field.put(field.example, run);
    if (run.machine != MachineChoice() || field.key == "hardware") {
      settings.push_back(&field);
    }
  }
  return settings;
}

/// Returns the axis with only the settings that fill a MachineChoice, each step once.
GridAxis machine_part_of(const GridAxis& axis, std::span<const Field* const> machine_fields) {
  GridAxis part{.fields = {}, .steps = {}, .origin = axis.origin};
  std::vector<std::size_t> columns;
  for (std::size_t f = 0; f < axis.fields.size(); ++f) {
    if (std::find(machine_fields.begin(), machine_fields.end(), axis.fields[f]) != machine_fields.end()) {
      part.fields.push_back(axis.fields[f]);
      columns.push_back(f);
    }
  }
  std::set<std::vector<std::string>> known;
  for (const std::vector<Setting>& step : axis.steps) {
    std::vector<std::string> texts;
    std::vector<Setting> settings;
    for (const std::size_t f : columns) {
      texts.push_back(step[f].text);
      settings.push_back({step[f].text, axis.origin});
    }
    if (known.insert(std::move(texts)).second) {
      part.steps.push_back(std::move(settings));
    }
  }
  return part;
}

/// Loads the machines of a grid. Settings that vary together are combined only within a step: the network rate of a
/// step with a cluster would not fit a step with a single node.
class MachineLoader {
 public:
  MachineLoader(Library& library, std::vector<std::string>& mistakes) : library_(library), mistakes_(mistakes) {}

  /// Loads the machine of the settings with every combination of steps of the axes. After a mistake, skips the other
  /// machines with the same hardware.
  void load(std::span<const GridAxis> axes, const Settings& settings) {
    if (axes.empty()) {
      load(settings);
      return;
    }
    const GridAxis& axis = axes.front();
    for (const std::vector<Setting>& step : axis.steps) {
      Settings varied = settings;
      for (std::size_t f = 0; f < axis.fields.size(); ++f) {
        varied.put(*axis.fields[f], step[f]);
      }
      load(axes.subspan(1), varied);
    }
  }

 private:
  void load(const Settings& settings) {
    if (faulty_.contains(settings.text("hardware"))) {
      return;
    }
    try {
      library_.load_machine(settings);
    } catch (const ConfigError& error) {
      note(error, mistakes_);
      faulty_.insert(settings.text("hardware"));
    }
  }

  Library& library_;
  std::vector<std::string>& mistakes_;
  std::set<std::string> faulty_;  // hardware with a mistake
};

void load_machines(const Grid& grid, Library& library, std::vector<std::string>& mistakes) {
  Settings settings = grid.settings;
  const Field& field = *find_field("uncertainty");
  const std::vector<std::string> uncertainty = values_of(grid, field.key);
  const bool is_on = std::find(uncertainty.begin(), uncertainty.end(), "on") != uncertainty.end();
  settings.put(field, {is_on ? "on" : "off", origin_in(grid, field)});
  const std::vector<const Field*> machine_fields = machine_settings();
  std::vector<GridAxis> axes;
  for (const GridAxis& axis : grid.axes) {
    if (GridAxis part = machine_part_of(axis, machine_fields); !part.fields.empty()) {
      axes.push_back(std::move(part));
    }
  }
  MachineLoader(library, mistakes).load(axes, settings);
  const Field& scope = *find_field("scope");
  const std::vector<std::string> scopes = values_of(grid, scope.key);
  if (std::find(scopes.begin(), scopes.end(), "decode") != scopes.end()) {  // needs more raised machines
    settings.put(scope, {"decode", origin_in(grid, scope)});
    MachineLoader(library, mistakes).load(axes, settings);
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
