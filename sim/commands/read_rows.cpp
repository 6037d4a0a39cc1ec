// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/read_rows.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "model/config_error.h"
#include "model/text/shell_word.h"
#include "reports/atomic_file.h"
#include "sim/commands/sweep_folder.h"
#include "sim/parallel/parallel.h"
#include "sim/sweep/result_store.h"
#include "sim/sweep/rows_of_json.h"

namespace commfuse::sim {

namespace {

namespace fs = std::filesystem;

/// Returns the value after "title:" in the settings of a store.
std::string title_in(const std::string& settings) {
  constexpr std::string_view key = "\ntitle: ";
  const std::size_t at = settings.find(key);
  if (at == std::string::npos) {
    return "Results";
  }
  std::string title = settings.substr(at + key.size(), settings.find('\n', at + 1) - at - key.size());
  if (title.size() > 1 && title.front() == '"' && nlohmann::json::accept(title)) {
    return nlohmann::json::parse(title).get<std::string>();
  }
  return title;
}

/// Rows of a part of a store.
struct PartOfRows {
  RowTable rows;
  std::vector<StepRow> models;
};

PartOfRows rows_of_part(StoreReader& store, const StorePart& part) {
  PartOfRows read;
  LayerRowReader reader;
  const std::string name = store.path().string();
  const bool is_of_layers = store.identity().kind == StoreKind::layers;
  store.restrict_to(part);
  while (store.next_point([&](std::size_t, const StoreRow& row) {
    is_of_layers ? read.rows.push_back(reader.read(row, name)) : read.models.push_back(model_row(row, name));
  })) {
  }
  return read;
}

/// Reads a store on all cores. `store` keeps other processes from writing to it until all parts are read.
std::vector<PartOfRows> read_parts(StoreReader& store) {
  const std::vector<StorePart> parts = store.parts(threads_at_most());
  std::vector<PartOfRows> read(parts.size());
  for_each_index_to_the_end(parts.size(), [&](std::size_t i) {
    if (i == 0) {
      read[i] = rows_of_part(store, parts[i]);
    } else {
      StoreReader other(store.path());
      read[i] = rows_of_part(other, parts[i]);
    }
  });
  return read;
}

ReadRows rows_of_store(const fs::path& path) {
  StoreReader store(path);
  ReadRows read{.rows = {},
                .title = title_in(store.identity().settings),
                .command = fmt::format(
                    "commfuse-sim sweep {} --out FOLDER\ncommfuse-sim report FOLDER --out report.html", settings_file)};
  for (PartOfRows& part : read_parts(store)) {
    read.rows.append(std::move(part.rows));
    read.models.insert(read.models.end(), std::make_move_iterator(part.models.begin()),
                       std::make_move_iterator(part.models.end()));
  }
  return read;
}

}  // namespace

ReadRows read_rows(const std::string& file) {
  if (std::error_code error; fs::is_directory(file, error)) {
    if (!fs::exists(fs::path(file) / store_file, error)) {
      throw ConfigError(fmt::format("{} contains no {}; give the folder of a finished sweep", file, store_file));
    }
    return rows_of_store(fs::path(file) / store_file);
  }
  if (file != "-" && reports::is_database(file)) {
    return rows_of_store(file);
  }
  ReadRows read{.rows = {},
                .title = file == "-" ? "Results" : fs::path(file).filename().string(),
                .command = fmt::format("commfuse-sim report {} --out report.html", shell_word(file))};
  rows_of_json_file(file, {[&](std::span<const Value>, const ResultRow& row) { read.rows.push_back(row); },
                           [&](const StepRow& row) { read.models.push_back(row); }});
  return read;
}

}  // namespace commfuse::sim
