// SPDX-License-Identifier: Apache-2.0
// Parts of C++20 that the engine uses and that libc++ 14 lacks. The page's build includes this file before every
// source, and no other build uses it. Remove it when Debian's Emscripten has libc++ 16.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <compare>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 16000

namespace std {

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}

/// Reads decimal numbers only, as the standard does: no space and no plus sign. musl's strtod rounds correctly.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const char* next = first;
  if (next != last && *next == '-') {
    ++next;
  }
  const bool begins_as_a_number =
      next != last && ((*next >= '0' && *next <= '9') || *next == '.' || *next == 'i' || *next == 'n');
  if (!begins_as_a_number || (last - next > 1 && *next == '0' && (next[1] == 'x' || next[1] == 'X'))) {
    return {first, errc::invalid_argument};
  }
  const string text(first, last);
  char* end = nullptr;
  const double read = strtod(text.c_str(), &end);
  if (end == text.c_str()) {
    return {first, errc::invalid_argument};
  }
  if (read - read != 0 && *next != 'i' && *next != 'n') {
    return {first + (end - text.c_str()), errc::result_out_of_range};
  }
  value = read;
  return {first + (end - text.c_str()), errc{}};
}

inline strong_ordering operator<=>(const string& a, const string& b) { return a.compare(b) <=> 0; }

template <class T, size_t n>
constexpr auto operator<=>(const array<T, n>& a, const array<T, n>& b) -> decltype(a[0] <=> b[0]) {
  for (size_t i = 0; i < n; ++i) {
    if (const auto order = a[i] <=> b[i]; order != 0) {
      return order;
    }
  }
  return strong_ordering::equal;
}

namespace ranges {

template <class Range, class Test, class Member = identity>
constexpr auto find_if(Range&& range, Test test, Member member = {}) {
  return std::find_if(std::begin(range), std::end(range),
                      [&](auto&& value) { return std::invoke(test, std::invoke(member, value)); });
}

template <class Range, class Value, class Member = identity>
constexpr auto find(Range&& range, const Value& wanted, Member member = {}) {
  return ranges::find_if(
      range, [&](auto&& value) { return value == wanted; }, member);
}

template <class Range, class Test, class Member = identity>
constexpr bool any_of(Range&& range, Test test, Member member = {}) {
  return ranges::find_if(range, test, member) != std::end(range);
}

template <class Range, class Test, class Member = identity>
constexpr bool none_of(Range&& range, Test test, Member member = {}) {
  return !ranges::any_of(range, test, member);
}

template <class Range, class Test, class Member = identity>
constexpr bool all_of(Range&& range, Test test, Member member = {}) {
  return !ranges::any_of(
      range, [&](auto&& value) { return !std::invoke(test, value); }, member);
}

template <class Range, class Test, class Member = identity>
constexpr auto count_if(Range&& range, Test test, Member member = {}) {
  return std::count_if(std::begin(range), std::end(range),
                       [&](auto&& value) { return std::invoke(test, std::invoke(member, value)); });
}

template <class Range, class Out, class Test>
constexpr void copy_if(Range&& range, Out out, Test test) {
  std::copy_if(std::begin(range), std::end(range), out, [&](auto&& value) { return std::invoke(test, value); });
}

template <class Range, class Out, class Function>
constexpr void transform(Range&& range, Out out, Function function) {
  std::transform(std::begin(range), std::end(range), out,
                 [&](const auto& value) -> decltype(auto) { return std::invoke(function, value); });
}

template <class Range, class Other, class Same = std::equal_to<>>
constexpr bool equal(Range&& range, Other&& other, Same same = {}) {
  return std::equal(std::begin(range), std::end(range), std::begin(other), std::end(other), same);
}

template <class Less, class Member>
constexpr auto by_member(Less less, Member member) {
  return
      [=](const auto& a, const auto& b) { return std::invoke(less, std::invoke(member, a), std::invoke(member, b)); };
}

template <class Range, class Less = std::less<>, class Member = identity>
constexpr auto min_element(Range&& range, Less less = {}, Member member = {}) {
  return std::min_element(std::begin(range), std::end(range), by_member(less, member));
}

template <class Range, class Less = std::less<>, class Member = identity>
constexpr auto max_element(Range&& range, Less less = {}, Member member = {}) {
  return std::max_element(std::begin(range), std::end(range), by_member(less, member));
}

template <class Range, class Less = std::less<>, class Member = identity>
constexpr void sort(Range&& range, Less less = {}, Member member = {}) {
  std::sort(std::begin(range), std::end(range), by_member(less, member));
}

template <class Range, class Less = std::less<>, class Member = identity>
constexpr void stable_sort(Range&& range, Less less = {}, Member member = {}) {
  std::stable_sort(std::begin(range), std::end(range), by_member(less, member));
}

template <class Range, class Out>
constexpr void copy(Range&& range, Out out) {
  std::copy(std::begin(range), std::end(range), out);
}

template <class Range, class Value>
constexpr auto count(Range&& range, const Value& wanted) {
  return std::count(std::begin(range), std::end(range), wanted);
}

template <class Range, class Value>
constexpr void replace(Range&& range, const Value& old, const Value& wanted) {
  std::replace(std::begin(range), std::end(range), old, wanted);
}

}  // namespace ranges

}  // namespace std

#endif
