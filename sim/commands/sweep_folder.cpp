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

/// What a process that was killed may leave of its first file.
bool is_unfinished(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(fmt::format(".{}.", settings_file)) && name.ends_with(".part");
}

void require_free(const fs::path& folder, const std::string& settings) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  const bool empty = !error && std::all_of(fs::begin(entries), fs::end(entries), [](const fs::directory_entry& entry) {
    return is_unfinished(entry.path());
  });
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

/// Of this sweep or of shards of it.
bool is_store(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == store_file || (name.starts_with("shard-") && path.extension() == ".sqlite");
}

}  // namespace

OutputFile file_of(std::string name, std::string text) {
  return {std::move(name), [text = std::move(text)](const Sink& sink) { sink(text); }};
}

SweepFolder::SweepFolder(fs::path folder, std::string settings, bool force)
    : folder_(std::move(folder)), settings_(std::move(settings)), force_(force) {
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

void SweepFolder::begin() const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    refuse(folder_, fmt::format("cannot be made ({}); choose another folder", error.message()));
  }
  if (force_ && contents_of(folder_ / settings_file) != settings_) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      if (is_store(entry.path())) {
        fs::remove(entry.path(), error);
      }
    }
  }
  reports::atomic_write(folder_ / settings_file, settings_);
}

void SweepFolder::write(const std::vector<OutputFile>& files) const {
  std::error_code error;
  std::vector<std::unique_ptr<reports::AtomicFile>> open;
  for (const auto& [name, fill] : files) {
    open.push_back(std::make_unique<reports::AtomicFile>(folder_ / name));
    fill([&file = *open.back()](std::string_view bytes) { file.write(bytes); });
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
