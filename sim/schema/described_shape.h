// SPDX-License-Identifier: Apache-2.0
// Takes the keys of a file from the description of a struct (model/describe/describe.h).
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/hardware/described.h"
#include "sim/schema/shape.h"

namespace commfuse::schema {

inline Shape shape_of(const Parameter<Duration>&, const auto&) { return sourced(duration()); }
inline Shape shape_of(const Parameter<BytesPerSecond>&, const auto&) { return sourced(bandwidth()); }
inline Shape shape_of(const Parameter<FlopsPerSecond>&, const auto&) { return sourced(compute_rate()); }
inline Shape shape_of(const Parameter<Bytes>&, const auto&) { return sourced(size()); }
inline Shape shape_of(const Parameter<double>&, const auto& entry) { return sourced(number(entry.least, entry.most)); }
inline Shape shape_of(const Parameter<int>&, const auto& entry) { return sourced(count(entry.least, entry.most)); }
inline Shape shape_of(const std::string&, const auto&) { return text(); }
inline Shape shape_of(int, const auto& entry) { return count(entry.least, entry.most); }
inline Shape shape_of(Bytes, const auto&) { return size(); }

/// Returns the keys of a described struct except `without`.
template <class S>
std::vector<ShapeKey> keys_of(std::string_view without = {}) {
  std::vector<ShapeKey> keys;
  each_entry<S>([&](const auto& entry) {
    using Member = typename std::remove_cvref_t<decltype(entry)>::Member;
    if (entry.key == without) {
      return;
    }
    ShapeKey key{std::string(entry.key), {}, std::string(entry.doc), entry.required && !is_optional<Member>};
    if constexpr (is_optional<Member>) {
      using Inside = typename Member::value_type;
      if constexpr (HasDescription<Inside>) {
        key.shape = map(keys_of<Inside>());
      } else {
        key.shape = shape_of(Inside{}, entry);
      }
    } else if constexpr (HasDescription<Member>) {
      key.shape = map(keys_of<Member>());
    } else {
      key.shape = shape_of(Member{}, entry);
    }
    keys.push_back(std::move(key));
  });
  return keys;
}

}  // namespace commfuse::schema
