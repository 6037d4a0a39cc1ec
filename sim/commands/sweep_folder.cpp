// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/sweep_folder.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "reports/atomic_file.h"
#include "sim/sweep/result_store.h"

namespace commfuse::sim {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> result_files{"results.csv", "results.json",   "report.html",
                                                       "map.csv",     "crossovers.csv", "map.json"};

[[noreturn]] void refuse(FolderUse use, const fs::path& folder, std::string_view why) {
  const std::string_view argument = use == FolderUse::merge ? "FOLDER" : "--out";
  throw ConfigError(fmt::format("{}: {} {}", argument, in_quotes(folder.string()), why));
}

/// Returns the remedy for a folder that is in use. `forced` states what --force would do.
std::string remedy(FolderUse use, std::string_view forced) {
  return use == FolderUse::merge ? "merge into a new folder, and name the shards after it"
                                 : fmt::format("choose another folder, or add --force to {}", forced);
}

/// Returns the path itself if it exists, or else its nearest existing ancestor.
fs::path nearest_existing(fs::path path) {
  std::error_code ignored;
  path = fs::absolute(path).lexically_normal();
  while (!fs::exists(path, ignored) && path.has_relative_path()) {
    path = path.parent_path();
  }
  return path;
}

/// Returns up to `max_bytes` bytes from the beginning of a file; nothing if the file does not exist.
std::optional<std::string> beginning_of(const fs::path& path, std::size_t max_bytes) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status)) {
    return std::nullopt;
  }
  if (!fs::is_regular_file(status)) {
    throw ConfigError(
        fmt::format("--out: {} is not a regular file; remove it, or choose another folder", path.string()));
  }
  std::string text(max_bytes, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

/// Returns the settings in a folder; nothing if there are none. Reads up to one byte more than `expected_settings` has,
/// which is enough to compare the settings.
std::optional<std::string> settings_in(const fs::path& folder, const std::string& expected_settings) {
  return beginning_of(folder / settings_file, expected_settings.size() + 1);
}

/// Returns whether a file may be an unfinished settings file, which is the first file that a process writes.
bool is_unfinished(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(fmt::format(".{}.", settings_file)) && name.ends_with(".part");
}

void require_free(FolderUse use, const fs::path& folder, const std::string& settings) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  const bool empty = !error && std::all_of(fs::begin(entries), fs::end(entries), [](const fs::directory_entry& entry) {
    return is_unfinished(entry.path());
  });
  if (error) {
    refuse(use, folder, fmt::format("cannot be read ({}); choose another folder", error.message()));
  }
  const std::optional<std::string> existing_settings = settings_in(folder, settings);
  if (!empty && !existing_settings) {
    refuse(use, folder, fmt::format("contains other files; {}", remedy(use, "write among them")));
  }
  if (!empty && existing_settings != settings) {
    refuse(use, folder, fmt::format("holds the results of another sweep; {}", remedy(use, "replace them")));
  }
}

/// Returns whether a file is named like the store of a sweep or a shard.
bool is_store(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == store_file || (name.starts_with("shard-") && path.extension() == ".sqlite");
}

/// Returns whether existing settings belong to a sweep: whether their first line is the first line of `settings`.
bool is_of_a_sweep(const std::optional<std::string>& existing_settings, const std::string& settings) {
  return existing_settings &&
         existing_settings->starts_with(std::string_view(settings).substr(0, settings.find('\n') + 1));
}

/// Throws ConfigError if a folder without a sweep has a file that a sweep would overwrite.
void refuse_foreign_results(const fs::path& folder) {
  const auto require_none = [&](std::string_view name) {
    std::error_code ignored;
    if (fs::exists(fs::symlink_status(folder / name, ignored))) {
      refuse(FolderUse::forced_sweep, folder,
             fmt::format("holds a {} that no sweep wrote; remove it, or choose another folder", name));
    }
  };
  require_none(settings_file);
  std::for_each(result_files.begin(), result_files.end(), require_none);
}

void remove_stores(const fs::path& folder) {
  std::vector<TakenStore> stores;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (is_store(entry.path())) {
      stores.emplace_back(entry.path());
    }
  }
  for (TakenStore& store : stores) {
    store.remove();
  }
}

/// Returns the process id in a name such as ".results.csv.1234-0.part", a file that AtomicFile renames when it is
/// whole; nothing for other names.
std::optional<pid_t> writer_of(const std::string& name) {
  for (const std::string_view result : result_files) {
    const std::string before = fmt::format(".{}.", result);
    if (name.starts_with(before) && name.ends_with(".part")) {
      const std::string number = name.substr(before.size(), name.find('-', before.size()) - before.size());
      const std::optional<std::int64_t> process = parse_integer(number);
      return process && *process > 0 ? std::optional(static_cast<pid_t>(*process)) : std::nullopt;
    }
  }
  return std::nullopt;
}

/// Removes unfinished result files of processes that no longer exist.
void remove_orphans(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> orphans;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::optional<pid_t> writer = writer_of(entry.path().filename().string());
    if (writer && ::kill(*writer, 0) != 0 && errno == ESRCH) {
      orphans.push_back(entry.path());
    }
  }
  for (const fs::path& orphan : orphans) {
    fs::remove(orphan, error);
  }
}

}  // namespace

OutputFile file_of(std::string name, std::string text) {
  return {std::move(name), [text = std::move(text)](const Sink& sink) { sink(text); }};
}

SweepFolder::SweepFolder(fs::path folder, std::string settings, FolderUse use)
    : folder_(std::move(folder)), settings_(std::move(settings)), use_(use) {
  if (folder_.empty()) {
    refuse(use_, folder_, "is not a folder; name one, as in --out out/sweep");
  }
  const fs::path existing = nearest_existing(folder_);
  std::error_code ignored;
  if (!fs::is_directory(existing, ignored)) {
    refuse(use_, folder_, fmt::format("cannot be created: {} is not a folder; choose another", existing.string()));
  }
  if (::access(existing.c_str(), W_OK | X_OK) != 0) {
    refuse(use_, folder_,
           fmt::format("cannot be written: no write permission for {}; choose another", existing.string()));
  }
  if (use_ != FolderUse::forced_sweep && fs::exists(folder_, ignored)) {
    require_free(use_, folder_, settings_);
  }
}

void SweepFolder::begin() const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    refuse(use_, folder_, fmt::format("cannot be created ({}); choose another folder", error.message()));
  }
  const std::optional<std::string> existing_settings = settings_in(folder_, settings_);
  if (use_ == FolderUse::forced_sweep && existing_settings != settings_) {
    if (!is_of_a_sweep(existing_settings, settings_)) {
      refuse_foreign_results(folder_);
    }
    remove_stores(folder_);
  }
  reports::atomic_write(folder_ / settings_file, settings_, reports::Links::replaced);
}

void SweepFolder::write(const std::vector<OutputFile>& files) const {
  const std::optional<std::string> existing_settings = settings_in(folder_, settings_);
  if (existing_settings && existing_settings != settings_) {
    refuse(use_, folder_, "was used by another sweep while this one ran; run it again in another folder");
  }
  remove_orphans(folder_);
  std::error_code error;
  std::vector<std::unique_ptr<reports::AtomicFile>> open;
  for (const auto& [name, fill] : files) {
    open.push_back(std::make_unique<reports::AtomicFile>(folder_ / name, reports::Links::replaced));
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
