// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library (NVML). Its functions are looked up by name, because not every toolkit has its header and
// most machines have no driver.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace commfuse::validate {

/// The library, open during the object's lifetime.
class ManagementLibrary {
 public:
  /// The type is declared as in nvml.h.
  using Device = struct Opaque*;
  /// Returns the library's function with this name, or null.
  using FindFunction = std::function<void*(const char* name)>;
  static constexpr int success = 0;

  /// Opens the library that the loader finds.
  ManagementLibrary();
  /// Uses another library, which a test provides.
  explicit ManagementLibrary(FindFunction find) : find_(std::move(find)) {}
  ManagementLibrary(const ManagementLibrary&) = delete;
  ManagementLibrary& operator=(const ManagementLibrary&) = delete;
  ~ManagementLibrary();

  [[nodiscard]] bool is_here() const { return find_ != nullptr; }

  /// Calls a function and returns its error code; nothing if the library has no such function.
  template <class... Arguments>
  [[nodiscard]] std::optional<int> error_of(const char* name, Arguments... arguments) const {
    // NOLINTNEXTLINE(*-reinterpret-cast): what dlsym() is for
    auto* const function = find_ == nullptr ? nullptr : reinterpret_cast<int (*)(Arguments...)>(find_(name));
    return function == nullptr ? std::nullopt : std::optional(function(arguments...));
  }
  template <class... Arguments>
  [[nodiscard]] bool call(const char* name, Arguments... arguments) const {
    return error_of(name, arguments...) == success;
  }
  /// Returns the value that a function writes through its last argument; nothing if the function fails.
  template <class Value, class... Arguments>
  [[nodiscard]] std::optional<Value> query(const char* name, Arguments... arguments) const {
    Value value{};
    return call(name, arguments..., &value) ? std::optional(value) : std::nullopt;
  }
  /// Returns the text that a function writes; empty if it fails.
  template <class... Arguments>
  [[nodiscard]] std::string text(const char* name, Arguments... arguments) const {
    constexpr std::size_t text_size = 96;
    std::array<char, text_size> text{};
    const bool is_known = call(name, arguments..., text.data(), static_cast<unsigned>(text.size()));
    text.back() = '\0';
    return is_known ? text.data() : "";
  }

 private:
  void* handle_ = nullptr;
  FindFunction find_;
};

}  // namespace commfuse::validate
