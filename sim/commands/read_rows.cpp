// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/read_rows.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>

#include "model/config_error.h"
#include "model/text/files.h"
#include "reports/atomic_file.h"
#include "sim/commands/sweep_folder.h"
#include "sim/sweep/result_store.h"
#include "sim/sweep/rows_of_json.h"

namespace commfuse::sim {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<ResultRow> rows_in(const std::string& file) {
  if (file == "-") {
    return rows_of_json(std::cin, "stdin");
  }
  refuse_named_pipe(file);
  std::error_code error;
  const std::uintmax_t size = fs::is_regular_file(file, error) ? fs::file_size(file, error) : 0;
  std::ifstream in(file, std::ios::binary);
  if (in && !error && size > most_json_bytes) {
    throw ConfigError(fmt::format("{} is larger than 2 GiB; give the store of the sweep", file));
  }
  if (!in || error) {
    throw ConfigError(
        fmt::format("{} cannot be read; give the folder of a sweep, its store, JSON or JSON Lines", file));
  }
  return rows_of_json(in, file);
}

/// The value behind "title:" of the settings that a store was made with.
std::string title_in(const std::string& settings) {
  constexpr std::string_view key = "\ntitle: ";
  const std::size_t at = settings.find(key);
  if (at == std::string::npos) {
    return "Results";
  }
  std::string title = settings.substr(at + key.size(), settings.find('\n', at + 1) - at - key.size());
  if (title.size() > 1 && title.front() == '"' && Json::accept(title)) {
    return Json::parse(title).get<std::string>();
  }
  return title;
}

ReadRows rows_of_store(const fs::path& path) {
  StoreReader store(path);
  if (store.identity().kind != StoreKind::layers) {
    throw ConfigError(fmt::format(
        "{} holds whole models; a report shows layers, so look at it with commfuse-sim results", path.string()));
  }
  ReadRows read{.rows = {},
                .title = title_in(store.identity().settings),
                .command = fmt::format(
                    "commfuse-sim sweep {} --out FOLDER\ncommfuse-sim report FOLDER --out report.html", settings_file)};
  LayerRowReader reader;
  const std::string name = path.string();
  while (store.next_point([&](std::size_t, const StoreRow& row) { read.rows.push_back(reader.read(row, name)); })) {
  }
  return read;
}

}  // namespace

ReadRows read_rows(const std::string& file) {
  if (std::error_code error; fs::is_directory(file, error)) {
    if (!fs::exists(fs::path(file) / store_file, error)) {
      throw ConfigError(fmt::format("{} holds no {}; give the folder of a finished sweep", file, store_file));
    }
    return rows_of_store(fs::path(file) / store_file);
  }
  if (file != "-" && reports::is_database(file)) {
    return rows_of_store(file);
  }
  ReadRows read{.rows = RowTable(rows_in(file)),
                .title = file == "-" ? "Results" : fs::path(file).filename().string(),
                .command = fmt::format("commfuse-sim report {} --out report.html", file)};
  if (read.rows.empty()) {
    throw ConfigError(fmt::format("{} holds no rows; write some with commfuse-sim run -o jsonl", file));
  }
  return read;
}

}  // namespace commfuse::sim
