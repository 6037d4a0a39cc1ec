// SPDX-License-Identifier: Apache-2.0
#include "model/record/narrow_column.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

namespace commfuse {

namespace {

static_assert(std::endian::native == std::endian::little, "the low bytes of a number come first");

/// Space after a block, because values are read eight bytes at a time.
constexpr std::size_t padding = sizeof(std::uint64_t);

}  // namespace

std::int64_t NarrowColumn::Block::at(std::size_t index) const {
  if (width == 0) {
    return least;
  }
  std::uint64_t offset = 0;
  std::memcpy(&offset, rest.data() + index * width, sizeof(offset));
  offset &= ~std::uint64_t{0} >> (64 - 8 * width);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(least) + offset);
}

void NarrowColumn::append(NarrowColumn&& other) {
  NarrowColumn from = std::move(other);
  other = {};
  if (open_.empty()) {
    blocks_.insert(blocks_.end(), std::make_move_iterator(from.blocks_.begin()),
                   std::make_move_iterator(from.blocks_.end()));
    open_ = std::move(from.open_);
    return;
  }
  for (const Block& block : from.blocks_) {
    for (std::size_t index = 0; index < block_size; ++index) {
      push_back(block.at(index));
    }
  }
  for (const std::int64_t value : from.open_) {
    push_back(value);
  }
}

bool NarrowColumn::is_constant() const {
  const std::int64_t first = size() == 0 ? 0 : (*this)[0];
  return std::all_of(blocks_.begin(), blocks_.end(),
                     [&](const Block& block) { return block.width == 0 && block.least == first; }) &&
         std::all_of(open_.begin(), open_.end(), [&](std::int64_t value) { return value == first; });
}

void NarrowColumn::close_block() {
  const auto [least, greatest] = std::minmax_element(open_.begin(), open_.end());
  const auto offset_of = [least = static_cast<std::uint64_t>(*least)](std::int64_t value) {
    return static_cast<std::uint64_t>(value) - least;
  };
  Block block{.least = *least, .width = (static_cast<std::size_t>(std::bit_width(offset_of(*greatest))) + 7) / 8};
  if (block.width > 0) {
    block.rest.resize(open_.size() * block.width + padding);
    std::uint8_t* to = block.rest.data();
    for (const std::int64_t value : open_) {
      const std::uint64_t offset = offset_of(value);
      std::memcpy(to, &offset, sizeof(offset));
      to += block.width;
    }
  }
  blocks_.push_back(std::move(block));
  open_.clear();
}

std::int64_t WordColumn::number_of(const std::string& word) {
  const auto known = known_.find(word);
  if (known != known_.end()) {
    return known->second;
  }
  const auto number = static_cast<std::int64_t>(words_.size());
  known_.emplace(words_.emplace_back(word), number);
  return number;
}

void WordColumn::push_back(const std::string& word) {
  if (last_ < 0 || words_[static_cast<std::size_t>(last_)] != word) {
    last_ = number_of(word);
  }
  numbers_.push_back(last_);
}

void WordColumn::append(WordColumn&& other) {
  const WordColumn from = std::move(other);
  other = {};
  std::vector<std::int64_t> numbers;
  for (const std::string& word : from.words_) {
    numbers.push_back(number_of(word));
  }
  for (std::size_t index = 0; index < from.numbers_.size(); ++index) {
    last_ = numbers[static_cast<std::size_t>(from.numbers_[index])];
    numbers_.push_back(last_);
  }
}

}  // namespace commfuse
