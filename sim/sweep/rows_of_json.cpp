// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/rows_of_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "model/config_error.h"
#include "model/json_budget.h"
#include "model/json_characters.h"
#include "model/text/files.h"
#include "model/text/suggest.h"
#include "sim/sweep/row_check.h"

namespace commfuse {

namespace {

using Json = nlohmann::ordered_json;

/// Where the rows of a JSON file stand, for messages.
struct Place {
  std::string file;
  std::size_t line = 0;
};

[[noreturn]] void refuse(const Place& place, const std::string& sentence) {
  throw ConfigError(fmt::format("{}:{}: {}", place.file, place.line, sentence));
}

Value value_of(const ResultColumn& column, const Json& json, const Place& place) {
  if (json.is_null()) {
    return {};
  }
  if (column.type == ColumnType::text && json.is_string()) {
    return json.get<std::string>();
  }
  if (const auto whole = whole_number(json); column.type == ColumnType::count && whole) {
    return *whole;
  }
  if (column.type == ColumnType::number && json.is_number()) {
    return json.get<double>();
  }
  refuse(place, fmt::format("{} is {}, which is not {}; write the results anew", column.name, json.dump().substr(0, 40),
                            type_in_words(column.type)));
}

ResultRow row_in(const Json& json, const Place& place) {
  const Json schema = json.is_object() ? json.value("schema", Json{}) : Json{};
  if (schema != result_schema) {
    refuse(place,
           fmt::format("this is not a row of {} but {}; write one with commfuse-sim run -o jsonl or sweep",
                       result_schema, schema.is_string() ? in_quotes(schema.get<std::string>()) : "something else"));
  }
  std::vector<Value> values;
  for (const ResultColumn& column : result_columns()) {
    const auto found = json.find(std::string{column.name});
    values.push_back(found == json.end() ? Value{} : value_of(column, *found, place));
  }
  try {
    return checked_row(values);
  } catch (const RowMisfit& misfit) {
    refuse(place, fmt::format("{}; write the results anew", misfit.what()));
  }
}

constexpr std::string_view no_rows = "this is not JSON; give the store of a sweep, or what -o json or jsonl writes";

/// A line of JSON Lines.
Json parsed_line(std::string_view text, const Place& place) {
  try {
    return parse_json<Json>(text, fmt::format("{}:{}", place.file, place.line));
  } catch (const Json::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}:{}: {}", place.file, place.line, error.byte, no_rows));
  } catch (const Json::exception&) {
    refuse(place, "a number is out of range; write the results anew");
  }
}

/// Characters of a stream, and where they stand.
class Characters {
 public:
  Characters(std::istream& in, const std::string& file) : in_(in), file_(file) {
    fill();
    at_ = count_ - without_byte_order_mark({buffer_.data(), count_}).size();
    if (at_ == count_) {
      fill();
    }
  }

  [[nodiscard]] bool at_end() const { return count_ == 0; }
  [[nodiscard]] char front() const { return buffer_[at_]; }
  /// Throws ConfigError where one row, or all of them, are too long.
  void pop() {
    places_.pass(front());
    if (++at_ >= count_) {
      fill();
    }
  }
  /// A row is over.
  void forget() { since_ = 0; }
  [[nodiscard]] const JsonPlaces& places() const { return places_; }
  /// The first letter of the buffer that is not blank, or 0.
  [[nodiscard]] char first_letter() const {
    const auto end = buffer_.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto found = std::find_if_not(buffer_.begin() + static_cast<std::ptrdiff_t>(at_), end, is_blank);
    return found == end ? '\0' : *found;
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  void fill() {
    in_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    if (in_.bad()) {
      throw ConfigError(
          fmt::format("{} cannot be read; give the folder of a sweep, its store, JSON or JSON Lines", file_));
    }
    count_ = static_cast<std::size_t>(in_.gcount());
    at_ = 0;
    total_ += count_;
    since_ += count_;
    if (total_ > most_json_bytes) {
      throw ConfigError(fmt::format("{} is larger than 2 GiB; give the store of the sweep", file_));
    }
    if (since_ > longest_json_piece + buffer_.size()) {
      throw ConfigError(fmt::format("{}:{}: a row takes more than {} MiB; write the results anew", file_,
                                    places_.line(), longest_json_piece >> 20U));
    }
  }

  std::istream& in_;
  const std::string& file_;
  std::vector<char> buffer_ = std::vector<char>(1 << 16);
  std::size_t at_ = 0;
  std::size_t count_ = 0;
  std::size_t total_ = 0;
  std::size_t since_ = 0;  // since the last row
  JsonPlaces places_;
};

/// The objects of a list, each of which is looked at and forgotten.
std::vector<ResultRow> rows_in_list(Characters& characters, const std::string& file) {
  std::vector<ResultRow> rows;
  const auto take = [&](Json::parse_event_t event, const Json& parsed) {
    const Place place{file, rows.size() + 2};  // An object a line, below the bracket.
    if (event != Json::parse_event_t::object_end) {
      refuse(place, "this is not a row; write the results anew");
    }
    rows.push_back(row_in(parsed, place));
    characters.forget();
  };
  try {
    take_and_forget<Json>(file, 1, take, JsonCharacter(&characters), JsonCharacter<Characters>(nullptr));
  } catch (const Json::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: {}", file, characters.places().place(error.byte), no_rows));
  } catch (const Json::exception&) {
    refuse({file, rows.size() + 2}, "a number is out of range; write the results anew");
  }
  return rows;
}

/// The next line without its break.
std::string next_line(Characters& characters) {
  std::string line;
  for (; !characters.at_end() && characters.front() != '\n'; characters.pop()) {
    line += characters.front();
  }
  if (!characters.at_end()) {
    characters.pop();
  }
  characters.forget();
  return line;
}

}  // namespace

std::vector<ResultRow> rows_of_json(std::istream& in, const std::string& file) {
  Characters characters(in, file);
  if (characters.first_letter() == '[') {
    return rows_in_list(characters, file);
  }
  Place place{file, 0};
  std::vector<ResultRow> rows;
  while (!characters.at_end()) {
    const std::string line = next_line(characters);
    ++place.line;
    if (line.find_first_not_of(" \t\r") != std::string::npos) {
      rows.push_back(row_in(parsed_line(line, place), place));
    }
  }
  return rows;
}

}  // namespace commfuse
