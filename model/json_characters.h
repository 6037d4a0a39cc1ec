// SPDX-License-Identifier: Apache-2.0
// JSON from something that gives one character after the other, for nlohmann's parser: the whole text need not be in
// memory.
#pragma once

#include <cstddef>
#include <iterator>

namespace commfuse {

/// The most that may come between two values that are looked at and forgotten: one number or word of more is kept by
/// the parser until it ends.
inline constexpr std::size_t longest_json_piece = std::size_t{16} << 20U;

/// The iterator that the parser asks for, over a source with at_end(), front() and pop(). Null: the end.
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

}  // namespace commfuse
