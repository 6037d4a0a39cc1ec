// SPDX-License-Identifier: Apache-2.0
#include "model/text/yaml_document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "model/config_error.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr std::size_t deepest_nesting = 32;

YamlPlace place_of(const YAML::Mark& mark) { return {std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1}; }

/// Builds the tree from yaml-cpp's events, because the library's own nodes lose the places of keys, hide aliases, and
/// silently keep the first of two identical keys.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(YamlDocument& document) : document_(document) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(YamlKind::null, mark, "?", anchor, ""); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { refuse_alias(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    add(YamlKind::scalar, mark, tag, anchor, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(add(YamlKind::list, mark, tag, anchor, ""), mark);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(add(YamlKind::map, mark, tag, anchor, ""), mark);
  }
  void OnMapEnd() override { open_.pop_back(); }
  void OnAnchor(const YAML::Mark& mark, const std::string& /*name*/) override { refuse_alias(mark); }

 private:
  struct Open {
    int node;
    std::optional<YamlField> waiting;           // in a map: a key whose value comes next
    std::unordered_map<std::string, int> seen;  // in a map: its keys and their lines
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string_view message) const {
    throw ConfigError(at_place(document_.path, place_of(mark), message));
  }
  [[noreturn]] void refuse_alias(const YAML::Mark& mark) const {
    refuse(mark, "anchors and aliases are not supported; write the value in full");
  }

  int add(YamlKind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
          const std::string& text) {
    if (anchor != 0) {
      refuse_alias(mark);
    }
    if (tag != "?" && tag != "!" && !tag.empty()) {
      refuse(mark, "tags such as !!int are not supported; remove the tag");
    }
    if (!open_.empty() && is_key()) {
      begin_field(kind, mark, text);
      return -1;
    }
    YamlNode parsed;
    parsed.kind = kind;
    parsed.place = place_of(mark);
    parsed.text = text;
    parsed.quoted = tag == "!";
    document_.nodes.push_back(std::move(parsed));
    const int node = static_cast<int>(document_.nodes.size()) - 1;
    attach(node);
    return node;
  }

  bool is_key() const {
    const Open& top = open_.back();
    return document_.nodes[static_cast<std::size_t>(top.node)].kind == YamlKind::map && !top.waiting;
  }

  void begin_field(YamlKind kind, const YAML::Mark& mark, const std::string& key) {
    if (kind != YamlKind::scalar) {
      refuse(mark, "a key is not plain text; write 'key: value'");
    }
    if (key == "<<") {
      refuse(mark, "merge keys are not supported; write the fields in full");
    }
    YamlField field;
    field.key = key;
    field.place = place_of(mark);
    open_.back().waiting = std::move(field);
  }

  void attach(int node) {
    if (open_.empty()) {
      return;
    }
    Open& top = open_.back();
    YamlNode& parent = document_.nodes[static_cast<std::size_t>(top.node)];
    if (parent.kind == YamlKind::list) {
      parent.items.push_back(node);
      return;
    }
    YamlField field = *std::move(top.waiting);
    top.waiting.reset();
    field.value = node;
    YamlNode& value = document_.nodes[static_cast<std::size_t>(node)];
    if (value.kind == YamlKind::null) {
      value.place = field.place;  // yaml-cpp reports a missing value at the place where the next node begins.
    }
    const auto [same, is_new] = top.seen.emplace(field.key, field.place.line);
    if (!is_new) {
      document_.mistakes.push_back({field.place, fmt::format("key {} was already given on line {}; keep one of them",
                                                             in_quotes(field.key), same->second)});
      return;
    }
    parent.fields.push_back(std::move(field));
  }

  void open(int node, const YAML::Mark& mark) {
    if (open_.size() >= deepest_nesting) {
      refuse(mark, fmt::format("nested deeper than {} levels; flatten the file", deepest_nesting));
    }
    open_.push_back({node, std::nullopt, {}});
  }

  YamlDocument& document_;
  std::vector<Open> open_;
};

}  // namespace

std::string at_place(const std::string& path, YamlPlace place, std::string_view message) {
  return fmt::format("{}:{}:{}: {}", with_escapes(path), place.line, place.column, message);
}

