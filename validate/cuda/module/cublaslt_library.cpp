// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/cublaslt_library.h"

#include <fmt/format.h>

#include <stdexcept>

namespace commfuse::validate {

CublasLtLibrary::CublasLtLibrary()
    : library_({.product = "cuBLASLt",
                .sonames = {fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR)},
                .remedy = fmt::format("install cuBLAS of CUDA {}", CUBLAS_VER_MAJOR)}) {
  library_.require(create, "cublasLtCreate");
  library_.require(destroy, "cublasLtDestroy");
  library_.require(get_version, "cublasLtGetVersion");
  library_.require(matmul, "cublasLtMatmul");
  library_.require(matmul_algo_check, "cublasLtMatmulAlgoCheck");
  library_.require(matmul_algo_config_get_attribute, "cublasLtMatmulAlgoConfigGetAttribute");
  library_.require(matmul_algo_get_heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library_.require(matmul_desc_init_internal, "cublasLtMatmulDescInit_internal");
  library_.require(matmul_desc_set_attribute, "cublasLtMatmulDescSetAttribute");
  library_.require(matrix_layout_init_internal, "cublasLtMatrixLayoutInit_internal");
  library_.require(matrix_layout_set_attribute, "cublasLtMatrixLayoutSetAttribute");
  library_.require(matmul_preference_init_internal, "cublasLtMatmulPreferenceInit_internal");
  library_.require(matmul_preference_set_attribute, "cublasLtMatmulPreferenceSetAttribute");
  library_.require(get_status_string_, "cublasLtGetStatusString");
}

const CublasLtLibrary& CublasLtLibrary::instance() {
  static const CublasLtLibrary library;
  return library;
}

void CublasLtLibrary::require_loaded() const {
  if (!absence().empty()) {
    throw std::runtime_error(absence());
  }
}

void CublasLtLibrary::require(cublasStatus_t status, const char* call) const {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(fmt::format("{} failed: {}", call, get_status_string_(status)));
  }
}

}  // namespace commfuse::validate
