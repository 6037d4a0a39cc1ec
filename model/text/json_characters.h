// SPDX-License-Identifier: Apache-2.0
// Feeds nlohmann's JSON parser from a source that yields one character at a time, so that the whole text need not be in
// memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/text/files.h"

namespace commfuse {

/// Largest number of bytes between two calls of forget(). Without this limit, the parser would hold a number or text of
/// any length in memory.
inline constexpr std::size_t longest_json_piece = std::size_t{16} << 20U;

/// Iterator that the parser requires, over a source with at_end(), front() and pop(). A null source marks the end.
template <class Source>
class JsonCharacter {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit JsonCharacter(Source* from) : from_(from) {}
  char operator*() const { return from_->front(); }
  JsonCharacter& operator++() {
    from_->pop();
    return *this;
  }
  friend bool operator==(const JsonCharacter& a, const JsonCharacter& b) { return a.is_end() == b.is_end(); }
  friend bool operator!=(const JsonCharacter& a, const JsonCharacter& b) { return !(a == b); }

 private:
  [[nodiscard]] bool is_end() const { return from_ == nullptr || from_->at_end(); }
  Source* from_;
};

/// Tracks the line and column of the characters of a source.
class JsonPlaces {
 public:
  /// Advances past `front`, the character that the source pops.
  void pass(char front) {
    before_ = last_;
    last_ = next_;
    next_ = front == '\n' ? Spot{next_.line + 1, 1} : Spot{next_.line, next_.column + 1};
    ++passed_;
  }
  /// Returns the line of the source's front.
  [[nodiscard]] std::size_t line() const { return next_.line; }
  /// Returns "line:col", both from 1, of the byte at which the parser stopped: the last one, the one before it when the
  /// parser looked ahead, or the end.
  [[nodiscard]] std::string place(std::size_t byte) const {
    return text_of(byte > passed_ ? next_ : byte == passed_ ? last_ : before_);
  }
  /// Returns "line:col" of the last byte.
  [[nodiscard]] std::string last() const { return text_of(last_); }
  /// Returns the line of the last byte.
  [[nodiscard]] std::size_t last_line() const { return last_.line; }

 private:
  struct Spot {
    std::size_t line = 1;
    std::size_t column = 1;
  };
  static std::string text_of(const Spot& spot) { return std::to_string(spot.line) + ":" + std::to_string(spot.column); }

  Spot next_;    // place of the front
  Spot last_;    // place of the character before the front
  Spot before_;  // place of the character before `last_`
  std::size_t passed_ = 0;
};

/// Yields the characters of a source that fills a buffer, one at a time, and tracks their places. `Source` has
///   std::size_t fill(std::span<char>), which returns how many characters it has read, 0 at the end, and may throw;
///   void refuse_long_piece(const JsonPlaces&), which throws; called after about longest_json_piece bytes without
///   forget().
/// A byte order mark at the beginning is skipped.
template <class Source>
class BufferedCharacters {
 public:
  explicit BufferedCharacters(Source source) : source_(std::move(source)) {
    fill();
    at_ = count_ - without_byte_order_mark({buffer_.data(), count_}).size();
    if (at_ == count_) {
      fill();
    }
  }

  [[nodiscard]] bool at_end() const { return count_ == 0; }
  [[nodiscard]] char front() const { return buffer_[at_]; }
  void pop() {
    places_.pass(front());
    if (++at_ >= count_) {
      fill();
    }
  }
  /// Marks the end of a piece: a row, an event.
  void forget() { since_ = 0; }
  [[nodiscard]] const JsonPlaces& places() const { return places_; }
  /// Returns the first character of the buffer that is not blank, or 0.
  [[nodiscard]] char first_letter() const {
    const std::span<const char> rest = std::span(buffer_).subspan(at_, count_ - at_);
    const auto first = std::find_if_not(rest.begin(), rest.end(),
                                        [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; });
    return first == rest.end() ? '\0' : *first;
  }

 private:
  void fill() {
    count_ = source_.fill(buffer_);
    at_ = 0;
    since_ += count_;
    if (since_ > longest_json_piece + buffer_.size()) {
      source_.refuse_long_piece(places_);
    }
  }

  Source source_;
  std::vector<char> buffer_ = std::vector<char>(1 << 17);
  std::size_t at_ = 0;
  std::size_t count_ = 0;
  std::size_t since_ = 0;  // bytes read since the last piece
  JsonPlaces places_;
};

}  // namespace commfuse
