// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/read_rows.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <system_error>

#include "model/config_error.h"
#include "reports/atomic_file.h"
#include "sim/commands/sweep_folder.h"
#include "sim/sweep/result_store.h"
#include "sim/sweep/rows_of_json.h"

namespace commfuse::sim {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Returns the value after "title:" in the settings of a store.
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
  ReadRows read{.rows = {},
                .title = title_in(store.identity().settings),
                .command = fmt::format(
                    "commfuse-sim sweep {} --out FOLDER\ncommfuse-sim report FOLDER --out report.html", settings_file)};
  LayerRowReader reader;
  const std::string name = path.string();
  const bool is_of_layers = store.identity().kind == StoreKind::layers;
  while (store.next_point([&](std::size_t, const StoreRow& row) {
    is_of_layers ? read.rows.push_back(reader.read(row, name)) : read.models.push_back(model_row(row, name));
  })) {
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
  ReadRows read{.rows = {},
                .title = file == "-" ? "Results" : fs::path(file).filename().string(),
                .command = fmt::format("commfuse-sim report {} --out report.html", file)};
  rows_of_json_file(file, {[&](std::span<const Value>, const ResultRow& row) { read.rows.push_back(row); },
                           [&](const StepRow& row) { read.models.push_back(row); }});
  return read;
}

}  // namespace commfuse::sim
