// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/text/suggest.h"
#include "page/engine/answers.h"

namespace commfuse::page {

namespace {

constexpr std::size_t max_bytes = 16 << 20;  ///< Enough for any config.json or YAML file.

/// Returns true if the text names a schema of machines, such as "commfuse.hardware/1" or "commfuse.cluster/1".
bool is_machine(const std::string& text) {
  return text.find("commfuse.hardware/") != std::string::npos || text.find("commfuse.cluster/") != std::string::npos;
}

/// Returns the last component of a name, which cannot lead out of the folder.
std::string file_name_of(const std::string& name) {
  const std::string last = std::filesystem::path(name).filename().string();
  if (last.empty() || last == "." || last == "..") {
    throw ConfigError(fmt::format("{}: not the name of a file; choose a YAML file or a config.json", in_quotes(name)));
  }
  return last;
}

}  // namespace

nlohmann::json keep_file(const nlohmann::json& request) {
  const std::string name = file_name_of(request.at("name").get<std::string>());
  const auto& text = request.at("text").get_ref<const std::string&>();
  if (text.size() > max_bytes) {
    throw ConfigError(fmt::format("{}: over 16 MiB; choose a YAML file or a config.json", name));
  }
  std::filesystem::path folder;
  int number = 0;
  do {  // Each file has a different path, because the programs cache files by path.
    folder = std::filesystem::path("/files") / std::to_string(++number);
  } while (!std::filesystem::create_directories(folder));
  const std::filesystem::path path = folder / name;
  std::ofstream(path, std::ios::binary) << text;
  const bool machine = is_machine(text);
  machine ? static_cast<void>(load_machine(path.string())) : static_cast<void>(load_model(path.string()));
  return {{"key", machine ? "hardware" : "model"}, {"value", path.string()}};
}

}  // namespace commfuse::page
