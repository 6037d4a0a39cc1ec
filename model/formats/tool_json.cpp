// SPDX-License-Identifier: Apache-2.0
#include "model/formats/tool_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/config_error.h"
#include "model/formats/json_guard.h"
#include "model/json_budget.h"
#include "model/text/files.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

using Json = nlohmann::json;

constexpr std::size_t max_notes = 100;

std::string below(const std::string& place, std::string_view key) {
  return place.empty() ? std::string(key) : fmt::format("{}.{}", place, key);
}

}  // namespace

void ReadingNotes::add(std::string sentence) {
  if (notes_.size() < max_notes) {
    notes_.push_back(std::move(sentence));
  } else {
    ++omitted_;
  }
}

std::vector<std::string> ReadingNotes::take() {
  if (omitted_ > 0) {
    notes_.push_back(omitted_ == 1 ? "1 more note is not shown" : fmt::format("{} more notes are not shown", omitted_));
  }
  return std::move(notes_);
}

void ToolValue::refuse(std::string_view sentence) const {
  throw ConfigError(place.empty() ? fmt::format("{}: {}", path, sentence)
                                  : fmt::format("{}: {}: {}", path, place, sentence));
}

std::optional<ToolValue> ToolValue::find(const char* key) const {
  const auto member = json.find(key);
  return member == json.end() ? std::nullopt : std::optional(ToolValue{*member, path, below(place, key)});
}

void ToolValue::require_object() const {
  if (!json.is_object()) {
    refuse("is not an object; give the whole file as it was printed");
  }
}

std::vector<ToolValue> ToolValue::items() const {
  if (!json.is_array()) {
    refuse("is not a list; give the whole file as it was printed");
  }
  std::vector<ToolValue> items;
  items.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    items.push_back({json[i], path, fmt::format("{}[{}]", place, i)});
  }
  return items;
}

std::string ToolValue::text() const {
  if (!json.is_string()) {
    refuse("is not text; give the whole file as it was printed");
  }
  return json.get<std::string>();
}

std::int64_t ToolValue::whole(std::int64_t largest) const {
  const std::optional<std::int64_t> number = whole_number(json);
  if (!number || *number < 0 || *number > largest) {
    refuse(fmt::format("is not a whole number from 0 to {}; give the whole file as it was printed", largest));
  }
  return *number;
}

std::string ToolValue::text_at(const char* key) const {
  const std::optional<ToolValue> value = find(key);
  return value ? value->text() : "";
}

void ToolValue::note_others(std::span<const std::string_view> known, ReadingNotes& notes) const {
  for (const auto& [key, value] : json.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      notes.add(fmt::format("{}: {}key {} is not used", path, place.empty() ? "" : place + ": ", in_quotes(key)));
    }
  }
}

Json tool_document(std::string_view text, const std::string& path, std::string_view program, ReadingNotes& notes) {
  text = without_byte_order_mark(text);
  const std::size_t begin = text.find('{');
  if (begin == std::string_view::npos) {
    throw ConfigError(fmt::format("{}: contains no JSON; give what {} printed", path, program));
  }
  const std::string_view before = text.substr(0, begin);
  if (before.find_first_not_of(" \t\r\n") != std::string_view::npos) {
    notes.add(fmt::format("{}: text before the JSON is not used: {}", path, in_quotes(before)));
  }
  try {
    Json document = parse_json<Json>(text.substr(begin), path);
    guard_json(text.substr(begin), path, {.twice = "give the whole file as it was printed"});
    return document;
  } catch (const Json::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: is not one JSON document; give the complete output of {}, one run per file",
                                  path, line_and_column(text, begin + error.byte), program));
  } catch (const Json::exception&) {  // a number that no double can hold
    throw ConfigError(fmt::format("{}: a number is out of range; give what {} printed", path, program));
  }
}

}  // namespace commfuse
