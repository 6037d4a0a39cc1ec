// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/sweep_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "model/config_error.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

using Steps = std::vector<Setting>;

/// Appends the values of one scalar of an axis.
void read_piece(YamlFile& file, const Field& field, const YamlValue& piece, Steps& steps) {
  if (piece.kind() != YamlKind::scalar) {
    file.mistake(piece.place(),
                 fmt::format("a value of '{0}' is missing or not plain text; write one, as in \"{0}: [{1}]\"",
                             field.key, field.example));
    return;
  }
  try {
    for (const std::string& value : axis_values(field, piece.text())) {
      std::optional<Setting> setting = read_setting(file, field, value, piece);
      if (!setting) {
        return;  // one mistake per range is enough
      }
      steps.push_back(*std::move(setting));
    }
  } catch (const ConfigError& error) {
    file.mistake(piece.place(), error.what());
  }
}

Steps read_values(YamlFile& file, const Field& field, const YamlValue& value) {
  Steps steps;
  if (value.kind() != YamlKind::list) {
    read_piece(file, field, value, steps);
    return steps;
  }
  if (value.items().empty()) {
    file.mistake(value.place(),
                 fmt::format("the list is empty; write values, as in \"{}: [{}]\"", field.key, field.example));
  }
  for (const YamlValue& item : value.items()) {
    read_piece(file, field, item, steps);
  }
  return steps;
}

/// Returns the field of an entry. For an unknown key, records the mistake and returns null.
const Field* field_of(YamlFile& file, Resolver& resolver, const YamlValue::Field& entry) {
  if (file.is_full()) {
    file.mistake(entry.place, "an axis");  // counted, not shown
    return nullptr;
  }
  try {
    std::string refused;
    const std::string where = fmt::format("{}:{}:{}", file.path(), entry.place.line, entry.place.column);
    const Field* const known = resolver.field_of_key(entry.key, where, refused);
    if (!refused.empty()) {
      throw ConfigError(refused);
    }
    return &axis_field(known == nullptr ? std::string_view(entry.key) : known->key);
  } catch (const ConfigError& error) {
    file.mistake(entry.place, error.what());
    return nullptr;
  }
}

/// Reads settings that vary together, row by row.
void read_zip(YamlFile& file, Resolver& resolver, const YamlValue& value, GridAxis& axis) {
  std::vector<Steps> columns;
  if (value.kind() != YamlKind::map || value.fields().size() < 2) {
    file.mistake(value.place(), "zip needs two settings or more; write \"zip: {seq: [1K, 2K], batch: [8, 4]}\"");
    return;
  }
  for (const YamlValue::Field& entry : value.fields()) {
    if (const Field* field = field_of(file, resolver, entry)) {
      columns.push_back(read_values(file, *field, entry.value));
      axis.fields.push_back(field);
    }
  }
  if (file.has_mistakes()) {
    return;
  }
  for (std::size_t c = 1; c < columns.size(); ++c) {
    if (columns[c].size() != columns[0].size()) {
      file.mistake(value.place(),
                   fmt::format("zip has {} values of '{}' but {} of '{}'; give equal numbers", columns[0].size(),
                               axis.fields[0]->key, columns[c].size(), axis.fields[c]->key));
      return;
    }
  }
  for (std::size_t i = 0; i < columns[0].size(); ++i) {
    std::vector<Setting>& step = axis.steps.emplace_back();
    for (const Steps& column : columns) {
      step.push_back(column[i]);
    }
  }
}

void read_single(YamlFile& file, Resolver& resolver, const YamlValue::Field& entry, GridAxis& axis) {
  if (const Field* field = field_of(file, resolver, entry)) {
    axis.fields = {field};
    for (Setting& setting : read_values(file, *field, entry.value)) {
      axis.steps.push_back({std::move(setting)});
    }
  }
}

void read_axis(YamlFile& file, Resolver& resolver, const YamlValue& item, std::vector<GridAxis>& axes) {
  if (item.kind() != YamlKind::map || item.fields().size() != 1) {
    file.mistake(item.place(),
                 "an axis is one setting and its values; write \"- seq: 1K..128K\", or \"- zip: {...}\" for "
                 "several that vary together");
    return;
  }
  const YamlValue::Field entry = item.fields().front();
  GridAxis axis;
  axis.origin = {Source::file, item.where()};
  entry.key == "zip" ? read_zip(file, resolver, entry.value, axis) : read_single(file, resolver, entry, axis);
  if (const std::string repeated = repeated_step(axis); !repeated.empty()) {
    file.mistake(entry.value.place(), fmt::format("{} is given twice; keep one of them", in_quotes(repeated)));
  }
  axes.push_back(std::move(axis));
}

std::vector<GridAxis> read_axes(YamlFile& file, Resolver& resolver, const YamlValue& value) {
  std::vector<GridAxis> axes;
  if (value.kind() != YamlKind::list) {
    file.mistake(value.place(), "'axes' is not a list; write one axis per line, as in \"- seq: 1K..128K\"");
    return axes;
  }
  for (const YamlValue& item : value.items()) {
    read_axis(file, resolver, item, axes);
  }
  return axes;
}

