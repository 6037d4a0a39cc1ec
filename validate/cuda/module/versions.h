// SPDX-License-Identifier: Apache-2.0
// Which libraries are really there at run time.
#pragma once

#include <string>

namespace commfuse::validate {

/// "13.0", of 13000.
std::string cuda_version_in_words(int version);
/// "13.1.0"; empty where cuBLASLt is absent.
std::string cublaslt_version_in_words();
/// "2.28.9"; empty where NCCL is absent.
std::string nccl_version_in_words();

}  // namespace commfuse::validate
