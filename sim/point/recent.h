// SPDX-License-Identifier: Apache-2.0
// The 16 values that were added last, by key. Consecutive points try the same few schedules in the same order, so
// find() starts at the entry after the one that it found previously.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

namespace commfuse {

template <class Key, class Value>
class Recent {
 public:
  /// Returns null if the key is not among the 16 that were added last. The pointer is valid until the next call.
  const Value* find(const Key& key) {
    for (std::size_t tried = 0; tried < size_; ++tried) {
      const std::pair<Key, Value>& entry = entries_[next_];
      next_ = next_ + 1 < size_ ? next_ + 1 : 0;
      if (entry.first == key) {
        return &entry.second;
      }
    }
    return nullptr;
  }

  /// Requires that find(key) returns null.
  void add(Key key, Value value) {
    const std::size_t place = size_ < entries_.size() ? size_++ : oldest_++ % entries_.size();
    entries_[place] = {std::move(key), std::move(value)};
  }

  void forget() { *this = {}; }

 private:
  std::array<std::pair<Key, Value>, 16> entries_{};
  std::size_t size_ = 0;
  std::size_t next_ = 0;
  std::size_t oldest_ = 0;
};

}  // namespace commfuse
