// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's functions, loaded at run time.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <string>

#include "validate/cuda/module/shared_library.h"

namespace commfuse::validate {

/// The major version is that of the header, whose structures it reads.
class CublasLtLibrary {
 public:
  CublasLtLibrary();
  /// Loads it at the first call.
  static const CublasLtLibrary& instance();

  /// Why cuBLASLt cannot be used, in one line; empty where it can.
  [[nodiscard]] const std::string& absence() const { return library_.absence(); }
  /// Throws std::runtime_error with absence() unless it is empty.
  void require_loaded() const;
  /// Throws std::runtime_error with the call and what cuBLASLt says, unless all is well.
  void require(cublasStatus_t status, const char* call) const;

  // As cublasLt.h declares them; null where the library is absent. Those with "_internal" are what the header's inline
  // functions call.
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtDestroy) destroy = nullptr;
  decltype(&::cublasLtGetVersion) get_version = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;
  decltype(&::cublasLtMatmulAlgoCheck) matmul_algo_check = nullptr;
  decltype(&::cublasLtMatmulAlgoConfigGetAttribute) matmul_algo_config_get_attribute = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) matmul_algo_get_heuristic = nullptr;
  decltype(&::cublasLtMatmulDescInit_internal) matmul_desc_init_internal = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) matmul_desc_set_attribute = nullptr;
  decltype(&::cublasLtMatrixLayoutInit_internal) matrix_layout_init_internal = nullptr;
  decltype(&::cublasLtMatrixLayoutSetAttribute) matrix_layout_set_attribute = nullptr;
  decltype(&::cublasLtMatmulPreferenceInit_internal) matmul_preference_init_internal = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) matmul_preference_set_attribute = nullptr;

 private:
  SharedLibrary library_;
  decltype(&::cublasLtGetStatusString) get_status_string_ = nullptr;
};

}  // namespace commfuse::validate
