// SPDX-License-Identifier: Apache-2.0
// Element types of tensors and of the wire.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace commfuse {

enum class DType : std::uint8_t { bf16, fp16, fp32, fp8 };

inline constexpr std::array all_dtypes{DType::bf16, DType::fp16, DType::fp32, DType::fp8};

/// Returns the bytes of one element.
constexpr std::int64_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
    case DType::fp16: return 2;
    case DType::fp32: return 4;
    case DType::fp8: return 1;
  }
  return 0;
}

/// Returns the name that configs, the command line and results use.
constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return "bf16";
    case DType::fp16: return "fp16";
    case DType::fp32: return "fp32";
    case DType::fp8: return "fp8";
  }
  return "";
}

constexpr std::optional<DType> dtype_named(std::string_view name) {
  for (const DType dtype : all_dtypes) {
    if (name_of(dtype) == name) {
      return dtype;
    }
  }
  return std::nullopt;
}

/// Returns the position in a table with one entry per dtype.
constexpr std::size_t index_of(DType dtype) { return static_cast<std::size_t>(dtype); }

}  // namespace commfuse
