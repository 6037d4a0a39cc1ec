// SPDX-License-Identifier: Apache-2.0
// Fuzzing targets: readers of untrusted files. A target accepts any bytes; if it throws, aborts, hangs or fills the
// memory, it has found a bug.
#pragma once

#include <span>
#include <string_view>

namespace commfuse::fuzz {

struct Target {
  std::string_view name;
  void (*read)(std::string_view bytes);
};

/// Returns all targets, in the order of their names.
std::span<const Target> targets();
/// Returns null if there is no target of that name.
const Target* find_target(std::string_view name);

}  // namespace commfuse::fuzz
