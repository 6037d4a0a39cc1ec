// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's functions, loaded at run time.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <string>

#include "validate/cuda/module/shared_library.h"

namespace commfuse::validate {

/// The library must have the major version of the header, because that version determines the structures.
class CublasLtLibrary {
 public:
  CublasLtLibrary();
  /// Loads the library on the first call.
  static const CublasLtLibrary& instance();

  /// Returns why cuBLASLt cannot be used, in one line; empty if it can.
  [[nodiscard]] const std::string& absence() const { return library_.absence(); }
  /// Throws std::runtime_error with absence() unless it is empty.
  void require_loaded() const;
  /// Throws std::runtime_error with the call and cuBLASLt's error if the call failed.
  void require(cublasStatus_t status, const char* call) const;

  // The types are those in cublasLt.h; pointers are null if the library is absent. Inline functions of the header call
  // the functions with "_internal".
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
