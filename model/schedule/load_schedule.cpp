// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/load_schedule.h"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <system_error>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/schedule/text.h"
#include "model/schedule/yaml_tree.h"

namespace commfuse {

ScheduleFile load_schedule(std::string_view name_or_path) {
  const std::filesystem::path path = find_config(Catalogue::schedules, name_or_path);
  std::error_code error;
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path, error)) {
    throw ConfigError(fmt::format("{}: this file cannot be read; give the path of a schedule in YAML", path.string()));
  }
  std::string text;
  text.resize(text::most_bytes + 1);  // one byte past what a schedule may have: parse_program says so
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return {path, parse_program(text, path.string())};
}

}  // namespace commfuse
