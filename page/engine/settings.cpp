// SPDX-License-Identifier: Apache-2.0
#include "page/engine/settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/config/field.h"
#include "model/config/meant.h"
#include "model/config/resolver.h"
#include "model/config_error.h"
#include "model/text/shell_word.h"

namespace commfuse::page {

Settings settings_of(const nlohmann::json& texts) {
  Resolver resolver;
  for (const auto& [key, text] : texts.items()) {
    if (!text.is_string()) {
      throw ConfigError(fmt::format("{}: not a string; write the value in quotes", key));
    }
    const Field* field = find_field(key);
    if (field == nullptr && (field = field_meant(key)) == nullptr) {
      throw ConfigError(fmt::format("{}: unknown setting; commfuse-sim config explain lists all settings", key));
    }
    resolver.read_flag(*field, text.get<std::string>());
  }
  return resolver.finish();
}

std::string command_of(std::string_view verb, const Settings& settings) {
  std::string command = fmt::format("commfuse-sim {}", verb);
  for (const Field& field : run_fields()) {
    if (settings.at(field).origin.source == Source::flag) {
      command += fmt::format(" --{} {}", field.flag, shell_word(settings.at(field).text));
    }
  }
  return command;
}

}  // namespace commfuse::page
