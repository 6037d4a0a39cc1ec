// SPDX-License-Identifier: Apache-2.0
// Only this file includes toml++, which is used as a header-only library with bounded nesting. Some inputs violate
// assertions in toml++ about its own state; here, such a violation throws in every build.
namespace commfuse::import {
namespace {
struct BrokenToml {};

constexpr void require_toml(bool holds) {
  if (!holds) {
    throw BrokenToml();
  }
}
}  // namespace
}  // namespace commfuse::import
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) commfuse::import::require_toml(static_cast<bool>(expression))
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <utility>

#include "model/config_error.h"
#include "model/text/files.h"
#include "model/text/plain_text.h"
#include "sim/import/keyed_file.h"

namespace commfuse::import {

namespace {

constexpr std::size_t deepest_key = 32;

/// Returns the index after the last quote of the TOML string that begins at `at`. Where the string is not closed,
/// returns the index of the line's end, or of the text's end for a multi-line string.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string triple(3, quote);
  const bool is_long = text.substr(at, 3) == triple;
  for (std::size_t i = at + (is_long ? 3 : 1); i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (is_long && text.substr(i, 3) == triple) {
      const std::size_t end = std::min(text.find_first_not_of(quote, i), text.size());
      return std::min(end, i + 5);  // up to two quotes may precede the closing quotes
    } else if (!is_long && text[i] == quote) {
      return i + 1;
    } else if (!is_long && text[i] == '\n') {
      return i;
    }
  }
  return text.size();
}

/// Rejects keys that toml++ does not handle safely. toml++ bounds the nesting of values, but a long key such as
/// a.a.a... also nests tables. TOML forbids letters outside ASCII except in strings and comments, and elsewhere they
/// cause undefined behaviour in toml++.
void refuse_odd_keys(std::string_view text, const std::string& path) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  std::size_t dots = 0;
  std::size_t line = 1;
  std::size_t i = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  while (i < text.size()) {
    const char letter = text[i];
    if (static_cast<unsigned char>(letter) >= 0x80) {
      throw ConfigError(fmt::format("{}:{}:1: a non-ASCII letter outside a string; put it in quotes", path, line));
    }
    if (letter == '"' || letter == '\'') {
      const std::size_t end = end_of_string(text, i);
      line += static_cast<std::size_t>(std::ranges::count(text.substr(i, end - i), '\n'));
      i = end;
      continue;
    }
    if (letter == '#') {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    line += letter == '\n' ? 1 : 0;
    dots = letter == '.' ? dots + 1 : std::string_view("\n=,{}[]").find(letter) == std::string_view::npos ? dots : 0;
    if (dots >= deepest_key) {
      throw ConfigError(
          fmt::format("{}:{}:1: a key has more than {} levels; give a torchtitan file", path, line, deepest_key));
    }
    ++i;
  }
}

std::string where_of(const std::string& path, const toml::source_position& place) {
  return fmt::format("{}:{}:{}", path, place.line, place.column);
}

/// Returns the text of a scalar; empty for lists and tables.
std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) {
    return text->get();
  }
  if (const auto* number = node.as_integer()) {
    return fmt::format("{}", number->get());
  }
  if (const auto* number = node.as_floating_point()) {
    return fmt::format("{:#}", number->get());  // 8192.0 is not a whole number
  }
  if (const auto* truth = node.as_boolean()) {
    return truth->get() ? "true" : "false";
  }
  return node.is_array() || node.is_table() ? "" : "a date or time";
}

Entry entry_of(std::string key, const toml::node& node, std::string where) {
  Entry entry{.key = std::move(key), .text = text_of(node), .items = {}, .where = std::move(where)};
  entry.kind = node.is_boolean()  ? EntryKind::boolean
               : node.is_number() ? EntryKind::number
               : node.is_array()  ? EntryKind::list
               : node.is_table()  ? EntryKind::map
                                  : EntryKind::text;
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& item : *list) {
      if (!item.is_array() && !item.is_table()) {
        entry.items.push_back(text_of(item));
      }
    }
    entry.text = fmt::format("{}", fmt::join(entry.items, ", "));
  }
  return entry;
}

void add(const toml::table& table, const std::string& prefix, KeyedFile& file) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    const toml::table* const inner = node.as_table();
    if (inner != nullptr && !inner->empty()) {
      add(*inner, key + ".", file);
    } else {
      file.put(entry_of(key, node, where_of(file.path(), name.source().begin)));
    }
  }
}

}  // namespace

KeyedFile read_toml(const std::string& path) {
  const std::string text = read_small_file(path);
  refuse_odd_keys(text, path);
  KeyedFile file(path);
  try {
    add(toml::parse(text, path), "", file);
  } catch (const toml::parse_error& error) {
    throw ConfigError(
        fmt::format("{}: {}; write TOML", where_of(path, error.source().begin), with_escapes(error.description())));
  } catch (const BrokenToml&) {
    throw ConfigError(fmt::format("{}: not valid TOML; find the place with another TOML reader, and correct it", path));
  }
  return file;
}

}  // namespace commfuse::import
