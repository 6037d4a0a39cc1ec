// SPDX-License-Identifier: Apache-2.0
// Describes a panel to kernels.
#pragma once

#include <cstdint>

#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// Address, stride and dtype of a panel's elements.
struct View {
  Address at = 0;
  std::int64_t stride = 0;
  DType dtype = DType::fp32;
};

/// Converts an address for the runtime's functions.
inline void* pointer_to(Address at) { return reinterpret_cast<void*>(at); }  // NOLINT(*-no-int-to-ptr): device memory

/// Converts a pointer from the runtime.
inline Address address_of(const void* at) { return reinterpret_cast<Address>(at); }

inline View view_of(const Panel& panel) { return {panel.at, panel.stride, panel.dtype}; }

/// Returns true if every row begins at a multiple of 16 bytes.
inline bool is_aligned(const Panel& panel) {
  return panel.at % 16 == 0 && (panel.rows == 1 || panel.stride * bytes_of(panel.dtype) % 16 == 0);
}

/// Returns the number of groups of `size` that hold `count`.
constexpr std::int64_t groups_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

}  // namespace commfuse::validate
