// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/write_new.h"

#include <fmt/format.h>

#include <cstdio>
#include <system_error>

#include "model/config_error.h"
#include "model/text/counted.h"
#include "reports/atomic_file.h"

namespace commfuse::sim {

namespace fs = std::filesystem;

void require_new(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(folder / name, error))) {
      throw ConfigError(
          fmt::format("{} already exists; choose another --out, or remove this file", (folder / name).string()));
    }
  }
}

std::string write_new(const fs::path& folder, const std::vector<std::pair<std::string, std::string>>& files) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw ConfigError(
        fmt::format("--out: {} cannot be created ({}); choose another folder", folder.string(), error.message()));
  }
  std::vector<std::string> names;
  for (const auto& [name, text] : files) {
    names.push_back(name);
  }
  require_new(folder, names);
  for (const auto& [name, text] : files) {
    reports::atomic_write(folder / name, text);
  }
  return fmt::format("wrote {} to {}\n", counted(files.size(), "file"), folder.string());
}

}  // namespace commfuse::sim
