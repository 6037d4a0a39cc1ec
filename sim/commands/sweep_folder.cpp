// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/sweep_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <system_error>

#include "model/config/suggest.h"
#include "model/config_error.h"
#include "reports/atomic_file.h"

namespace commfuse::sim {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> result_files{"results.csv", "results.json",   "report.html",
                                                       "map.csv",     "crossovers.csv", "map.json"};

[[noreturn]] void refuse(const fs::path& folder, std::string_view why) {
  throw ConfigError(fmt::format("--out: {} {}", in_quotes(folder.string()), why));
}

/// The folder itself, or the nearest above it that is there.
fs::path nearest_existing(fs::path path) {
  std::error_code ignored;
  path = fs::absolute(path).lexically_normal();
  while (!fs::exists(path, ignored) && path.has_relative_path()) {
    path = path.parent_path();
  }
  return path;
}

std::string contents_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void require_free(const fs::path& folder, const std::string& settings) {
  std::error_code error;
  const bool empty = fs::is_empty(folder, error);
  if (error) {
    refuse(folder, fmt::format("cannot be read ({}); choose another folder", error.message()));
  }
  if (!empty && !fs::exists(folder / settings_file, error)) {
    refuse(folder, "holds other files; choose another folder, or add --force to write among them");
  }
  if (!empty && contents_of(folder / settings_file) != settings) {
    refuse(folder, "holds the results of another sweep; choose another folder, or add --force to replace them");
  }
}

}  // namespace

SweepFolder::SweepFolder(fs::path folder, std::string settings, bool force)
    : folder_(std::move(folder)), settings_(std::move(settings)) {
  if (folder_.empty()) {
    refuse(folder_, "is no folder; name one, as in --out out/sweep");
  }
  const fs::path existing = nearest_existing(folder_);
  std::error_code ignored;
  if (!fs::is_directory(existing, ignored)) {
    refuse(folder_, fmt::format("cannot be made: {} is no folder; choose another", existing.string()));
  }
  if (::access(existing.c_str(), W_OK | X_OK) != 0) {
    refuse(folder_, fmt::format("cannot be written: {} is not yours to write to; choose another", existing.string()));
  }
  if (!force && fs::exists(folder_, ignored)) {
    require_free(folder_, settings_);
  }
}

void SweepFolder::write(const std::vector<std::pair<std::string, std::string>>& files) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    refuse(folder_, fmt::format("cannot be made ({}); choose another folder", error.message()));
  }
  std::vector<std::unique_ptr<reports::AtomicFile>> open;
  const auto begin = [&](const std::string& name, std::string_view bytes) {
    open.push_back(std::make_unique<reports::AtomicFile>(folder_ / name));
    open.back()->write(bytes);
  };
  begin(settings_file, settings_);
  for (const auto& [name, bytes] : files) {
    begin(name, bytes);
  }
  for (const std::unique_ptr<reports::AtomicFile>& file : open) {
    file->commit();
  }
  for (const std::string_view old : result_files) {
    if (std::none_of(files.begin(), files.end(), [&](const auto& file) { return file.first == old; })) {
      fs::remove(folder_ / old, error);
    }
  }
}

}  // namespace commfuse::sim
