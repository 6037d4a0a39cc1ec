// SPDX-License-Identifier: Apache-2.0
// commfuse-sim merge: merges the shards of a sweep, wherever they ran, into the folder that a single process would have
// written.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "model/config/command_line.h"
#include "model/config_error.h"
#include "model/text/shell_word.h"
#include "sim/commands/commands.h"
#include "sim/commands/render.h"
#include "sim/commands/sweep_folder.h"
#include "sim/commands/sweep_outputs.h"
#include "sim/commands/sweep_run.h"
#include "sim/commands/terminal.h"
#include "sim/sweep/sweep_file.h"

namespace commfuse::sim {

namespace {

namespace fs = std::filesystem;

struct MergeRequest {
  std::string folder;
  std::vector<std::string> shards;
  std::string format = "table";
};

/// Returns the shards in a folder. Throws ConfigError if it contains none.
std::vector<fs::path> shards_in(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with("shard-") && entry.path().extension() == ".sqlite") {
      files.push_back(entry.path());
    }
  }
  if (!files.empty()) {
    return files;
  }
  if (fs::exists(fs::path(folder) / store_file, error)) {
    throw ConfigError(fmt::format(
        "{} contains no shards, but the results of a whole sweep; merge joins the shards of one sweep, which "
        "commfuse-sim sweep FILE --out FOLDER --shard i/N writes",
        folder));
  }
  throw ConfigError(fmt::format("{} contains no shards; run some with commfuse-sim sweep FILE --out {} --shard 1/N",
                                folder, shell_word(folder)));
}

