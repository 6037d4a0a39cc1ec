// SPDX-License-Identifier: Apache-2.0
// commfuse-sim schema: prints a JSON Schema of the YAML files for editors. Settings and keys of plan files come from
// their registries, so that a new key appears automatically; other kinds of files come from sim/schema.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/command_line.h"
#include "model/config/field.h"
#include "model/config/option_marks.h"
#include "model/config/plan_field.h"
#include "model/config/plan_file.h"
#include "sim/commands/commands.h"
#include "sim/commands/setting_flags.h"
#include "sim/schema/shape.h"
#include "sim/sweep/sweep_file.h"

namespace commfuse::sim {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view run_schema = "commfuse.run/1";

Json words_of(const Field& field) { return Json(field.choices()); }

Json count_of(const Field& field) {
  const Json number{{"type", "integer"}, {"minimum", field.least}, {"maximum", field.most}};
  const Json text{{"type", "string"}, {"pattern", "^[0-9.]+[KMGkmg]?$"}};
  return {{"anyOf", Json::array({number, text})}};
}

Json share_of(const Field& field) {
  const Json number{{"type", "number"},
                    {"minimum", static_cast<double>(field.least) / 100.0},
                    {"maximum", static_cast<double>(field.most) / 100.0}};
  const Json text{{"type", "string"}, {"pattern", "^[0-9.]+ ?%?$"}};
  return {{"anyOf", Json::array({number, text})}};
}

Json amount_of(const Field& field) {
  const Json number{{"type", "number"}, {"minimum", field.least}, {"maximum", field.most}};
  const Json text{{"type", "string"}, {"pattern", "^\\$?[0-9.]+[KMBGTkmbgt]?$"}};
  return {{"anyOf", Json::array({number, text})}};
}

/// Returns the pattern of strings that name no file of the catalogue: paths, models such as "8192x28672", and clusters
/// with another number of nodes, such as "dgx-h100-x16".
std::string other_names_of(const Field& field) {
  std::string pattern = R"(/|\.ya?ml$|\.json$)";
  if (field.catalogue == Catalogue::models) {
    pattern += "|^[0-9]+x[0-9]+(-e[0-9]+-top[0-9]+(-ep[0-9]+)?)?$";
  }
  if (field.catalogue == Catalogue::hardware) {
    for (const std::string& name : names_known_to(field)) {
      pattern += name.ends_with("-x2") ? fmt::format("|^{}[0-9]+$", name.substr(0, name.size() - 1)) : "";
    }
  }
  return pattern;
}

Json name_of(const Field& field) {
  const Json other{{"type", "string"}, {"pattern", other_names_of(field)}};
  return {{"anyOf", Json::array({Json{{"enum", names_known_to(field)}}, other})}};
}

/// Returns the schema of one value of a setting.
Json value_of(const Field& field) {
  switch (field.type) {
    case FieldType::name: return name_of(field);
    case FieldType::choice: return {{"enum", words_of(field)}};
    case FieldType::count: return count_of(field);
    case FieldType::bandwidth:
      return {{"type", "string"},
              {"pattern", R"(^x[0-9.]+(e[+-]?[0-9]+)?$|^[0-9.]+(e[+-]?[0-9]+)? ?([kMGT]?B|[KMG]iB|[MG]bit)/s$)"}};
    case FieldType::share: return share_of(field);
    case FieldType::amount: return amount_of(field);
    case FieldType::names: return {{"type", "string"}};
    case FieldType::choices: break;
  }
  const Json list{{"type", "array"}, {"items", {{"enum", words_of(field)}}}, {"minItems", 1}};
  return {{"anyOf", Json::array({list, Json{{"type", "string"}}})}};
}

Json described(const Field& field) {
  Json json = value_of(field);
  json["description"] = fmt::format("{}. {}", field.doc, values_in_words(field));
  if (!field.preset.empty()) {
    json["default"] = field.preset;
  }
  return json;
}

Json object_of(Json properties) {
  return {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

/// Returns all settings, with groups as maps.
Json settings() {
  Json properties = Json::object();
  for (const Field& field : run_fields()) {
    const std::size_t dot = field.key.find('.');
    if (dot == std::string_view::npos) {
      properties[std::string(field.key)] = described(field);
      continue;
    }
    Json& group = properties[std::string(field.key.substr(0, dot))];
    if (group.is_null()) {
      group = object_of(Json::object());
    }
    group["properties"][std::string(field.key.substr(dot + 1))] = described(field);
  }
  return properties;
}

/// Returns the wanted settings of groups by their whole names: `strategy.slices: 4`.
Json with_dots(bool (*is_wanted)(const Field&) = [](const Field&) { return true; }) {
  Json patterns = Json::object();
  for (const Field& field : run_fields()) {
    if (const std::size_t dot = field.key.find('.'); dot != std::string_view::npos && is_wanted(field)) {
      patterns[fmt::format("^{}\\.{}$", field.key.substr(0, dot), field.key.substr(dot + 1))] = value_of(field);
    }
  }
  return patterns;
}

/// Returns the schema of one axis. Its values are a list, a number, or a string with values and ranges.
Json axis() {
  Json field_properties = Json::object();
  for (const Field& field : run_fields()) {
    if (field.of_point) {
      const bool has_ranges = field.type == FieldType::count || field.type == FieldType::bandwidth;
      const Json item = has_ranges ? Json{{"type", Json::array({"string", "integer"})}} : value_of(field);
      const Json values{{"type", "array"}, {"items", item}, {"minItems", 1}};
      field_properties[std::string(field.key)] = {
          {"anyOf", Json::array({values, Json{{"type", Json::array({"string", has_ranges ? "integer" : "number"})}}})},
          {"description", field.doc}};
    }
  }
  Json properties = field_properties;
  Json zip = object_of(std::move(field_properties));
  zip["description"] = "Settings that change together, value by value";
  properties["zip"] = std::move(zip);
  Json axis = object_of(std::move(properties));
  axis["minProperties"] = 1;
  axis["maxProperties"] = 1;
  return axis;
}

Json schema_key(std::string_view schema) { return {{"const", schema}, {"description", "The kind of this file"}}; }

Json run_kind() {
  Json properties{{"schema", schema_key(run_schema)}};
  properties.update(settings());
  Json run = object_of(std::move(properties));
  run["patternProperties"] = with_dots();
  run["required"] = Json::array({"schema"});
  return run;
}

Json sweep_kind() {
  Json set = object_of(settings());
  set["patternProperties"] = with_dots();
  set["description"] = "Settings that all points share";
  Json sweep = object_of({{"schema", schema_key(sweep_schema)},
                          {"title", {{"type", "string"}}},
                          {"set", std::move(set)},
                          {"axes",
                           {{"type", "array"},
                            {"items", axis()},
                            {"description", "Axes; every combination of values is a point; the first is outermost"}}},
                          {"constraints",
                           {{"type", "array"},
                            {"items", {{"type", "string"}}},
                            {"description", "Constraints that points must meet, for example batch*seq == 128K"}}},
                          {"outputs", {{"type", "array"}, {"items", {{"enum", all_outputs}}}, {"uniqueItems", true}}}});
  sweep["required"] = Json::array({"schema"});
  return sweep;
}

/// Returns the schema of one value of a plan file.
Json value_of(const PlanField& field) {
  const auto pattern = [](const char* form) { return Json{{"type", "string"}, {"pattern", form}}; };
  switch (field.type) {
    case PlanType::words: break;
    case PlanType::number: {
      const Json number{{"type", "number"}, {"minimum", field.range.least}, {"maximum", field.range.most}};
      return {{"anyOf", Json::array({number, pattern("^\\$?[0-9.]+([eE][+-]?[0-9]+)?[KMBGTkmbgt]?$")})}};
    }
    case PlanType::count: {
      const Json number{{"type", "integer"}, {"minimum", field.range.least}, {"maximum", field.range.most}};
      return {{"anyOf", Json::array({number, pattern("^[0-9.]+[KMG]?$")})}};
    }
    case PlanType::span: return pattern("^[0-9.]+ ?(ms|s|min|h|d|days?)$");
    case PlanType::date: return pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$");
    case PlanType::moment: return pattern("^([0-9.]+ ?(ms|s|min|h|d|days?)|[0-9]{4}-[0-9]{2}-[0-9]{2})$");
    case PlanType::power: return pattern("^[0-9.]+ ?[kM]?W$");
    case PlanType::setting: return value_of(*find_field(field.key.substr(field.key.rfind('.') + 1)));
  }
  return {{"type", "string"}};
}

Json described(const PlanField& field) {
  Json json = value_of(field);
  const std::string preset = field.computed_preset.empty() ? "" : fmt::format(". Default: {}", field.computed_preset);
  json["description"] = fmt::format("{}. {}{}", field.doc, values_in_words(field), preset);
  if (!field.preset.empty()) {
    json["default"] = field.preset;
  }
  return json;
}

/// Returns the schema of an object with the fields whose keys begin with `prefix`.
Json plan_group(std::string_view prefix) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const PlanField& field : plan_fields()) {
    const std::string_view name = field.key.substr(std::min(field.key.size(), prefix.size()));
    if (field.key.starts_with(prefix) && name.find('.') == std::string_view::npos) {
      properties[std::string(name)] = described(field);
      if (field.required) {
        required.push_back(name);
      }
    }
  }
  Json group = object_of(std::move(properties));
  if (!required.empty()) {
    group["required"] = std::move(required);
  }
  return group;
}

Json plan_kind() {
  Json plan = plan_group("");
  Json properties{{"schema", schema_key(plan_schema)}};
  Json set = Json::object();
  for (const Field& field : run_fields()) {
    const std::size_t dot = field.key.find('.');
    if (!is_plan_setting(field)) {
      continue;
    }
    if (dot == std::string_view::npos) {
      set[std::string(field.key)] = described(field);
      continue;
    }
    Json& group = set[std::string(field.key.substr(0, dot))];
    group = group.is_null() ? object_of(Json::object()) : group;
    group["properties"][std::string(field.key.substr(dot + 1))] = described(field);
  }
  properties["set"] = object_of(std::move(set));
  properties["set"]["patternProperties"] = with_dots(is_plan_setting);
  properties["set"]["description"] = "The model, its batch and fixed degrees of its layout; omitted degrees are free";
  properties.update(plan["properties"]);
  for (const char* group : {"limits", "failures", "energy", "what_if"}) {
    properties[group] = plan_group(fmt::format("{}.", group));
  }
  Json gpus = plan_group("gpus.NAME.");
  gpus["anyOf"] = Json::array({Json{{"required", {"available"}}}, Json{{"required", {"count"}}}});
  properties["gpus"] = {{"type", "object"},
                        {"description", "Kinds of GPUs, by names that you choose"},
                        {"additionalProperties", std::move(gpus)},
                        {"minProperties", 1}};
  Json required = std::move(plan["required"]);
  Json kind = object_of(std::move(properties));
  required.push_back("gpus");
  required.push_back("schema");
  kind["required"] = std::move(required);
  return kind;
}

/// Returns the schema of a kind of file. A file that extends another needs only the keys that differ.
Json loaded_kind(const schema::FileKind& kind) {
  schema::Shape shape = kind.shape();
  shape.keys.insert(shape.keys.begin(), {"schema", schema::text()});
  const auto json_of = [&kind](const schema::Shape& part) {
    Json json = Json::parse(schema::to_json_schema(part));
    json["properties"]["schema"] = schema_key(kind.schema);
    return json;
  };
  Json whole = json_of(shape);
  const bool may_extend = whole["properties"].contains("extends");
  Json json = may_extend ? json_of(schema::partial(std::move(shape))) : whole;
  if (may_extend) {
    json["required"] = Json::array({"schema", "name"});
    json["if"] = {{"not", {{"required", Json::array({"extends"})}}}};
    json["then"] = std::move(whole);
  }
  json["description"] = kind.doc;
  return json;
}

/// Returns the schema of each kind of file, with the name of the kind.
std::vector<std::pair<std::string, Json>> kinds() {
  std::vector<std::pair<std::string, Json>> named_kinds{
      {"run", run_kind()}, {"sweep", sweep_kind()}, {"plan", plan_kind()}};
  for (const schema::FileKind& kind : schema::file_kinds()) {
    named_kinds.emplace_back(kind.name, loaded_kind(kind));
  }
  return named_kinds;
}

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names{"run", "sweep", "plan"};
  for (const schema::FileKind& kind : schema::file_kinds()) {
    names.push_back(kind.name);
  }
  return names;
}

