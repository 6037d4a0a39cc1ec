// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/rows_of_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "model/config/choices.h"
#include "model/config_error.h"
#include "model/json_budget.h"
#include "model/text/files.h"
#include "model/text/json_characters.h"
#include "model/text/suggest.h"
#include "sim/sweep/json_values.h"
#include "sim/sweep/row_check.h"

namespace commfuse {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Place of a row in a JSON file, for messages: the line on which it ends.
struct Place {
  std::string file;
  std::size_t line = 0;
};

[[noreturn]] void refuse(const Place& place, const std::string& sentence) {
  throw ConfigError(fmt::format("{}:{}: {}", place.file, place.line, sentence));
}

/// Files older than `result_schema` have one schema per kind of row.
constexpr std::string_view old_layer_schema = "commfuse.result/1";
constexpr std::string_view old_model_schema = "commfuse.step/1";

bool is_text(const Json& json, std::string_view text) { return json.is_string() && json == text; }

/// Returns whether the row is of a whole model. Throws RowMisfit for a value that is not a row.
bool is_of_model(const Json& row) {
  const Json schema = row.is_object() ? row.value("schema", Json{}) : Json{};
  if (schema == old_layer_schema || schema == old_model_schema) {
    return schema == old_model_schema;
  }
  if (schema != result_schema) {
    throw RowMisfit(fmt::format("this is not a row of {} but {}", result_schema,
                                schema.is_string() ? in_quotes(schema.get<std::string>()) : "something else"));
  }
  const Json scope = row.value("scope", Json{});
  return std::ranges::any_of(whole_model_scopes, [&](const auto& choice) { return is_text(scope, choice.first); });
}

/// Checks rows and passes them to the callbacks.
class RowTaker {
 public:
  explicit RowTaker(const JsonRows& take) : take_(take) {}

  void take(const Json& row, const Place& place) {
    const char* remedy = "create one by commfuse-sim run -o jsonl, or by a sweep";
    try {
      const bool is_model = is_of_model(row);
      remedy = "write the results again";
      is_model ? take_.model(step_row_of(row)) : take_layer(row);
    } catch (const RowMisfit& misfit) {
      refuse(place, fmt::format("{}; {}", misfit.what(), remedy));
    }
  }

 private:
  void take_layer(const Json& row) {
    values_.clear();
    for (const ResultColumn& column : result_columns()) {
      const auto entry = row.find(std::string{column.name});
      values_.push_back(entry == row.end() ? Value{} : value_in(column.name, column.type, *entry));
    }
    take_.layer(values_, reader_.read(values_));
  }

  const JsonRows& take_;
  RowReader reader_;
  std::vector<Value> values_;
};

constexpr std::string_view rows_remedy = "give the store of a sweep, or output of -o json or jsonl";

/// Parses a line of JSON Lines.
Json parsed_line(std::string_view text, const Place& place) {
  try {
    return parse_json<Json>(text, fmt::format("{}:{}", place.file, place.line));
  } catch (const Json::parse_error& error) {
    const bool is_cut = error.byte > text.size();
    throw ConfigError(fmt::format("{}:{}:{}: {}; {}", place.file, place.line, error.byte,
                                  is_cut ? "the row does not end on its line" : "this is not JSON", rows_remedy));
  } catch (const Json::exception&) {
    refuse(place, "a number is out of range; write the results again");
  }
}

/// A stream of rows. Throws ConfigError if a row or the whole stream is too long.
class RowStream {
 public:
  RowStream(std::istream& in, const std::string& file) : in_(in), file_(file) {}

  std::size_t fill(std::span<char> buffer) {
    in_.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    if (in_.bad()) {
      throw ConfigError(
          fmt::format("{} cannot be read; give the folder of a sweep, its store, JSON or JSON Lines", file_));
    }
    const auto count = static_cast<std::size_t>(in_.gcount());
    total_ += count;
    if (total_ > max_json_bytes) {
      throw ConfigError(fmt::format("{} is larger than 2 GiB; give the store of the sweep", file_));
    }
    return count;
  }
  void refuse_long_piece(const JsonPlaces& places) const {
    throw ConfigError(fmt::format("{}:{}: a row takes more than {} MiB; write the results again", file_, places.line(),
                                  longest_json_piece >> 20U));
  }

 private:
  std::istream& in_;
  const std::string& file_;
  std::size_t total_ = 0;
};

using Characters = BufferedCharacters<RowStream>;

/// Passes each object of a list to the taker, and frees it afterwards.
void take_list(Characters& characters, const std::string& file, RowTaker& taker) {
  Place place{file};
  const auto take = [&](Json::parse_event_t event, const Json& parsed) {
    place.line = characters.places().last_line();
    if (event != Json::parse_event_t::object_end) {
      refuse(place, "this is not a row; write the results again");
    }
    taker.take(parsed, place);
    characters.forget();
  };
  try {
    take_and_forget<Json>(file, 1, take, JsonCharacter(&characters), JsonCharacter<Characters>(nullptr));
  } catch (const Json::parse_error& error) {
    throw ConfigError(
        fmt::format("{}:{}: this is not JSON; {}", file, characters.places().place(error.byte), rows_remedy));
  } catch (const Json::exception&) {
    place.line = characters.places().last_line();
    refuse(place, "a number is out of range; write the results again");
  }
}

std::ifstream opened(const std::string& file) {
  refuse_named_pipe(file);
  std::error_code error;
  const std::uintmax_t size = fs::is_regular_file(file, error) ? fs::file_size(file, error) : 0;
  std::ifstream in(file, std::ios::binary);
  if (in && !error && size > max_json_bytes) {
    throw ConfigError(fmt::format("{} is larger than 2 GiB; give the store of the sweep", file));
  }
  if (!in || error) {
    throw ConfigError(
        fmt::format("{} cannot be read; give the folder of a sweep, its store, JSON or JSON Lines", file));
  }
  return in;
}

/// Returns the next line without its break.
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

void rows_of_json(std::istream& in, const std::string& file, const JsonRows& take) {
  Characters characters{RowStream(in, file)};
  RowTaker taker(take);
  if (characters.first_letter() == '[') {
    take_list(characters, file, taker);
    return;
  }
  Place place{file, 0};
  while (!characters.at_end()) {
    const std::string line = next_line(characters);
    ++place.line;
    if (line.find_first_not_of(" \t\r") != std::string::npos) {
      taker.take(parsed_line(line, place), place);
    }
  }
}

void rows_of_json_file(const std::string& file, const JsonRows& take) {
  bool is_empty = true;
  const JsonRows counted{[&](std::span<const Value> values, const ResultRow& row) {
                           is_empty = false;
                           take.layer(values, row);
                         },
                         [&](const StepRow& row) {
                           is_empty = false;
                           take.model(row);
                         }};
  if (file == "-") {
    rows_of_json(std::cin, "stdin", counted);
  } else {
    std::ifstream in = opened(file);
    rows_of_json(in, file, counted);
  }
  if (is_empty) {
    throw ConfigError(fmt::format("{} contains no rows; write some with commfuse-sim run -o jsonl", file));
  }
}

bool begins_like_json(const fs::path& file) {
  std::error_code error;
  if (file == "-" || !fs::is_regular_file(file, error)) {
    return file == "-";
  }
  std::string begin(4096, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(in.gcount()));
  const std::string_view text = without_byte_order_mark(begin);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? file.extension() != ".sqlite" : text[first] == '[' || text[first] == '{';
}

}  // namespace commfuse
