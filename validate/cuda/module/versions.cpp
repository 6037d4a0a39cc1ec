// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/versions.h"

#include <fmt/format.h>

#include "validate/cuda/module/cublaslt_library.h"
#ifdef COMMFUSE_WITH_NCCL
#include "validate/cuda/module/nccl_library.h"
#endif
#include "validate/cuda/nccl_features.h"

namespace commfuse::validate {

std::string cuda_version_in_words(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// The version has two digits each for minor and patch: 120500 is 12.5.0, and 130100 is 13.1.0.
std::string cublaslt_version_in_words() {
  const CublasLtLibrary& library = CublasLtLibrary::instance();
  if (!library.absence().empty()) {
    return "";
  }
  const std::size_t version = library.get_version();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string nccl_version_in_words() {
#ifdef COMMFUSE_WITH_NCCL
  const NcclLibrary& library = NcclLibrary::instance();
  return library.absence().empty() ? nccl_in_words(library.version()) : "";
#else
  return "";
#endif
}

}  // namespace commfuse::validate
