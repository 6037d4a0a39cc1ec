// SPDX-License-Identifier: Apache-2.0
#include "model/program_text/load_schedule.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/program_text/text.h"
#include "model/program_text/yaml_tree.h"
#include "model/text/files.h"

namespace commfuse {

ScheduleFile load_schedule(std::string_view name_or_path) {
  const std::filesystem::path path = find_config(Catalogue::schedules, name_or_path);
  std::error_code error;
  if (!std::filesystem::exists(path, error) || std::filesystem::is_directory(path, error)) {
    throw ConfigError(fmt::format("{}: this file cannot be read; give the path of a schedule in YAML", path.string()));
  }
  const std::string text = read_file(path.string(), text::max_bytes);  // parse_program reports files that are longer
  return {path, parse_program(text, path.string())};
}

}  // namespace commfuse
