// SPDX-License-Identifier: Apache-2.0
// An optional value on the heap: like std::optional, but an empty one is as small as a pointer.
#pragma once

#include <memory>

namespace commfuse {

/// Saves memory in sweeps with uncertainty, which hold thousands of machines whose rarely used parts are empty.
template <class T>
class HeapOptional {
 public:
  using value_type = T;

  HeapOptional() = default;
  HeapOptional(const HeapOptional& other) : value_(other ? std::make_unique<T>(*other) : nullptr) {}
  HeapOptional(HeapOptional&& other) noexcept = default;
  HeapOptional& operator=(const HeapOptional& other) { return *this = HeapOptional(other); }
  HeapOptional& operator=(HeapOptional&& other) noexcept = default;
  ~HeapOptional() = default;

  explicit operator bool() const { return value_ != nullptr; }
  [[nodiscard]] bool has_value() const { return value_ != nullptr; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }

  T& emplace() {
    value_ = std::make_unique<T>();
    return *value_;
  }
  void reset() { value_.reset(); }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace commfuse