YamlDocument parse_yaml(const std::string& path, const std::string& text) {
  YamlDocument document;
  document.path = path;
  // A short `key: 1` line is one node; reserving space avoids moving a hundred thousand nodes.
  document.nodes.reserve(text.size() / 8);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    TreeBuilder builder(document);
    if (!parser.HandleNextDocument(builder) || document.nodes.empty()) {
      throw ConfigError(at_place(path, {}, "the file is empty; write 'key: value' lines"));
    }
    const std::size_t first_document = document.nodes.size();
    if (parser.HandleNextDocument(builder)) {
      const YamlPlace place =
          first_document < document.nodes.size() ? document.nodes[first_document].place : YamlPlace{};
      throw ConfigError(at_place(path, place, "a second document begins; keep one document per file"));
    }
  } catch (const YAML::Exception& error) {
    throw ConfigError(at_place(path, place_of(error.mark),
                               fmt::format("not valid YAML ({}); correct the mistake there or before it", error.msg)));
  }
  if (document.nodes[0].kind != YamlKind::map) {
    throw ConfigError(at_place(path, document.nodes[0].place, "the top level is not a map; write 'key: value' lines"));
  }
  return document;
}

namespace {

/// Copies a node of another document, and all nodes below it, to `place`; returns its index.
int transplanted(YamlDocument& document, const YamlDocument& base, int from, YamlPlace place) {
  YamlNode copy = base.nodes[static_cast<std::size_t>(from)];
  copy.place = place;
  ++copy.level;
  copy.known.clear();
  copy.by_key.clear();
  for (YamlField& field : copy.fields) {
    field = {field.key, place, transplanted(document, base, field.value, place)};
  }
  for (int& item : copy.items) {
    item = transplanted(document, base, item, place);
  }
  document.nodes.push_back(std::move(copy));
  return static_cast<int>(document.nodes.size()) - 1;
}

/// Returns the names below `key`, without the key: "kind" for "topology.kind" and the key "topology".
std::vector<std::string_view> below(std::span<const std::string_view> names, std::string_view key) {
  std::vector<std::string_view> rest;
  for (const std::string_view name : names) {
    if (name.size() > key.size() && name.starts_with(key) && name[key.size()] == '.') {
      rest.push_back(name.substr(key.size() + 1));
    }
  }
  return rest;
}

void graft_map(YamlDocument& document, int into, const YamlDocument& base, int from, YamlPlace place,
               std::span<const std::string_view> own_keys) {
  std::vector<YamlField> taken;  // inserted at the end, because find_field() sorts again whenever the map has grown
  for (const YamlField& field : base.nodes[static_cast<std::size_t>(from)].fields) {
    if (std::find(own_keys.begin(), own_keys.end(), field.key) != own_keys.end()) {
      continue;
    }
    const YamlField* const present = find_field(document.nodes[static_cast<std::size_t>(into)], field.key);
    if (present == nullptr) {
      taken.push_back({field.key, place, transplanted(document, base, field.value, place)});
      const std::vector<std::string>& known = document.nodes[static_cast<std::size_t>(into)].known;
      taken.back().asked = std::find(known.begin(), known.end(), field.key) != known.end();
    } else if (const int value = present->value;
               document.nodes[static_cast<std::size_t>(value)].kind == YamlKind::map &&
               base.nodes[static_cast<std::size_t>(field.value)].kind == YamlKind::map) {
      graft_map(document, value, base, field.value, place, below(own_keys, field.key));
    }
  }
  std::vector<YamlField>& fields = document.nodes[static_cast<std::size_t>(into)].fields;
  fields.insert(fields.end(), taken.begin(), taken.end());
}

}  // namespace

YamlField* find_field(YamlNode& map, std::string_view key) {
  const auto key_of = [&](int field) -> const std::string& { return map.fields[static_cast<std::size_t>(field)].key; };
  std::vector<int>& order = map.by_key;
  if (order.size() != map.fields.size()) {
    order.resize(map.fields.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return key_of(a) < key_of(b); });
  }
  const auto place = std::lower_bound(order.begin(), order.end(), key,
                                      [&](int field, std::string_view wanted) { return key_of(field) < wanted; });
  return place == order.end() || key_of(*place) != key ? nullptr : &map.fields[static_cast<std::size_t>(*place)];
}

void graft(YamlDocument& document, const YamlDocument& base, YamlPlace place,
           std::span<const std::string_view> own_keys) {
  graft_map(document, 0, base, 0, place, own_keys);
  document.bases = base.bases;
  document.bases.insert(document.bases.begin(), base)->bases.clear();
}

}  // namespace commfuse
