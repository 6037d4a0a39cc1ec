// SPDX-License-Identifier: Apache-2.0
// Tree of a YAML file with the place of every node; loaders use yaml_reader.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse {

/// Line and column, both counted from 1.
struct YamlPlace {
  int line = 1;
  int column = 1;
};

enum class YamlKind : std::uint8_t { null, scalar, list, map };

struct YamlField {
  std::string key;
  YamlPlace place;
  int value = -1;      ///< index of a node
  bool asked = false;  ///< true if a reader requested the key
};

struct YamlNode {
  YamlKind kind = YamlKind::null;
  YamlPlace place;
  std::string text;                ///< text of a scalar
  std::vector<YamlField> fields;   ///< fields of a map, in the file's order
  std::vector<int> items;          ///< items of a list
  std::vector<int> by_key;         ///< indices of a map's fields in the order of their keys, for find_field
  std::vector<std::string> known;  ///< keys of this map that a reader requested
  bool quoted = false;             ///< for a scalar: its text begins one column later
  int level = 0;                   ///< 0: the file states it; n: bases[n - 1] of the document states it
};

struct YamlMistake {
  YamlPlace place;
  std::string message;
  int map = -1;         ///< for a missing key: index of the map that lacks it
  std::string missing;  ///< for a missing key: the key
};

/// nodes[0] is the map at the top.
struct YamlDocument {
  std::string path;
  std::vector<YamlNode> nodes;
  std::vector<YamlMistake> mistakes;
  std::vector<YamlDocument> bases;  ///< files that this file extends, nearest first; their own `bases` are empty
};

/// Returns the tree. Throws ConfigError for text that is not YAML or uses features that are not supported; duplicate
/// keys become mistakes.
YamlDocument parse_yaml(const std::string& path, const std::string& text);

/// Adds to `document` the fields that it lacks and `base` has, map by map, as if they were written at `place`. Fields
/// named in `own_keys` are not added: "name" at the top, "topology.kind" inside a map that both have.
void graft(YamlDocument& document, const YamlDocument& base, YamlPlace place,
           std::span<const std::string_view> own_keys);

/// Returns the field of a map with that key, or null if there is none. The first call sorts the keys, as does the first
/// after the map has grown.
YamlField* find_field(YamlNode& map, std::string_view key);

/// Returns `path:line:col: message` with control characters of the path escaped.
std::string at_place(const std::string& path, YamlPlace place, std::string_view message);

}  // namespace commfuse
