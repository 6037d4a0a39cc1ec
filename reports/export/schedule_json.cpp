// SPDX-License-Identifier: Apache-2.0
#include "reports/export/schedule_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/program_text/text.h"
#include "model/text/yaml_document.h"

namespace commfuse::reports {

namespace {

using Json = nlohmann::ordered_json;

/// Returns a number, a boolean or text. The canonical text may quote words, but never numbers, so quoted digits are
/// text.
Json scalar_of(const YamlNode& node) {
  const bool digits = !node.text.empty() && std::all_of(node.text.begin(), node.text.end(),
                                                        [](char letter) { return letter >= '0' && letter <= '9'; });
  if (!node.quoted && digits) {
    return std::stoll(node.text);
  }
  if (!node.quoted && (node.text == "true" || node.text == "false")) {
    return node.text == "true";
  }
  return node.text;
}

Json tree_of(const YamlDocument& document, int id) {
  const YamlNode& node = document.nodes[static_cast<std::size_t>(id)];
  if (node.kind == YamlKind::list) {
    Json list = Json::array();
    for (const int item : node.items) {
      list.push_back(tree_of(document, item));
    }
    return list;
  }
  if (node.kind == YamlKind::map) {
    Json map = Json::object();
    for (const YamlField& field : node.fields) {
      map[field.key] = tree_of(document, field.value);
    }
    return map;
  }
  return scalar_of(node);
}

/// Returns the JSON on one line.
std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Returns a section with one member per line.
std::string section_of(const Json& section) {
  if (section.empty() || !section.is_structured()) {
    return line_of(section);
  }
  std::string text;
  for (const auto& [key, value] : section.items()) {
    text += fmt::format("{}\n    {}{}", text.empty() ? "" : ",", section.is_object() ? line_of(key) + ": " : "",
                        line_of(value));
  }
  return fmt::format("{}{}\n  {}", section.is_object() ? '{' : '[', text, section.is_object() ? '}' : ']');
}

}  // namespace

std::string schedule_json(const Program& program) {
  const YamlDocument document = parse_yaml("schedule", to_text(program));
  const Json tree = tree_of(document, 0);
  std::string text;
  for (const auto& [key, section] : tree.items()) {
    text += fmt::format("{}\n  {}: {}", text.empty() ? "" : ",", line_of(key), section_of(section));
  }
  return fmt::format("{{{}\n}}\n", text);
}

}  // namespace commfuse::reports