void read_constraint(YamlFile& file, const YamlValue& item, std::vector<GridConstraint>& constraints) {
  if (item.kind() != YamlKind::scalar) {
    file.mistake(item.place(), "a constraint is one comparison; write it as text, as in \"- batch*seq == 128K\"");
    return;
  }
  const YamlPlace start = item.text_place();
  try {
    constraints.push_back({Constraint(item.text()), [path = file.path(), start](std::size_t column) {
                             return fmt::format("{}:{}:{}", path, start.line, start.column + static_cast<int>(column));
                           }});
  } catch (const ConstraintError& error) {
    file.mistake({start.line, start.column + static_cast<int>(error.column())}, error.what());
  }
}

std::vector<GridConstraint> read_constraints(YamlFile& file, const YamlValue& value) {
  std::vector<GridConstraint> constraints;
  if (value.kind() != YamlKind::list) {
    file.mistake(value.place(), "'constraints' is not a list; write one per line, as in \"- batch*seq == 128K\"");
    return constraints;
  }
  for (const YamlValue& item : value.items()) {
    read_constraint(file, item, constraints);
  }
  return constraints;
}

std::vector<std::string> read_outputs(YamlFile& file, const std::optional<YamlValue>& value) {
  if (!value) {
    return {all_outputs.begin(), all_outputs.end()};
  }
  if (value->kind() != YamlKind::list) {
    file.mistake(value->place(),
                 "'outputs' is not a list; write some of csv, json, report, map, as in \"outputs: [csv, json]\"");
    return {};
  }
  std::vector<std::string> chosen;
  for (const YamlValue& item : value->items()) {
    if (std::find(all_outputs.begin(), all_outputs.end(), item.text()) == all_outputs.end()) {
      file.mistake(item.place(), fmt::format("unknown output {}; {}", in_quotes(item.text()),
                                             remedy_for(item.text(), all_outputs, "outputs")));
    }
    chosen.push_back(item.text());
  }
  std::vector<std::string> in_order;
  for (const std::string_view output : all_outputs) {
    if (std::find(chosen.begin(), chosen.end(), output) != chosen.end()) {
      in_order.emplace_back(output);
    }
  }
  return in_order;
}

/// A setting such as `model: ...` at the top belongs under 'set'.
void note_settings_at_top(YamlFile& file, YamlMap& root) {
  for (const YamlValue::Field& entry : file.top().fields()) {
    if (find_field(entry.key) != nullptr || is_group(entry.key)) {
      root.optional_value(entry.key);
      file.mistake(entry.place, fmt::format("'{0}' is a setting; write it below 'set:'", entry.key));
    }
  }
}

Sweep read_parts(YamlFile& file, Resolver& resolver) {
  YamlMap root = file.root();
  root.schema(sweep_schema);
  Sweep sweep;
  sweep.title = root.has("title") ? root.text("title") : std::filesystem::path(file.path()).stem().string();
  root.optional_value("title");  // allowed, and optional
  if (const std::optional<YamlValue> set = root.optional_value("set")) {
    if (set->kind() == YamlKind::map) {
      resolver.read_map(file, *set);
    } else {
      file.mistake(set->place(), "'set' is not a map; write settings below it, as in \"set: {model: llama-3.1-70b}\"");
    }
  }
  if (const std::optional<YamlValue> axes = root.optional_value("axes")) {
    sweep.grid.axes = read_axes(file, resolver, *axes);
  }
  if (const std::optional<YamlValue> constraints = root.optional_value("constraints")) {
    sweep.grid.constraints = read_constraints(file, *constraints);
  }
  sweep.outputs = read_outputs(file, root.optional_value("outputs"));
  note_settings_at_top(file, root);
  return sweep;
}

bool varies(const GridAxis& axis, const Field* field) {
  return std::find(axis.fields.begin(), axis.fields.end(), field) != axis.fields.end();
}

bool same_values(const std::vector<Setting>& a, const std::vector<Setting>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Setting& x, const Setting& y) { return x.text == y.text; });
}

/// Removes one setting from an axis; settings that vary together with it stay, each combination once.
void drop(GridAxis& axis, const Field* field) {
  const auto match = std::find(axis.fields.begin(), axis.fields.end(), field);
  if (match == axis.fields.end()) {
    return;
  }
  const auto column = match - axis.fields.begin();
  axis.fields.erase(match);
  for (std::vector<Setting>& step : axis.steps) {
    step.erase(step.begin() + column);
  }
  std::vector<std::vector<Setting>> distinct;
  for (std::vector<Setting>& step : axis.steps) {
    if (std::none_of(distinct.begin(), distinct.end(), [&](const auto& other) { return same_values(step, other); })) {
      distinct.push_back(std::move(step));
    }
  }
  axis.steps = std::move(distinct);
}

void remove_empty(std::vector<GridAxis>& axes) {
  axes.erase(std::remove_if(axes.begin(), axes.end(), [](const GridAxis& axis) { return axis.fields.empty(); }),
             axes.end());
}

