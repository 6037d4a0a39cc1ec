// SPDX-License-Identifier: Apache-2.0
#include "model/program_text/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/text/suggest.h"

namespace commfuse::text {

namespace {

std::string_view what_is(const Node& node) {
  switch (node.kind) {
    case Node::Kind::empty: return "nothing";
    case Node::Kind::scalar: return "a single value";
    case Node::Kind::list: return "a list";
    case Node::Kind::map: return "a map";
  }
  return "";
}

}  // namespace

Fields::Fields(const Node& node, std::span<const std::string_view> known, Mistakes& mistakes) : node_(node) {
  require_map(node);
  for (const Node& key : node.keys) {
    if (std::find(known.begin(), known.end(), key.scalar) == known.end()) {
      mistakes.add(
          {key.place, fmt::format("unknown key {}; {}", in_quotes(key.scalar), remedy_for(key.scalar, known, "keys"))});
    }
  }
}

const Node* Fields::find(std::string_view key) const {
  const auto key_place =
      std::find_if(node_.keys.begin(), node_.keys.end(), [&](const Node& node) { return node.scalar == key; });
  return key_place == node_.keys.end() ? nullptr
                                       : &node_.items[static_cast<std::size_t>(key_place - node_.keys.begin())];
}

const Node& Fields::at(std::string_view key, std::string_view example) const {
  const Node* node = find(key);
  if (node == nullptr) {
    throw Wrong{node_.place, fmt::format("key '{0}' is missing; add it, as in {0}: {1}", key, example)};
  }
  return *node;
}

void require_map(const Node& node) {
  if (node.kind != Node::Kind::map) {
    throw Wrong{node.place, fmt::format("expected a map, got {}; write key: value, or {{}} for none", what_is(node))};
  }
}

void require_list(const Node& node) {
  if (node.kind != Node::Kind::list) {
    throw Wrong{node.place,
                fmt::format("expected a list, got {}; write [a, b] or lines that begin with '-'", what_is(node))};
  }
}

const std::string& scalar_of(const Node& node) {
  if (node.kind != Node::Kind::scalar) {
    throw Wrong{node.place,
                fmt::format("expected a single value, got {}; write one word, number or text", what_is(node))};
  }
  return node.scalar;
}

std::int32_t integer_of(const Node& node, std::int64_t least, std::int64_t greatest) {
  const std::string& text = scalar_of(node);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  const bool padded = text.size() > first + 1 && text[first] == '0';  // other languages read 010 as 8
  if (error != std::errc{} || end != text.data() + text.size() || padded || value < least || value > greatest) {
    throw Wrong{node.place,
                fmt::format("{} is not a whole number from {} to {}; write one", in_quotes(text), least, greatest)};
  }
  return static_cast<std::int32_t>(value);
}

bool boolean_of(const Node& node) {
  const std::string& text = scalar_of(node);
  if (text != "true" && text != "false") {
    throw Wrong{node.place, fmt::format("{} is neither true nor false; write true or false", in_quotes(text))};
  }
  return text == "true";
}

bool flag_of(const Fields& fields, std::string_view key) {
  const Node* node = fields.find(key);
  return node != nullptr && boolean_of(*node);
}

DType dtype_of(const Node& node) {
  const std::optional<DType> dtype = dtype_named(scalar_of(node));
  if (!dtype) {
    std::vector<std::string_view> known;
    known.reserve(all_dtypes.size());
    for (const DType each : all_dtypes) {
      known.push_back(commfuse::name_of(each));
    }
    throw unknown_word(node, known, "dtypes");
  }
  return *dtype;
}

std::int32_t named(const Node& node, const Names& names, std::string_view what) {
  const std::string& name = scalar_of(node);
  const auto entry = names.find(name);
  if (entry == names.end()) {
    throw Wrong{node.place,
                fmt::format("{} is not one of the {}; {}", in_quotes(name), what, remedy_for_name(name, names, what))};
  }
  return entry->second;
}

const std::string& name_of(const Node& node) {
  const std::string& name = scalar_of(node);
  if (!is_name(name)) {
    throw Wrong{
        node.place,
        fmt::format(
            "{} is not a valid name; write at most 100 letters, digits, '_' and '.', beginning with a letter or '_'",
            in_quotes(name))};
  }
  return name;
}

Wrong unknown_word(const Node& node, std::span<const std::string_view> known, std::string_view what) {
  return {node.place, fmt::format("{} is not one of the {}; {}", in_quotes(node.scalar), what,
                                  remedy_for(node.scalar, known, what))};
}

}  // namespace commfuse::text
