// SPDX-License-Identifier: Apache-2.0
// Tables of words and their values.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "model/check.h"

namespace commfuse {

template <class T>
using Choice = std::pair<std::string_view, T>;

/// Returns the value of a word. Requires `word` to be in the table, as the words of checked settings are.
template <class Table>
auto chosen(const Table& table, std::string_view word) {
  const auto entry = std::find_if(table.begin(), table.end(), [&](const auto& choice) { return choice.first == word; });
  check(entry != table.end(), "a setting is a word of its table");
  return entry->second;
}

/// Returns the word for a value of the table.
template <class Table, class T>
std::string_view word_of(const Table& table, T value) {
  const auto entry =
      std::find_if(table.begin(), table.end(), [&](const auto& choice) { return choice.second == value; });
  check(entry != table.end(), "every value has its word");
  return entry->first;
}

/// Returns the words of the table, in its order.
template <const auto& table>
std::vector<std::string_view> words_of_table() {
  std::vector<std::string_view> words;
  for (const auto& [word, value] : table) {
    words.push_back(word);
  }
  return words;
}

}  // namespace commfuse
