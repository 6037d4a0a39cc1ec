// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace commfuse {

/// Returns the SHA-256 of the bytes as 64 hexadecimal digits.
std::string sha256_of(std::string_view bytes);

}  // namespace commfuse
