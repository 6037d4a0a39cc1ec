// SPDX-License-Identifier: Apache-2.0
#include "model/config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/check.h"
#include "model/config/choices.h"
#include "model/text/quantity.h"
#include "model/text/yaml_quotes.h"

namespace commfuse {

namespace {

const Field& known_field(std::string_view key) {
  const Field* field = find_field(key);
  check(field != nullptr, "a setting that is requested exists");
  return *field;
}

struct Layout {
  bool origins = false;
  bool only_point = false;
  int indent = 0;
};

/// Returns "seq: 4K", or a comment when nothing is fixed.
std::string entry_of(const Setting& setting, std::string_view leaf, const Layout& layout) {
  if (setting.text.empty()) {
    return fmt::format("# {}: left open", leaf);
  }
  std::string entry = fmt::format("{}: {}", leaf, yaml_scalar(setting.text));
  if (!layout.origins) {
    return entry;
  }
  const bool preset = setting.origin.source == Source::preset;
  return fmt::format("{:<26} # {}", entry, preset ? "default" : setting.origin.where);
}

std::string write(const Settings& settings, const Layout& layout) {
  std::string text;
  std::string_view open_group;
  for (const Field& field : run_fields()) {
    if (layout.only_point && !field.of_point) {
      continue;
    }
    const std::size_t dot = field.key.find('.');
    const std::string_view group = dot == std::string_view::npos ? "" : field.key.substr(0, dot);
    if (!group.empty() && group != open_group) {
      text += fmt::format("{:{}}{}:\n", "", layout.indent, group);
    }
    open_group = group;
    const std::string_view leaf = group.empty() ? field.key : field.key.substr(dot + 1);
    const int indent = layout.indent + (group.empty() ? 0 : 2);
    text += fmt::format("{:{}}{}\n", "", indent, entry_of(settings.at(field), leaf, layout));
  }
  return text;
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-' || c == '/' || c == '+' || c == '*';
}

}  // namespace

Settings::Settings() {
  for (const Field& field : run_fields()) {
    settings_.push_back({std::string(field.preset), {}});
  }
}

const std::string& Settings::text(std::string_view key) const { return at(known_field(key)).text; }

std::int64_t Settings::count(std::string_view key) const {
  const std::optional<std::int64_t> value = parse_count(text(key));
  check(value.has_value(), "a count that is requested is fixed");
  return *value;
}

RunChoices choices_of(const Settings& settings) {
  RunChoices run;
  for (const Field& field : run_fields()) {
    if (const std::string& text = settings.at(field).text; !text.empty()) {
      field.put(text, run);
    }
  }
  return run;
}

std::int64_t samples_of(const RunChoices& run) {
  constexpr std::int64_t usual = 1000;
  return run.samples.value_or(run.jitter == "none" ? 1 : usual);
}

std::string to_yaml(const Settings& settings, bool origins) { return write(settings, {.origins = origins}); }

std::string point_settings_to_yaml(const Settings& settings, int indent) {
  return write(settings, {.only_point = true, .indent = indent});
}

std::string yaml_scalar(std::string_view text) {
  const bool starts_plain = !text.empty() && text.front() != '-' && text.front() != '*';
  if (starts_plain && std::all_of(text.begin(), text.end(), is_plain)) {
    return std::string(text);
  }
  return yaml_quoted(text);
}

}  // namespace commfuse
