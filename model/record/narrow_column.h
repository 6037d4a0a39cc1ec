// SPDX-License-Identifier: Apache-2.0
// Compact columns for rows that are stored by the million.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace commfuse {

/// Column of whole numbers. The bytes per number follow from the range of values in its block of about a thousand
/// neighbours: none if all are equal, five if they are times of a layer.
class NarrowColumn {
 public:
  void push_back(std::int64_t value) {
    open_.push_back(value);
    if (open_.size() == block_size) {
      close_block();
    }
  }
  /// Moves all values of another column to the end of this column.
  void append(NarrowColumn&& other);
  [[nodiscard]] std::int64_t operator[](std::size_t index) const {
    const std::size_t block = index / block_size;
    return block < blocks_.size() ? blocks_[block].at(index % block_size) : open_[index % block_size];
  }
  /// Returns true if all values are equal.
  [[nodiscard]] bool is_constant() const;
  [[nodiscard]] std::size_t size() const { return blocks_.size() * block_size + open_.size(); }

 private:
  static constexpr std::size_t block_size = 1024;
  /// The least value of a block, and the difference of each value from it.
  struct Block {
    [[nodiscard]] std::int64_t at(std::size_t index) const;

    std::int64_t least = 0;
    std::size_t width = 0;  ///< bytes per value
    std::vector<std::uint8_t> rest{};
  };
  void close_block();

  std::vector<Block> blocks_;
  std::vector<std::int64_t> open_;  ///< values after the last full block
};

/// Column of strings. Each distinct string is stored once and gets a number, in the order of first use.
class WordColumn {
 public:
  void push_back(const std::string& word);
  /// Moves all strings of another column, which may number them differently, to the end of this column.
  void append(WordColumn&& other);
  [[nodiscard]] const std::string& operator[](std::size_t index) const {
    return words_[static_cast<std::size_t>(numbers_[index])];
  }
  [[nodiscard]] const NarrowColumn& numbers() const { return numbers_; }

 private:
  /// Returns the number of a string; adds the string if it is new.
  std::int64_t number_of(const std::string& word);

  std::deque<std::string> words_;  // a deque, because its elements keep their addresses
  std::unordered_map<std::string_view, std::int64_t> known_;
  NarrowColumn numbers_;
  std::int64_t last_ = -1;
};

}  // namespace commfuse
