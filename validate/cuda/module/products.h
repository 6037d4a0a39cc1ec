// SPDX-License-Identifier: Apache-2.0
// GEMMs by cuBLASLt: fast, and bit-identical every time.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "validate/cuda/driver.h"
#include "validate/cuda/module/cublaslt_library.h"

namespace commfuse::validate {

/// Several GEMMs of one shape in one call, for the heads of an attention. A step is the number of elements from an
/// operand of one GEMM to the same operand of the next.
struct ProductBatch {
  ProductCall call;
  int count = 1;
  std::int64_t step_a = 0;
  std::int64_t step_b = 0;
  std::int64_t step_out = 0;
  float scale = 1.0F;
};

/// Device memory that kernels of one stream use, one after another; two streams must not share it.
struct Workspace {
  void* at = nullptr;
  std::size_t bytes = 0;
};

/// Keeps the algorithm for every shape: the first in cuBLASLt's list, as in other programs, unless its reduction is not
/// allowed. An algorithm may sum k in several parts if it adds them in fp32 in a fixed order, so results are repeatable
/// and rounded once. Only one thread may use this object.
class LibraryProducts {
 public:
  /// The size that NVIDIA recommends for Hopper.
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20U;

  LibraryProducts() : library_(CublasLtLibrary::instance()) {}
  /// Throws std::runtime_error if cuBLASLt is absent, does not support this GEMM, or cannot run it with the algorithm
  /// for `algorithm_rows`.
  void run(cudaStream_t stream, const Workspace& workspace, const ProductBatch& batch);

 private:
  /// Everything on which the choice of an algorithm depends. cuBLASLt is column-major: its first operand is our second,
  /// transposed.
  struct Key {
    std::int64_t rows, columns, depth;
    std::int64_t stride_a, stride_b, stride_out;
    std::int64_t step_a, step_b, step_out, count;
    std::int64_t alignment_a, alignment_b, alignment_out;  // bytes, at most 256
    DType in, out;
    bool transpose_a, transpose_b, accumulate;
    int multiprocessors;
    std::int64_t algorithm_rows;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Plan {
    cublasLtMatmulDescOpaque_t what{};
    cublasLtMatrixLayoutOpaque_t a{}, b{}, out{};
    cublasLtMatmulAlgo_t algorithm{};
  };
  struct Close {
    void operator()(cublasLtHandle_t handle) const { static_cast<void>(CublasLtLibrary::instance().destroy(handle)); }
  };

  static Key key_of(const ProductBatch& batch);
  static std::string in_words(const Key& key);
  /// Returns the plan without the algorithm.
  [[nodiscard]] Plan described(const Key& key) const;
  [[nodiscard]] cublasLtMatmulAlgo_t chosen(const Key& key, Plan& plan) const;
  [[nodiscard]] Plan plan_of(const Key& key) const;
  /// Makes the handle at the first GEMM, because a driver also opens without cuBLASLt.
  void require_handle();

  const CublasLtLibrary& library_;
  std::unique_ptr<cublasLtContext, Close> handle_;
  std::map<Key, Plan> plans_;
};

}  // namespace commfuse::validate
