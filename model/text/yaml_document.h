// SPDX-License-Identifier: Apache-2.0
// The tree of a YAML file with the place of everything in it; yaml_reader.h is what loaders use.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse {

/// 1-based.
struct YamlPlace {
  int line = 1;
  int column = 1;
};

enum class YamlKind : std::uint8_t { null, scalar, list, map };

struct YamlField {
  std::string key;
  YamlPlace place;
  int value = -1;  ///< Index of a node.
  bool asked = false;
};

struct YamlNode {
  YamlKind kind = YamlKind::null;
  YamlPlace place;
  std::string text;                ///< Of a scalar.
  std::vector<YamlField> fields;   ///< Of a map, in the file's order.
  std::vector<int> items;          ///< Of a list.
  std::vector<int> by_key;         ///< Of a map: its fields in the order of their keys, for find_field.
  std::vector<std::string> known;  ///< Keys a reader asked this map for.
  bool quoted = false;             ///< Of a scalar: its text begins one column later.
};

struct YamlMistake {
  YamlPlace place;
  std::string message;
  int map = -1;         ///< Of a missing key: the node that lacks it,
  std::string missing;  ///< and the key.
};

/// nodes[0] is the map at the top.
struct YamlDocument {
  std::string path;
  std::vector<YamlNode> nodes;
  std::vector<YamlMistake> mistakes;
};

/// Refuses, with ConfigError, what is no YAML or is a kind of YAML we do not read; duplicate keys become mistakes.
YamlDocument parse_yaml(const std::string& path, const std::string& text);

/// Gives `document` what `base` has and it has not, maps field by field, as if it stood at `place`. The fields
/// named in `own` are left out: "name" of the top, "topology.kind" of a map in it that both have.
void graft(YamlDocument& document, const YamlDocument& base, YamlPlace place, std::span<const std::string_view> own);

/// The field of a map with that key; null where there is none. What is found first takes as long as to sort the keys.
YamlField* find_field(YamlNode& map, std::string_view key);

/// `path:line:col: message`, control characters of the path escaped.
std::string at_place(const std::string& path, YamlPlace place, std::string_view message);

}  // namespace commfuse
