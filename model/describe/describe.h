// SPDX-License-Identifier: Apache-2.0
// Describes a struct once, with one entry per member. Reading, writing, listing and documentation follow from the
// entries.
//
//   template <>
//   struct Described<SmallMessages> {
//     static constexpr std::tuple entries{entry("up_to", &SmallMessages::up_to, "Messages up to this size"), ...};
//   };
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>

namespace commfuse {

/// The description of S. Specialize it next to the struct; the order of the entries is the order of every listing.
template <class S>
struct Described;

template <class S>
concept HasDescription = requires {
  Described<std::remove_cvref_t<S>>::entries;
};

/// Describes one member. The member's type decides what a file holds for it, such as a number, a rate, or the map of
/// another described struct. A file may omit a std::optional or HeapOptional.
template <class S, class M>
struct Entry {
  using Struct = S;
  using Member = M;
  std::string_view key;
  M S::*member;
  std::string_view doc;
  bool required = true;
  double least = 0.0, most = 0.0;  ///< range of a number or count

  /// Returns a copy of this entry that files may omit. The member then keeps its default.
  [[nodiscard]] constexpr Entry optional() const { return {key, member, doc, false, least, most}; }
  [[nodiscard]] constexpr Entry within(double from, double to) const { return {key, member, doc, required, from, to}; }
};

template <class S, class M>
constexpr Entry<S, M> entry(std::string_view key, M S::*member, std::string_view doc = {}) {
  return {key, member, doc};
}

/// Inserts the entries of a base class.
template <class B>
struct BaseEntries {
  using Base = B;
};

template <class E>
inline constexpr bool is_base_entries = false;
template <class B>
inline constexpr bool is_base_entries<BaseEntries<B>> = true;

/// Calls `visit` with each entry of S, including those of its bases.
template <class S, class Visit>
constexpr void each_entry(const Visit& visit) {
  const auto visit_entry = [&](const auto& entry) {
    using E = std::remove_cvref_t<decltype(entry)>;
    if constexpr (is_base_entries<E>) {
      each_entry<typename E::Base>(visit);
    } else {
      visit(entry);
    }
  };
  std::apply([&](const auto&... entries) { (visit_entry(entries), ...); }, Described<S>::entries);
}

}  // namespace commfuse
