// SPDX-License-Identifier: Apache-2.0
#include "model/sha256.h"

#include <sha2.h>
#include <sys/types.h>

#include <array>
#include <cstdint>

namespace commfuse {

std::string sha256_of(std::string_view bytes) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> digest{};
  // NOLINTNEXTLINE(*-reinterpret-cast): its bytes
  SHA256Data(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), digest.data());
  return {digest.data()};
}

}  // namespace commfuse