/// Returns the given files and the shards in the given folders or, if none are given, the shards in the folder of the
/// result.
std::vector<fs::path> shard_files(const MergeRequest& request) {
  std::vector<fs::path> files;
  for (const std::string& given : request.shards.empty() ? std::vector{request.folder} : request.shards) {
    std::error_code error;
    if (request.shards.empty() || fs::is_directory(given, error)) {
      const std::vector<fs::path> shards = shards_in(given);
      files.insert(files.end(), shards.begin(), shards.end());
    } else {
      files.emplace_back(given);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Returns the command that runs a shard in the folder of `store`, or in a folder of the user's choice if that folder
/// has no settings, because a sweep refuses to write into a folder with other files.
std::string command_for(const Shard& shard, const fs::path& store) {
  const fs::path folder = store.has_parent_path() ? store.parent_path() : fs::path(".");
  const fs::path settings = folder / settings_file;
  std::error_code ignored;
  const std::string place = fs::exists(settings, ignored)
                                ? fmt::format("{} --out {}", shell_word(settings.string()), shell_word(folder.string()))
                                : std::string("FILE --out FOLDER");
  return fmt::format("commfuse-sim sweep {} --shard {}/{}", place, shard.part, shard.parts);
}

using Readers = std::map<int, std::unique_ptr<StoreReader>>;

/// Throws ConfigError if two shards cannot be merged.
void require_same_sweep(const StoreReader& first, const StoreReader& other) {
  const StoreIdentity& a = first.identity();
  const StoreIdentity& b = other.identity();
  if (a.digest != b.digest || a.settings != b.settings || a.kind != b.kind || a.points != b.points) {
    throw ConfigError(fmt::format("{} and {} belong to different sweeps; merge shards of one sweep",
                                  first.path().string(), other.path().string()));
  }
  if (a.model_version != b.model_version) {
    throw ConfigError(fmt::format("{} has model version {} and {} has {}; run one of them again", first.path().string(),
                                  a.model_version, other.path().string(), b.model_version));
  }
  if (a.shard.parts != b.shard.parts) {
    throw ConfigError(fmt::format("{} is one of {} shards and {} one of {}; merge shards of the same count",
                                  first.path().string(), a.shard.parts, other.path().string(), b.shard.parts));
  }
}

Readers readers_of(const std::vector<fs::path>& files) {
  Readers readers;
  for (const fs::path& file : files) {
    auto reader = std::make_unique<StoreReader>(file);
    if (!readers.empty()) {
      require_same_sweep(*readers.begin()->second, *reader);
    }
    const Shard shard = reader->identity().shard;
    const auto [entry, is_new] = readers.emplace(shard.part, std::move(reader));
    if (!is_new) {
      throw ConfigError(fmt::format("shard {} appears twice, as {} and as {}; remove one", name_of(shard),
                                    entry->second->path().string(), file.string()));
    }
  }
  return readers;
}

/// Throws ConfigError, with the commands that still have to run, unless the shards have all points. `then` says how to
/// merge afterwards.
void require_complete(const Readers& readers, std::string_view then) {
  const int parts = readers.begin()->second->identity().shard.parts;
  constexpr int max_listed = 100;
  std::string missing;
  int count = 0;
  for (int part = 1; part <= parts; ++part) {
    const auto reader = readers.find(part);
    const bool is_found = reader != readers.end();
    if (is_found && reader->second->counts().points == reader->second->points_wanted()) {
      continue;
    }
    if (++count <= max_listed) {
      const StoreReader& near = is_found ? *reader->second : *readers.begin()->second;
      missing += fmt::format("\n  {}{}", command_for({part, parts}, near.path()),
                             is_found ? fmt::format("  # has {} of {} points", reader->second->counts().points,
                                                    reader->second->points_wanted())
                                      : "");
    }
  }
  if (count > 0) {
    missing += count > max_listed ? fmt::format("\n  and {} more", count - max_listed) : "";
    throw ConfigError(fmt::format("{} of {} shards {} missing or not complete; run {}, then {}:{}", count, parts,
                                  count == 1 ? "is" : "are", count == 1 ? "it" : "them", then, missing));
  }
}

/// Writes the points of all shards into one store, in order.
StoreCounts write_merged(Readers& readers, const fs::path& path) {
  StoreIdentity identity = readers.begin()->second->identity();
  identity.shard = {};
  StoreWriter store(path, identity);
  // The next point of each shard, by point number; no two shards share a point.
  std::map<std::size_t, std::pair<StoredPoint, StoreReader*>> next;
  const auto advance = [&](StoreReader* reader) {
    if (std::optional<StoredPoint> point = reader->next()) {
      const std::size_t number = point->point;
      next.emplace(number, std::pair(*std::move(point), reader));
    }
  };
  for (const auto& [part, reader] : readers) {
    advance(reader.get());
  }
  while (!next.empty()) {
    auto first = next.extract(next.begin());
    store.add(first.mapped().first.point, first.mapped().first.rows);
    advance(first.mapped().second);
  }
  store.commit();
  return store.counts();
}

/// Returns the sweep from the settings file in the folder. Ignores the environment of this process.
Sweep sweep_in(const fs::path& settings) {
  Resolver resolver;
  Sweep sweep = read_sweep(settings.string(), resolver);
  sweep.grid.axes = merged_axes(std::move(sweep.grid.axes), {}, resolver);
  sweep.grid.settings = resolver.finish();
  return sweep;
}

/// Throws ConfigError if the file to replace is not a commfuse store, because it may contain the user's data.
void refuse_foreign_file(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    const TakenStore ours(path);
  }
}

Answer merge(const MergeRequest& request, Caller& caller) {
  refuse_foreign_file(fs::path(request.folder) / store_file);
  Readers readers = readers_of(shard_files(request));
  const StoreIdentity& identity = readers.begin()->second->identity();
  require_format(identity.kind, request.format);
  require_complete(readers, request.shards.empty() ? "merge again" : "merge all shards");
  const SweepFolder folder(request.folder, identity.settings, FolderUse::merge);
  folder.begin();
  const fs::path path = folder.path_of(store_file);
  const fs::path unfinished = folder.path_of(fmt::format(".{}.part", store_file));
  fs::remove(unfinished);
  const StoreCounts counts = write_merged(readers, unfinished);
  fs::rename(unfinished, path);
  StoreReader merged(path, counts);
  return write_outputs(sweep_in(folder.path_of(settings_file)), merged, folder, request.format, caller);
}

}  // namespace

void add_merge(CLI::App& app, int& status) {
  add_verb(app, "merge", "Join the shards of a sweep into one result", [&status](CLI::App& command) {
    const auto request = std::make_shared<MergeRequest>();
    command.add_option("FOLDER", request->folder, "Folder for the result, where shards are found too")->required();
    command.add_option("SHARDS", request->shards, "Shards, or folders of shards, to join instead of those in FOLDER");
    add_output_flag(command, request->format);
    command.footer(
        "Shards come from commfuse-sim sweep FILE --out FOLDER --shard i/N. The result is\n"
        "identical, byte for byte, to that of a single process. If shards are missing,\n"
        "merge prints the commands that create them.\n"
        "\n"
        "Examples:\n"
        "  commfuse-sim merge out/million\n"
        "  commfuse-sim merge out/all a b\n"
        "  commfuse-sim merge out/all a/shard-1-of-2.sqlite b/shard-2-of-2.sqlite");
    command.callback([request, &status] {
      Terminal terminal(status);
      terminal.take(merge(*request, terminal));
    });
  });
}

}  // namespace commfuse::sim
