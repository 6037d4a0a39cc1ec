// SPDX-License-Identifier: Apache-2.0
// Reads one short text of a schedule, token by token. Only index_text.cpp uses it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/program_text/index_text.h"
#include "model/text/suggest.h"

namespace commfuse::text {

inline bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
inline bool begins_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}
inline bool continues_name(char letter) { return begins_name(letter) || is_digit(letter) || letter == '.'; }

/// Skips spaces between tokens. Functions that fail throw TextError.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) { skip_spaces(); }

  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] bool ended() const { return at_ == text_.size(); }
  [[nodiscard]] bool next_is(std::string_view token) const { return text_.substr(at_).starts_with(token); }

  bool take(std::string_view token) {
    if (!next_is(token)) {
      return false;
    }
    at_ += token.size();
    skip_spaces();
    return true;
  }

  void expect(std::string_view token, std::string_view remedy) {
    if (!take(token)) {
      fail_here(fmt::format("'{}'", token), remedy);
    }
  }

  std::optional<std::string_view> name() {
    if (ended() || !begins_name(text_[at_])) {
      return std::nullopt;
    }
    return run(continues_name);
  }

  /// Reads a whole number of at most max_distance. Returns nullopt if no digit is next.
  std::optional<std::int64_t> number() {
    if (ended() || !is_digit(text_[at_])) {
      return std::nullopt;
    }
    const std::size_t begin = at_;
    std::int64_t value = 0;
    for (const char digit : run(is_digit)) {
      value = value * 10 + (digit - '0');
      if (value > max_distance) {
        throw TextError{begin, fmt::format("number too large; the limit is {}", max_distance)};
      }
    }
    return value;
  }

  void expect_end(std::string_view remedy) {
    if (!ended()) {
      fail_here("the end", remedy);
    }
  }

  /// Fails with a message such as "expected a name, got ')'; ..."
  [[noreturn]] void fail_here(std::string_view expected, std::string_view remedy) const {
    const std::string actual = ended() ? "the end of the text" : in_quotes(letter_here());
    throw TextError{at_, fmt::format("expected {}, got {}; {}", expected, actual, remedy)};
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
    }
  }

  /// Returns all UTF-8 bytes of the current character.
  [[nodiscard]] std::string_view letter_here() const {
    std::size_t end = at_ + 1;
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xc0U) == 0x80U) {
      ++end;
    }
    return text_.substr(at_, end - at_);
  }

  template <class Belongs>
  std::string_view run(const Belongs& belongs) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && belongs(text_[at_])) {
      ++at_;
    }
    const std::string_view actual = text_.substr(begin, at_ - begin);
    skip_spaces();
    return actual;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace commfuse::text
