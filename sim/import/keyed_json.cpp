// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/config_error.h"
#include "model/json_budget.h"
#include "model/text/files.h"
#include "model/text/suggest.h"
#include "sim/import/keyed_file.h"

namespace commfuse::import {

namespace {

using Json = nlohmann::json;

constexpr std::size_t deepest_nesting = 32;

/// Iterates over a string and counts the bytes that the parser has read, because the parser reports only the places of
/// errors.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* bytes_read) : at_(at), bytes_read_(bytes_read) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*bytes_read_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* bytes_read_;
};

/// Finds the line and column of a byte in a string. Each call must request a later byte than the previous call.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text) {}

  std::string at(std::size_t byte) {
    for (; at_ < byte && at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') {
        ++line_;
        begin_ = at_ + 1;
      }
    }
    return fmt::format("{}:{}", line_, byte - begin_ + 1);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t begin_ = 0;
};

/// Turns the parser's events into entries by dotted key.
class Listener {
 public:
  Listener(std::string_view text, const std::size_t& bytes_read, KeyedFile& file)
      : text_(text), bytes_read_(bytes_read), places_(text), file_(file) {}

  bool null() { return value(EntryKind::null, "null"); }
  bool boolean(bool truth) { return value(EntryKind::boolean, truth ? "true" : "false"); }
  bool number_integer(Json::number_integer_t number) { return value(EntryKind::number, fmt::format("{}", number)); }
  bool number_unsigned(Json::number_unsigned_t number) { return value(EntryKind::number, fmt::format("{}", number)); }
  bool number_float(Json::number_float_t /*number*/, const std::string& text) { return value(EntryKind::number, text); }
  bool string(std::string& text) { return value(EntryKind::text, text); }
  bool binary(Json::binary_t& /*bytes*/) { return true; }

  bool start_object(std::size_t /*size*/) {
    begin();
    if (lists_ == 0) {
      prefixes_.push_back(prefixes_.empty() ? "" : current_.key + ".");
      seen_.emplace_back();
    }
    return true;
  }
  bool key(std::string& text) {
    if (lists_ > 0) {
      return true;
    }
    place_of_key();
    current_.key = prefixes_.back() + text;
    if (!seen_.back().insert(text).second) {
      throw ConfigError(fmt::format("{}: {} is given twice; keep one of them", current_.where, in_quotes(text)));
    }
    return true;
  }
  bool end_object() {
    --depth_;
    if (lists_ == 0) {
      if (seen_.back().empty() && depth_ > 0) {
        current_.key = prefixes_.back().substr(0, prefixes_.back().size() - 1);
        value(EntryKind::map, "");
      }
      prefixes_.pop_back();
      seen_.pop_back();
    }
    return true;
  }
  bool start_array(std::size_t /*size*/) {
    begin();
    if (prefixes_.empty()) {
      throw ConfigError(
          fmt::format("{}: a list where an object is expected; give a DeepSpeed configuration", file_.path()));
    }
    if (lists_++ == 0) {
      current_.items.clear();
    }
    return true;
  }
  bool end_array() {
    --depth_;
    if (--lists_ == 0) {
      const std::string text = fmt::format("{}", fmt::join(current_.items, ", "));
      value(EntryKind::list, text);
      current_.items.clear();
    }
    return true;
  }
  bool parse_error(std::size_t byte, const std::string& /*token*/, const Json::exception& /*error*/) {
    throw ConfigError(
        fmt::format("{}:{}: the JSON is truncated or invalid; write JSON", file_.path(), line_and_column(text_, byte)));
  }

 private:
  void begin() {
    if (++depth_ > deepest_nesting) {
      throw ConfigError(fmt::format("{}: more than {} levels of nesting; give a DeepSpeed configuration", file_.path(),
                                    deepest_nesting));
    }
  }
  bool value(EntryKind kind, std::string text) {
    if (lists_ > 0) {
      current_.items.push_back(std::move(text));
      return true;
    }
    if (prefixes_.empty()) {
      throw ConfigError(
          fmt::format("{}: a value where an object is expected; give a DeepSpeed configuration", file_.path()));
    }
    current_.kind = kind;
    current_.text = std::move(text);
    file_.put(current_);
    return true;
  }
  /// Records the place of a key. The parser has just read the quote that ends the key.
  void place_of_key() {
    std::size_t begin = bytes_read_ - 1;
    do {
      begin = text_.rfind('"', begin - 1);
    } while (begin > 0 && text_[begin - 1] == '\\');
    current_.where = fmt::format("{}:{}", file_.path(), places_.at(begin));
  }

  std::string_view text_;
  const std::size_t& bytes_read_;
  Places places_;
  KeyedFile& file_;
  Entry current_;
  std::vector<std::string> prefixes_;
  std::vector<std::set<std::string>> seen_;
  std::size_t depth_ = 0;
  std::size_t lists_ = 0;
};

}  // namespace

KeyedFile read_json(const std::string& path) {
  const std::string text = read_small_file(path);
  KeyedFile file(path);
  std::size_t bytes_read = 0;
  Listener listener(text, bytes_read, file);
  Json::sax_parse(CountingIterator(text.data(), &bytes_read), CountingIterator(text.data() + text.size(), &bytes_read),
                  &listener, nlohmann::detail::input_format_t::json, /*strict=*/true, /*ignore_comments=*/true);
  return file;
}

}  // namespace commfuse::import
