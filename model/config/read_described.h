// SPDX-License-Identifier: Apache-2.0
// Reads a described struct from a map of a YAML file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "model/config/yaml_reader.h"
#include "model/describe/describe.h"
#include "model/hardware/described.h"

namespace commfuse {

template <class S>
void read_described(YamlMap map, S& into, std::string_view without = {});

template <class E>
Range<std::int64_t> counts_of(const E& entry) {
  return {static_cast<std::int64_t>(entry.least), static_cast<std::int64_t>(entry.most)};
}

template <class E>
void read_value(YamlMap& map, const E& entry, Parameter<Duration>& into) {
  into = map.duration_parameter(entry.key);
}
template <class E>
void read_value(YamlMap& map, const E& entry, Parameter<BytesPerSecond>& into) {
  into = map.bandwidth_parameter(entry.key);
}
template <class E>
void read_value(YamlMap& map, const E& entry, Parameter<FlopsPerSecond>& into) {
  into = map.compute_rate_parameter(entry.key);
}
template <class E>
void read_value(YamlMap& map, const E& entry, Parameter<Bytes>& into) {
  into = map.size_parameter(entry.key);
}
template <class E>
void read_value(YamlMap& map, const E& entry, Parameter<double>& into) {
  into = map.number_parameter(entry.key, {entry.least, entry.most});
}
template <class E>
void read_value(YamlMap& map, const E& entry, Parameter<int>& into) {
  into = map.count_parameter(entry.key, counts_of(entry));
}
template <class E>
void read_value(YamlMap& map, const E& entry, std::string& into) {
  into = map.text(entry.key);
}
template <class E>
void read_value(YamlMap& map, const E& entry, int& into) {
  into = static_cast<int>(map.count(entry.key, counts_of(entry)));
}
template <class E>
void read_value(YamlMap& map, const E& entry, Bytes& into) {
  into = map.size(entry.key);
}

/// Reads every described member from the map, and records every mistake with its line and column. An omitted optional
/// stays empty; any other omitted member keeps its default, and counts as a mistake if it is required. `without` names
/// a key that this map cannot have.
template <class S>
void read_described(YamlMap map, S& into, std::string_view without) {
  each_entry<S>([&](const auto& entry) {
    using Member = typename std::remove_cvref_t<decltype(entry)>::Member;
    Member& member = into.*entry.member;
    if (entry.key == without) {
      return;
    }
    if constexpr (is_optional<Member>) {
      using Inside = typename Member::value_type;
      if constexpr (HasDescription<Inside>) {
        if (const std::optional<YamlMap> inside = map.optional_map(entry.key)) {
          read_described(*inside, member.emplace());
        }
      } else if (map.optional_value(entry.key)) {
        read_value(map, entry, member.emplace());
      }
    } else if constexpr (HasDescription<Member>) {
      if (const std::optional<YamlMap> inside = entry.required ? map.map(entry.key) : map.optional_map(entry.key)) {
        read_described(*inside, member);
      }
    } else if (entry.required || map.optional_value(entry.key)) {
      read_value(map, entry, member);
    }
  });
}

}  // namespace commfuse
