// SPDX-License-Identifier: Apache-2.0
// Properties of this build; `commfuse-sim version` prints them. The source is generated from cmake/build_info.cpp.in.
#pragma once

#include <string_view>

namespace commfuse {

/// Texts that are ready to print. `cuda`, `nccl` and `mpi` hold a version, "not found" or "off".
struct BuildInfo {
  std::string_view version;
  std::string_view git_revision;  // ends in "-dirty" when tracked files differ; "unknown" outside a clone
  std::string_view compiler;
  std::string_view build_type;
  std::string_view cuda;
  std::string_view nccl;
  std::string_view mpi;
};

const BuildInfo& build_info();

}  // namespace commfuse