/// Returns a schema that chooses the kind by the `schema` key of the file.
Json all_kinds() {
  Json definitions = Json::object();
  Json choice = Json::array();
  for (auto& [name, json] : kinds()) {
    const Json has_its_schema{{"properties", {{"schema", json["properties"]["schema"]}}},
                              {"required", Json::array({"schema"})}};
    choice.push_back({{"if", has_its_schema}, {"then", {{"$ref", fmt::format("#/$defs/{}", name)}}}});
    definitions[name] = std::move(json);
  }
  return {{"type", "object"}, {"required", Json::array({"schema"})}, {"allOf", choice}, {"$defs", definitions}};
}

void print_schema(const std::string& kind) {
  Json json{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "commfuse"}};
  if (kind.empty()) {
    json.update(all_kinds());
  } else {
    require_word("KIND", kind, kind_names(), "kind");
    for (const auto& [name, kind_json] : kinds()) {
      if (name == kind) {
        json.update(kind_json);
      }
    }
  }
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

void add_schema(CLI::App& app, int& status) {
  add_verb(app, "schema", "Print the JSON Schema of commfuse's YAML files", [&status](CLI::App& command) {
    const auto kind = std::make_shared<std::string>();
    offers_words(command.add_option("KIND", *kind, fmt::format("{} (default: all)", fmt::join(kind_names(), ", "))),
                 kind_names());
    command.footer(
        "An editor uses it to complete and check keys and values. Rules that involve\n"
        "several keys are checked only when the file is loaded.\n"
        "\n"
        "Example:\n"
        "  commfuse-sim schema > commfuse.schema.json\n"
        "and, as the first line of a file:\n"
        "  # yaml-language-server: $schema=commfuse.schema.json");
    command.callback([kind, &status] {
      print_schema(*kind);
      status = exit_code::done;
    });
  });
}

}  // namespace commfuse::sim
