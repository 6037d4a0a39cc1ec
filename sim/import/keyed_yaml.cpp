// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <utility>

#include "model/config/yaml_reader.h"
#include "sim/import/keyed_file.h"

namespace commfuse::import {

namespace {

Entry entry_of(std::string key, const YamlValue& value) {
  Entry entry{.key = std::move(key), .text = {}, .items = {}, .where = value.where()};
  if (value.kind() == YamlKind::scalar) {
    entry.kind = EntryKind::scalar;
    entry.text = value.text();
  } else if (value.kind() == YamlKind::list) {
    entry.kind = EntryKind::list;
    for (const YamlValue& item : value.items()) {
      if (item.kind() == YamlKind::scalar) {
        entry.items.push_back(item.text());
      }
    }
    entry.text = fmt::format("{}", fmt::join(entry.items, ", "));
  } else if (value.kind() == YamlKind::map) {
    entry.kind = EntryKind::map;
  }
  return entry;
}

/// Recursion is safe, because YamlFile bounds the nesting.
void add(const YamlValue& map, const std::string& prefix, KeyedFile& file) {
  for (const YamlValue::Field& field : map.fields()) {
    const std::string key = prefix + field.key;
    if (field.value.kind() == YamlKind::map && !field.value.fields().empty()) {
      add(field.value, key + ".", file);
    } else {
      file.put(entry_of(key, field.value));
    }
  }
}

}  // namespace

KeyedFile read_yaml(const std::string& path) {
  YamlFile yaml(path);
  yaml.finish();  // reports duplicate keys
  KeyedFile file(path);
  add(yaml.top(), "", file);
  return file;
}

}  // namespace commfuse::import
