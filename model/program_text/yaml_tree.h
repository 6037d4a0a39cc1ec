// SPDX-License-Identifier: Apache-2.0
// Untrusted YAML text as a tree in which every node has its position, and the mistakes in it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace commfuse::text {

/// Line and column, counted from 1; columns are bytes.
struct Place {
  std::int32_t line = 1;
  std::int32_t column = 1;
  friend bool operator<(const Place& a, const Place& b) {
    return a.line != b.line ? a.line < b.line : a.column < b.column;
  }
};

struct Node {
  enum class Kind : std::uint8_t { empty, scalar, list, map };
  Kind kind = Kind::empty;
  Place place;              // place of its first character, a quote included
  std::int32_t quotes = 0;  // 1 if the scalar is quoted
  bool verbatim = false;    // the scalar's characters are in the file unchanged and in sequence
  std::string scalar;
  std::vector<Node> keys;   // for a map: scalars, all different
  std::vector<Node> items;  // for a list: its items; for a map: the values, one per key

  /// Returns the position of character `at` of the scalar, as precisely as possible.
  [[nodiscard]] Place place_of(std::size_t at) const {
    const std::int32_t moved = verbatim ? quotes + static_cast<std::int32_t>(at) : 0;
    return {place.line, place.column + moved};
  }
};

inline constexpr std::size_t max_bytes = std::size_t{1} << 20;

/// Reads one document of at most 1 MiB without anchors, aliases, tags, duplicate keys or control characters. Throws
/// ConfigError `path:line:col: sentence; remedy`.
Node read_yaml(const std::string& text, const std::string& path);

/// A mistake at a place, thrown by readers of values and caught by Mistakes::attempt.
struct Wrong {
  Place place;
  std::string message;  // "sentence; remedy"; empty if it was reported elsewhere
};

/// Collects mistakes, so that all mistakes in a file are shown together; reading stops at the twentieth.
class Mistakes {
 public:
  static constexpr std::size_t limit = 20;

  explicit Mistakes(std::string path) : path_(std::move(path)) {}

  void add(const Wrong& wrong);

  /// Runs `read`. If it throws Wrong, adds that mistake and returns false; otherwise returns true, even if `read` added
  /// mistakes itself.
  template <class Read>
  bool attempt(const Read& read) {
    try {
      read();
      return true;
    } catch (const Wrong& wrong) {
      add(wrong);
      return false;
    }
  }

  [[nodiscard]] bool empty() const { return wrongs_.empty(); }
  /// Throws ConfigError with one line per mistake, in order of place, if there are any.
  void report() const;

 private:
  std::string path_;
  std::vector<Wrong> wrongs_;
};

}  // namespace commfuse::text
