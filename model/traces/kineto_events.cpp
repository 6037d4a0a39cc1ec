// SPDX-License-Identifier: Apache-2.0
#include "model/traces/kineto_events.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "model/config_error.h"
#include "model/json_budget.h"
#include "model/text/files.h"
#include "model/text/json_characters.h"

namespace commfuse {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Source of characters for BufferedCharacters: a file, gzipped or not.
class TraceFile {
 public:
  /// Throws ConfigError if the file cannot be read.
  explicit TraceFile(const fs::path& path) : path_(path), file_(::gzopen(path.c_str(), "rb"), &::gzclose) {
    if (!file_) {
      throw ConfigError(fmt::format("{}: cannot be read; check the path", path.string()));
    }
  }
  std::size_t fill(std::span<char> buffer) {
    const int read = ::gzread(file_.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    return read > 0 ? static_cast<std::size_t>(read) : 0;
  }
  void refuse_long_piece(const JsonPlaces&) const {
    throw ConfigError(fmt::format("{}: one event takes more than {} MiB; export the trace again", path_.string(),
                                  longest_json_piece >> 20U));
  }

 private:
  fs::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

using Characters = BufferedCharacters<TraceFile>;

std::string beginning_of(const fs::path& path) {
  constexpr std::size_t enough = 1 << 16;
  std::string head;
  for (Characters characters{TraceFile(path)}; head.size() < enough && !characters.at_end(); characters.pop()) {
    head += characters.front();
  }
  return head;
}

/// Returns true if the file is a bare list of events, a form that Chrome also reads.
bool is_bare_list(std::string_view head) {
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t list = head.find_first_not_of(blank);
  if (list == std::string_view::npos || head[list] != '[') {
    return false;
  }
  const std::size_t event = head.find_first_not_of(blank, list + 1);
  const auto contains = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
  return event != std::string_view::npos && head[event] == '{' && contains("\"ph\"") && contains("\"ts\"");
}

}  // namespace

bool is_kineto_trace(const fs::path& path) {
  const std::string head = beginning_of(path);
  const bool is_object = head.find_first_not_of(" \t\r\n") == head.find('{');
  return is_bare_list(head) || (is_object && (head.find("\"traceEvents\"") != std::string::npos ||
                                              (head.find("\"schemaVersion\"") != std::string::npos &&
                                               head.find("\"deviceProperties\"") != std::string::npos)));
}

void visit_kineto(const fs::path& path, const KinetoVisitor& visitor) {
  Characters characters{TraceFile(path)};
  // Events are in a list inside the top object, as deep as the keys of distributedInfo, or in a bare list. Each value
  // at that depth is visited and then dropped.
  const int depth_of_events = is_bare_list(beginning_of(path)) ? 1 : 2;
  std::array<std::string, 3> keys;  // keys of the objects around the current value, by depth
  const auto take = [&](json::parse_event_t what, const json& parsed) {
    characters.forget();
    if (keys[1] == "distributedInfo") {
      if (visitor.distributed) {
        visitor.distributed(keys[2], parsed);
      }
    } else if (what == json::parse_event_t::object_end && visitor.event) {
      visitor.event(parsed);
    }
  };
  TakeAndForget<json, decltype(take)> callback(path.string(), depth_of_events, take);
  try {
    [[maybe_unused]] const json rest =
        json::parse(JsonCharacter(&characters), JsonCharacter<Characters>(nullptr),
                    [&](int depth, json::parse_event_t what, json& parsed) {
                      if (what == json::parse_event_t::key && depth_of_events == 2 && (depth == 1 || depth == 2)) {
                        keys[static_cast<std::size_t>(depth)] = parsed.get<std::string>();
                      }
                      return callback(depth, what, parsed);
                    });
  } catch (const json::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: is not a complete trace of PyTorch's profiler; export it again",
                                  path.string(), characters.places().place(error.byte)));
  } catch (const json::exception&) {  // a number outside the range of double
    throw ConfigError(fmt::format("{}:{}: a number is out of range; export the trace again", path.string(),
                                  characters.places().last()));
  }
}

}  // namespace commfuse
