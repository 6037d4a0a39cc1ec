// SPDX-License-Identifier: Apache-2.0
// The page's only entry into the simulator: a question in JSON, an answer in JSON.
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "model/config_error.h"
#include "page/engine/answers.h"
#include "page/engine/configs.h"

namespace commfuse::page {

namespace {

using nlohmann::json;

/// Unpacks the files of configs/, which are part of the engine, into the catalogue's folder.
void unpack_configs() {
  for (const auto& [path, text] : configs()) {
    const std::filesystem::path file = std::filesystem::path("/configs") / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  setenv("COMMFUSE_CONFIG_DIR", "/configs", 1);  // NOLINT(concurrency-mt-unsafe): there is one thread
}

json answer(const json& request) {
  static Points points;
  const std::string question = request.at("ask");
  return question == "start"   ? start()
         : question == "point" ? points.point(request)
         : question == "why"   ? points.why(request)
         : question == "plan"  ? plan(request)
         : question == "file"  ? keep_file(request)
                               : throw ConfigError(fmt::format("{}: unknown question", question));
}

/// Returns {"answer": …}, or {"error": "a sentence"}.
json answer_or_error(const char* request) {
  static const bool unpacked = (unpack_configs(), true);
  static_cast<void>(unpacked);
  try {
    return {{"answer", answer(json::parse(request))}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

}  // namespace commfuse::page

/// Answers a question of answers.h. The text stays valid until the next question.
extern "C" const char* commfuse_ask(const char* request) {
  static std::string text;
  // An error may quote a file with any bytes.
  text = commfuse::page::answer_or_error(request).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.c_str();
}
