// SPDX-License-Identifier: Apache-2.0
// Rows as JSON, one per line: as an array, or as JSON Lines. `object` writes one row without a line break.
#pragma once

#include <span>
#include <string>

namespace commfuse::reports {

template <class Row, class Object>
std::string json_array(std::span<const Row> rows, const Object& object) {
  std::string text = "[";
  for (const Row& row : rows) {
    text += (&row == rows.data() ? "\n" : ",\n") + object(row);
  }
  return text + "\n]\n";
}

template <class Row, class Object>
std::string json_lines(std::span<const Row> rows, const Object& object) {
  std::string text;
  for (const Row& row : rows) {
    text += object(row) + "\n";
  }
  return text;
}

}  // namespace commfuse::reports
