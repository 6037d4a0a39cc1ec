// SPDX-License-Identifier: Apache-2.0
#include "tests/house/swappable_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <string_view>
#include <utility>

namespace fs = std::filesystem;

namespace commfuse::house {

namespace {

using Names = std::pair<std::string_view, std::string_view>;

/// Names in the order that every reader expects.
constexpr std::array expected_orders = {
    Names{"a", "b"},
    Names{"gpu_a", "gpu_b"},
    Names{"x", "y"},
    Names{"m", "n"},
    Names{"n", "k"},
    Names{"row", "column"},
    Names{"rows", "columns"},
    Names{"from", "to"},
    Names{"from_node", "to_node"},
    Names{"first", "last"},
    Names{"first", "second"},
    Names{"first", "end"},
    Names{"first", "count"},
    Names{"first", "rows"},
    Names{"first_gpu", "gpus"},
    Names{"begin", "end"},
    Names{"start", "end"},
    Names{"least", "largest"},
    Names{"smallest", "largest"},
    Names{"least", "greatest"},
    Names{"least", "limit"},
    Names{"low", "high"},
    Names{"done", "measurements"},
    Names{"done", "rounds"},
    Names{"index", "parts"},
    Names{"part", "whole"},
    Names{"measured", "predicted"},
    Names{"measured_ratio", "predicted_ratio"},
    Names{"gpu", "other"},
    Names{"mover", "other"},
    Names{"major", "minor"},
    Names{"minor", "patch"},
    // A dividend before its divisor.
    Names{"number", "extent"},
    Names{"count", "size"},
    // The terms of a formula, in its order: factor * (coordinate + offset), x + tail, x - origin.
    Names{"factor", "offset"},
    Names{"x", "tail"},
    Names{"x", "origin"},
};

/// A parameter that is a number.
struct Number {
  std::string type;
  std::string name;
};

/// Returns true if readers expect the names in this order: a listed order, or an index before its count ("rank,
/// ranks").
bool is_expected(const Number& first, const Number& second) {
  return second.name == first.name + "s" || second.name == first.name + "es" ||
         std::ranges::find(expected_orders, Names{first.name, second.name}) != expected_orders.end();
}

/// Returns the text with blanks instead of comments, so that lines keep their numbers.
std::string without_comments(std::string text) {
  for (std::size_t at = text.find("//"); at != std::string::npos; at = text.find("//", at)) {
    for (; at < text.size() && text[at] != '\n'; ++at) {
      text[at] = ' ';
    }
  }
  return text;
}

/// Returns the end of the list that begins at `open`, a bracket; nullopt if it is not closed.
std::optional<std::size_t> end_of_list(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth == 0) {
      return at;
    }
  }
  return std::nullopt;
}

/// Splits a list of parameters at its own commas.
std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char letter : list) {
    const bool opens = letter == '(' || letter == '<' || letter == '{';
    const bool closes = letter == ')' || letter == '>' || letter == '}';
    depth += opens ? 1 : closes ? -1 : 0;
    if (letter == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

std::optional<Number> number_of(const std::string& parameter) {
  static const std::regex form(R"(\s*(?:const\s+)?(?:std::optional<)?([\w:]+)>?\s+(\w+)\s*(?:=[\s\S]*)?)");
  static const std::set<std::string, std::less<>> numbers = {
      "int",           "unsigned",      "long",          "float",          "double",         "char",
      "std::size_t",   "std::int8_t",   "std::int16_t",  "std::int32_t",   "std::int64_t",   "std::uint8_t",
      "std::uint16_t", "std::uint32_t", "std::uint64_t", "Rank",           "Duration",       "Seconds",
      "Instant",       "Bytes",         "Flops",         "BytesPerSecond", "FlopsPerSecond", "Watts"};
  std::smatch match;
  return std::regex_match(parameter, match, form) && numbers.contains(match.str(1))
             ? std::optional(Number{match.str(1), match.str(2)})
             : std::nullopt;
}

/// Adds the breaches in one list of parameters; `place` names its line.
void check_list(std::string_view list, const std::string& place, std::vector<std::string>& breaches) {
  std::optional<Number> before;
  for (const std::string& parameter : split(list)) {
    std::optional<Number> number = number_of(parameter);
    if (before && number && before->type == number->type && !is_expected(*before, *number)) {
      breaches.push_back(fmt::format("{}: '{}' and '{}' are easily swapped; make them members of a struct", place,
                                     before->name, number->name));
    }
    before = std::move(number);
  }
}

void check_header(const fs::path& path, const std::string& name, std::vector<std::string>& breaches) {
  std::ifstream file(path);
  const std::string text = without_comments({std::istreambuf_iterator<char>(file), {}});
  for (std::size_t open = text.find('('); open != std::string::npos; open = text.find('(', open + 1)) {
    if (const std::optional<std::size_t> end = end_of_list(text, open)) {
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(open), '\n');
      check_list(std::string_view(text).substr(open + 1, *end - open - 1), fmt::format("{}:{}", name, line), breaches);
    }
  }
}

}  // namespace

std::vector<std::string> swappable_numbers(const fs::path& root) {
  std::set<std::string> headers;
  for (const std::string_view layer : {"model", "sim", "validate", "reports"}) {
    if (!fs::exists(root / layer)) {
      continue;
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / layer)) {
      if (entry.path().extension() == ".h" || entry.path().extension() == ".cuh") {
        headers.insert(entry.path().lexically_relative(root).generic_string());
      }
    }
  }
  std::vector<std::string> breaches;
  for (const std::string& header : headers) {
    check_header(root / header, header, breaches);
  }
  return breaches;
}

}  // namespace commfuse::house
