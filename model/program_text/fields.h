// SPDX-License-Identifier: Apache-2.0
// Reads typed values from a YAML tree. Every function that reads a node throws Wrong, with place and remedy, if the
// node does not hold the expected value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/dtype.h"
#include "model/program/words.h"
#include "model/program_text/index_text.h"
#include "model/program_text/yaml_tree.h"

namespace commfuse::text {

/// The keys of one map.
class Fields {
 public:
  /// Throws unless `node` is a map; reports unknown keys to `mistakes`.
  Fields(const Node& node, std::span<const std::string_view> known, Mistakes& mistakes);

  [[nodiscard]] const Node& node() const { return node_; }
  /// Returns nullptr if the key is absent.
  [[nodiscard]] const Node* find(std::string_view key) const;
  /// Throws if the key is absent; `example` is a value that it may have.
  [[nodiscard]] const Node& at(std::string_view key, std::string_view example) const;

 private:
  const Node& node_;
};

void require_map(const Node& node);
void require_list(const Node& node);
const std::string& scalar_of(const Node& node);
/// Reads a whole number, which may be negative.
std::int32_t integer_of(const Node& node, std::int64_t least, std::int64_t greatest);
bool boolean_of(const Node& node);
/// Returns false if the key is absent.
bool flag_of(const Fields& fields, std::string_view key);
DType dtype_of(const Node& node);
/// Returns the index of a declared name.
std::int32_t named(const Node& node, const Names& names, std::string_view what);
/// Reads a name to declare.
const std::string& name_of(const Node& node);

/// Returns the message for an unknown word: "'gem' is not one of the op kinds; did you mean 'gemm'?"
Wrong unknown_word(const Node& node, std::span<const std::string_view> known, std::string_view what);

template <class Kind, std::size_t count>
Kind word_of(const Node& node, const words::Table<Kind, count>& table, std::string_view what) {
  const std::optional<Kind> kind = words::kind(table, scalar_of(node));
  if (!kind) {
    std::vector<std::string_view> known;
    for (const auto& [value, name] : table) {
      known.push_back(name);
    }
    throw unknown_word(node, known, what);
  }
  return *kind;
}

/// Returns the result of `read` on the scalar's text; a TextError becomes a Wrong at the same character.
template <class Read>
auto text_of(const Node& node, const Read& read) {
  const std::string& scalar = scalar_of(node);
  try {
    return read(scalar);
  } catch (const TextError& error) {
    throw Wrong{node.place_of(error.at), error.message};
  }
}

}  // namespace commfuse::text
