// SPDX-License-Identifier: Apache-2.0
// Identifies a build: a program and its module must come from the same build.
#pragma once

#include <string>

#include "model/build_info.h"

namespace commfuse::validate {

/// Returns a string such as "0.1.0 (a1b2c3d4e5f6)".
inline std::string build_id_in_words() {
  const BuildInfo& build = build_info();
  return std::string(build.version) + " (" + std::string(build.git_revision) + ")";
}

}  // namespace commfuse::validate
