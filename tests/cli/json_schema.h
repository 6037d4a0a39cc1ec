// SPDX-License-Identifier: Apache-2.0
// Checks a value against as much of JSON Schema as ours say, and reads YAML as the values that schemas speak of.
#pragma once

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string>

namespace commfuse::test {

using Json = nlohmann::ordered_json;

/// By the rules of YAML 1.2: what is no number, boolean or null is a text.
inline Json json_of(const YAML::Node& node) {
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& field : node) {
      object[field.first.Scalar()] = json_of(field.second);
    }
    return object;
  }
  if (node.IsSequence()) {
    Json array = Json::array();
    for (const YAML::Node& item : node) {
      array.push_back(json_of(item));
    }
    return array;
  }
  static const std::regex number(R"(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?)");
  const std::string& text = node.Scalar();
  const bool is_plain = node.Tag() == "?";
  if (is_plain && (text == "true" || text == "false" || std::regex_match(text, number))) {
    return Json::parse(text);
  }
  return node.IsNull() ? Json() : Json(text);
}

inline bool matches(const std::string& text, const std::string& pattern) {
  static std::map<std::string, std::regex> compiled;  // Making them takes longer than all else.
  auto known = compiled.find(pattern);
  if (known == compiled.end()) {
    known = compiled.emplace(pattern, std::regex(pattern)).first;
  }
  return std::regex_search(text, known->second);
}

/// What a part of a schema says under a key, to be gone through: empty where it says nothing.
inline const Json& said_under(const Json& schema, const char* key) {
  static const Json nothing = Json::array();
  const auto found = schema.find(key);
  return found == schema.end() ? nothing : *found;
}

/// Where and why a value does not fit; nothing where it does.
class SchemaCheck {
 public:
  explicit SchemaCheck(const Json& root) : root_(root) {}

  [[nodiscard]] std::optional<std::string> misfit(const Json& value) const { return misfit(value, root_, "$"); }

 private:
  using Misfit = std::optional<std::string>;

  [[nodiscard]] Misfit misfit(const Json& value, const Json& schema, const std::string& at) const {
    if (schema.contains("$ref")) {
      const std::string reference = schema.at("$ref").get<std::string>();
      return misfit(value, root_.at(Json::json_pointer(reference.substr(1))), at);
    }
    for (const auto& check :
         {&SchemaCheck::of_scalar, &SchemaCheck::of_array, &SchemaCheck::of_object, &SchemaCheck::of_choices}) {
      if (Misfit found = (this->*check)(value, schema, at)) {
        return found;
      }
    }
    return {};
  }

  static bool has_type(const Json& value, const std::string& type) {
    return type == "object"    ? value.is_object()
           : type == "array"   ? value.is_array()
           : type == "string"  ? value.is_string()
           : type == "integer" ? value.is_number_integer()
           : type == "number"  ? value.is_number()
                               : value.is_boolean();
  }

  [[nodiscard]] Misfit of_scalar(const Json& value, const Json& schema, const std::string& at) const {
    if (schema.contains("type")) {
      const Json& types = schema.at("type");
      const Json all = types.is_array() ? types : Json::array({types});
      if (std::none_of(all.begin(), all.end(), [&](const Json& type) { return has_type(value, type); })) {
        return at + " is no " + types.dump();
      }
    }
    if (schema.contains("const") && schema.at("const") != value) {
      return at + " is not " + schema.at("const").dump();
    }
    if (schema.contains("enum")) {
      const Json& words = schema.at("enum");
      if (std::find(words.begin(), words.end(), value) == words.end()) {
        return at + " is none of " + words.dump();
      }
    }
    if (value.is_string() && schema.contains("pattern") &&
        !matches(value.get<std::string>(), schema.at("pattern").get<std::string>())) {
      return at + " does not match " + schema.at("pattern").dump();
    }
    if (value.is_string() && value.get<std::string>().size() < schema.value("minLength", 0U)) {
      return at + " is empty";
    }
    if (value.is_number() && (value.get<double>() < schema.value("minimum", -1e300) ||
                              value.get<double>() > schema.value("maximum", 1e300))) {
      return at + " is out of range";
    }
    return {};
  }

  [[nodiscard]] Misfit of_array(const Json& value, const Json& schema, const std::string& at) const {
    if (!value.is_array()) {
      return {};
    }
    if (value.size() < schema.value("minItems", 0U)) {
      return at + " has too few items";
    }
    for (std::size_t i = 0; schema.contains("items") && i < value.size(); ++i) {
      if (Misfit found = misfit(value[i], schema.at("items"), at + "[" + std::to_string(i) + "]")) {
        return found;
      }
    }
    return {};
  }

  /// A key by its name, by a pattern, or not at all.
  [[nodiscard]] Misfit of_key(const Json& value, const std::string& key, const Json& schema,
                              const std::string& at) const {
    if (schema.contains("properties") && schema.at("properties").contains(key)) {
      return misfit(value, schema.at("properties").at(key), at + "." + key);
    }
    if (schema.contains("patternProperties")) {
      for (const auto& [pattern, part] : schema.at("patternProperties").items()) {
        if (matches(key, pattern)) {
          return misfit(value, part, at + "." + key);
        }
      }
    }
    return schema.value("additionalProperties", true) ? Misfit{} : at + " has no key " + key;
  }

  [[nodiscard]] Misfit of_object(const Json& value, const Json& schema, const std::string& at) const {
    if (!value.is_object()) {
      return {};
    }
    for (const Json& key : said_under(schema, "required")) {
      if (!value.contains(key.get<std::string>())) {
        return at + " lacks " + key.get<std::string>();
      }
    }
    if (value.size() < schema.value("minProperties", 0U) || value.size() > schema.value("maxProperties", 1000U)) {
      return at + " has too few or too many keys";
    }
    for (const auto& [key, part] : value.items()) {
      if (Misfit found = of_key(part, key, schema, at)) {
        return found;
      }
    }
    return {};
  }

  [[nodiscard]] Misfit of_choices(const Json& value, const Json& schema, const std::string& at) const {
    for (const Json& part : said_under(schema, "allOf")) {
      if (Misfit found = misfit(value, part, at)) {
        return found;
      }
    }
    if (schema.contains("not") && !misfit(value, schema.at("not"), at)) {
      return at + " is what it must not be";
    }
    if (schema.contains("if") && !misfit(value, schema.at("if"), at)) {
      return misfit(value, schema.at("then"), at);
    }
    Misfit last;
    for (const Json& part : said_under(schema, "anyOf")) {
      last = misfit(value, part, at);
      if (!last) {
        break;
      }
    }
    return last;
  }

  const Json& root_;
};

}  // namespace commfuse::test
