// SPDX-License-Identifier: Apache-2.0
// Readers of what strangers write, as fuzzers call them: any bytes in, and back. A target that throws, aborts, hangs or
// fills the memory has found a mistake of ours.
#pragma once

#include <span>
#include <string_view>

namespace commfuse::fuzz {

struct Target {
  std::string_view name;
  void (*read)(std::string_view bytes);
};

/// All, in the order of their names.
std::span<const Target> targets();
/// Nothing where no target is called so.
const Target* find_target(std::string_view name);

}  // namespace commfuse::fuzz
