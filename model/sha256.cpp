// SPDX-License-Identifier: Apache-2.0
#include "model/sha256.h"

#include <fmt/ranges.h>
#include <sha2.h>
#include <sys/types.h>

#include <array>
#include <cstdint>

namespace commfuse {

std::string sha256_of(std::string_view bytes) {
  SHA2_CTX context;
  SHA256Init(&context);
  // NOLINTNEXTLINE(*-reinterpret-cast): reads the text as bytes
  SHA256Update(&context, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256Final(digest.data(), &context);
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace commfuse
