// SPDX-License-Identifier: Apache-2.0
// Versions of libraries at run time.
#pragma once

#include <string>

namespace commfuse::validate {

/// Formats 13000 as "13.0".
std::string cuda_version_in_words(int version);
/// Returns "13.1.0"; empty if cuBLASLt is absent.
std::string cublaslt_version_in_words();
/// Returns "2.28.9"; empty if NCCL is absent.
std::string nccl_version_in_words();

}  // namespace commfuse::validate
