// SPDX-License-Identifier: Apache-2.0
// Columns of rows that are held by the million.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace commfuse {

/// Whole numbers, each in as many bytes as the spread of a thousand neighbours needs: none where they are equal, five
/// where they are times of a layer.
class NarrowColumn {
 public:
  void push_back(std::int64_t value) {
    open_.push_back(value);
    if (open_.size() == block_size) {
      close_block();
    }
  }
  [[nodiscard]] std::int64_t operator[](std::size_t place) const {
    const std::size_t block = place / block_size;
    return block < blocks_.size() ? blocks_[block].at(place % block_size) : open_[place % block_size];
  }
  /// Whether all values are equal.
  [[nodiscard]] bool is_constant() const;
  [[nodiscard]] std::size_t size() const { return blocks_.size() * block_size + open_.size(); }

 private:
  static constexpr std::size_t block_size = 1024;
  /// The least value of a block, and by how much each is larger.
  struct Block {
    [[nodiscard]] std::int64_t at(std::size_t place) const;

    std::int64_t least = 0;
    std::size_t width = 0;  ///< Bytes of each.
    std::vector<std::uint8_t> rest{};
  };
  void close_block();

  std::vector<Block> blocks_;
  std::vector<std::int64_t> open_;  ///< Behind the blocks.
};

/// Texts, each held once and told by its number, in the order in which they first come.
class WordColumn {
 public:
  void push_back(const std::string& word);
  [[nodiscard]] const std::string& operator[](std::size_t place) const {
    return words_[static_cast<std::size_t>(numbers_[place])];
  }
  [[nodiscard]] const NarrowColumn& numbers() const { return numbers_; }

 private:
  std::deque<std::string> words_;  // whose elements stay where they are
  std::unordered_map<std::string_view, std::int64_t> known_;
  NarrowColumn numbers_;
  std::int64_t last_ = -1;
};

}  // namespace commfuse
