// SPDX-License-Identifier: Apache-2.0
// A list that stores a single element in place, because most lists have only one. Large programs hold hundreds of
// thousands of such lists, and allocating memory for each of them takes longer than everything else.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace commfuse {

/// Implements the part of std::vector's interface that this project uses. T must be default-constructible.
template <class T>
class Few {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  Few() = default;
  Few(std::initializer_list<T> list) : Few(list.begin(), list.end()) {}
  explicit Few(const T& only) : single_(only), size_(1) {}
  // NOLINTNEXTLINE(google-explicit-constructor,hicpp-explicit-conversions): callers that have a vector may pass it
  Few(const std::vector<T>& list) : Few(list.data(), list.data() + list.size()) {}
  Few(const T* first, const T* last)
      : single_(last - first == 1 ? *first : T{}), size_(static_cast<std::size_t>(last - first)) {
    if (size_ > 1) {
      many_.assign(first, last);
    }
  }
  Few(const Few& other) : single_(other.single_), size_(other.size_) {
    if (size_ > 1) {
      many_ = other.many_;
    }
  }
  Few(Few&& other) noexcept : single_(std::move(other.single_)), many_(std::move(other.many_)), size_(other.size_) {
    other.clear();
  }
  Few& operator=(const Few& other) { return *this = Few(other); }
  Few& operator=(Few&& other) noexcept {
    single_ = std::move(other.single_);
    many_ = std::move(other.many_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  ~Few() = default;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] T* data() { return size_ > 1 ? many_.data() : &single_; }
  [[nodiscard]] const T* data() const { return size_ > 1 ? many_.data() : &single_; }
  [[nodiscard]] T* begin() { return data(); }
  [[nodiscard]] T* end() { return data() + size_; }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + size_; }
  [[nodiscard]] T& operator[](std::size_t i) { return data()[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return data()[i]; }
  [[nodiscard]] T& front() { return *begin(); }
  [[nodiscard]] const T& front() const { return *begin(); }
  [[nodiscard]] T& back() { return end()[-1]; }
  [[nodiscard]] const T& back() const { return end()[-1]; }

  void clear() {
    many_.clear();
    size_ = 0;
  }
  void reserve(std::size_t size) {
    if (size > 1) {
      many_.reserve(size);
    }
  }
  void push_back(const T& element) { add(element); }
  void push_back(T&& element) { add(std::move(element)); }
  /// Appends the range; the position is always the end.
  void insert(const T* /*end*/, const T* first, const T* last) {
    reserve(size_ + static_cast<std::size_t>(last - first));
    for (; first != last; ++first) {
      push_back(*first);
    }
  }

  friend bool operator==(const Few& a, const Few& b) {
    if (a.size_ != b.size_) {
      return false;
    }
    for (std::size_t i = 0; i < a.size_; ++i) {
      if (!(a[i] == b[i])) {
        return false;
      }
    }
    return true;
  }

 private:
  template <class Element>
  void add(Element&& element) {
    if (size_ == 0) {
      single_ = std::forward<Element>(element);
    } else {
      if (size_ == 1) {
        many_.push_back(single_);
      }
      many_.push_back(std::forward<Element>(element));
    }
    ++size_;
  }

  T single_{};           // the element when there is exactly one
  std::vector<T> many_;  // every element when there are several
  std::size_t size_ = 0;
};

}  // namespace commfuse