/// Reports settings that two axes of the same source vary.
void note_repetitions(const std::vector<GridAxis>& axes, Resolver& resolver) {
  for (std::size_t a = 0; a < axes.size(); ++a) {
    for (const Field* field : axes[a].fields) {
      for (std::size_t b = 0; b < a; ++b) {
        if (varies(axes[b], field) && axes[a].origin.source == axes[b].origin.source) {
          resolver.mistake(fmt::format("{}: '{}' is already varied by {}; keep one of them", axes[a].origin.where,
                                       field->key, axes[b].origin.where));
        }
      }
    }
  }
}

/// Decides between a setting's value and an axis of the same setting: the higher precedence wins; with equal
/// precedence, a file's axis wins over the file's settings, and two flags contradict each other.
void settle(std::vector<GridAxis>& axes, Resolver& resolver) {
  for (GridAxis& axis : axes) {
    const std::vector<const Field*> fields = axis.fields;
    for (const Field* field : fields) {
      const Origin& value = resolver.settings().at(*field).origin;
      if (value.source > axis.origin.source) {
        drop(axis, field);
      } else if (value.source == Source::flag) {
        resolver.mistake(
            fmt::format("{}: {} also fixes '{}'; keep one of them", axis.origin.where, value.where, field->key));
      }
    }
  }
  remove_empty(axes);
}

/// Returns the text of a setting with absolute paths of files, so that the text works from any folder.
std::string portable(const Field& field, const std::string& text) {
  if (field.type == FieldType::name) {
    return from_anywhere(field.catalogue, text);
  }
  if (field.type != FieldType::names) {
    return text;
  }
  std::vector<std::string> names;
  for (const std::string_view name : split_list(text)) {
    names.push_back(from_anywhere(field.catalogue, std::string(name)));
  }
  return fmt::format("{}", fmt::join(names, ","));
}

std::string list_of(const GridAxis& axis, std::size_t f) {
  std::vector<std::string> values;
  for (const std::vector<Setting>& step : axis.steps) {
    values.push_back(yaml_scalar(portable(*axis.fields[f], step[f].text)));
  }
  return fmt::format("{}: [{}]", axis.fields[f]->key, fmt::join(values, ", "));
}

std::string line_of(const GridAxis& axis) {
  if (axis.fields.size() == 1) {
    return fmt::format("  - {}\n", list_of(axis, 0));
  }
  std::vector<std::string> lists;
  for (std::size_t f = 0; f < axis.fields.size(); ++f) {
    lists.push_back(list_of(axis, f));
  }
  return fmt::format("  - zip: {{{}}}\n", fmt::join(lists, ", "));
}

}  // namespace

bool Sweep::writes(std::string_view output) const {
  return std::find(outputs.begin(), outputs.end(), output) != outputs.end();
}

Sweep read_sweep(const std::string& path, Resolver& resolver) {
  Sweep sweep;
  resolver.noting([&] {
    YamlFile file(path);
    sweep = read_parts(file, resolver);
    file.finish();
  });
  return sweep;
}

std::vector<GridAxis> merged_axes(std::vector<GridAxis> of_file, const std::vector<std::string>& of_command_line,
                                  Resolver& resolver) {
  std::vector<GridAxis> axes = std::move(of_file);
  const std::size_t from_file = axes.size();
  for (const std::string& text : of_command_line) {
    resolver.noting([&] { axes.push_back(parse_axis(text)); });
  }
  note_repetitions(axes, resolver);
  for (std::size_t a = from_file; a < axes.size(); ++a) {
    for (std::size_t b = 0; b < from_file; ++b) {
      if (axes[b].fields == axes[a].fields) {
        axes[b] = std::exchange(axes[a], {});  // in the place of the file's axis, to keep the order of the loop
        break;
      }
      for (const Field* field : axes[a].fields) {
        drop(axes[b], field);
      }
    }
  }
  remove_empty(axes);
  settle(axes, resolver);
  return axes;
}

std::string to_yaml(const Sweep& sweep) {
  Settings settings = sweep.grid.settings;
  for (const Field& field : run_fields()) {
    Setting setting = settings.at(field);
    setting.text = portable(field, setting.text);
    settings.put(field, std::move(setting));
  }
  std::string text = fmt::format(
      "# The sweep behind the results beside this file; commfuse-sim sweep reads it again.\n"
      "schema: {}\ntitle: {}\nset:\n{}",
      sweep_schema, yaml_scalar(sweep.title), point_settings_to_yaml(settings, 2));
  text += sweep.grid.axes.empty() ? "axes: []\n" : "axes:\n";
  for (const GridAxis& axis : sweep.grid.axes) {
    text += line_of(axis);
  }
  text += sweep.grid.constraints.empty() ? "" : "constraints:\n";
  for (const GridConstraint& constraint : sweep.grid.constraints) {
    text += fmt::format("  - {}\n", yaml_scalar(constraint.constraint.text()));
  }
  return text + fmt::format("outputs: [{}]\n", fmt::join(sweep.outputs, ", "));
}

}  // namespace commfuse
