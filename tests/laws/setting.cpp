// SPDX-License-Identifier: Apache-2.0
#include "tests/laws/setting.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/check.h"
#include "model/config/catalogue.h"
#include "model/config/choices.h"
#include "model/text/quantity.h"

namespace commfuse::laws {

namespace {

const Field& field_of(std::string_view key) {
  const Field* field = find_field(key);
  check(field != nullptr, "a law names settings that exist");
  return *field;
}

}  // namespace

std::string Setting::text(std::string_view key) const {
  const auto choice = choices.find(key);
  return choice == choices.end() ? std::string(field_of(key).preset) : choice->second;
}

std::int64_t Setting::count(std::string_view key) const {
  const std::optional<std::int64_t> value = parse_count(text(key));
  check(value.has_value(), "a law reads only counts that are fixed");
  return *value;
}

Setting Setting::with(std::string_view key, std::string_view text) const {
  Setting other = *this;
  if (text == field_of(key).preset) {
    const auto choice = other.choices.find(key);
    if (choice != other.choices.end()) {
      other.choices.erase(choice);
    }
  } else {
    other.choices.insert_or_assign(std::string(key), std::string(text));
  }
  return other;
}

Setting Setting::with(std::string_view key, std::int64_t count) const {
  const std::optional<std::int64_t> preset = parse_count(field_of(key).preset);
  return preset == count ? with(key, field_of(key).preset) : with(key, std::to_string(count));
}

Setting Setting::with(Edit edit) const {
  Setting other = *this;
  other.edits.push_back(std::move(edit));
  return other;
}

bool is_whole_model(const Setting& setting) {
  return std::any_of(whole_model_scopes.begin(), whole_model_scopes.end(),
                     [&](const auto& scope) { return scope.first == setting.text("scope"); });
}

bool is_cluster(const Setting& setting) {
  return find_config(Catalogue::hardware, setting.text("hardware")).parent_path().filename() == "clusters";
}

Settings settings_of(const Setting& setting) {
  Settings settings;
  for (const auto& [key, text] : setting.choices) {
    settings.put(field_of(key), {text, {Source::flag, "--" + std::string(field_of(key).flag)}});
  }
  const Field& uncertainty = field_of("uncertainty");
  if (!setting.choices.contains("uncertainty")) {
    settings.put(uncertainty, {"off", {}});
  }
  return settings;
}

std::string command_of(const Setting& setting) {
  std::string command = "commfuse-sim run";
  for (const auto& [key, text] : setting.choices) {
    command += fmt::format(" --{} {}", field_of(key).flag, text);
  }
  for (const Edit& edit : setting.edits) {
    command += fmt::format("{}{} x{}", &edit == &setting.edits.front() ? "  # " : ", ", edit.parameters, edit.times);
  }
  return command;
}

}  // namespace commfuse::laws
