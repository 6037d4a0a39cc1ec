// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/views.h"

namespace commfuse::validate {

namespace {

cudaDataType_t cuda_type_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return CUDA_R_16BF;
    case DType::fp16: return CUDA_R_16F;
    case DType::fp32: return CUDA_R_32F;
    case DType::fp8: break;
  }
  throw std::runtime_error("GEMMs in fp8 are not supported");
}

/// Returns the largest power of two up to 256 that divides an address.
std::int64_t alignment_of(Address at) {
  constexpr Address largest = 256;
  const Address lowest_bit = at & (~at + 1);
  return static_cast<std::int64_t>(lowest_bit == 0 ? largest : std::min(lowest_bit, largest));
}

/// The sum over k may consist of parts that are added in fp32. Other schemes round parts to the dtype of the output.
constexpr std::uint32_t allowed_reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

/// Calls of cuBLASLt; all throw if they fail.
class Calls {
 public:
  explicit Calls(const CublasLtLibrary& library) : library_(library) {}

  template <class Value>
  void set(cublasLtMatmulDesc_t what, cublasLtMatmulDescAttributes_t attribute, Value value) const {
    library_.require(library_.matmul_desc_set_attribute(what, attribute, &value, sizeof value),
                     "cublasLtMatmulDescSetAttribute");
  }
  template <class Value>
  void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, Value value) const {
    library_.require(library_.matrix_layout_set_attribute(layout, attribute, &value, sizeof value),
                     "cublasLtMatrixLayoutSetAttribute");
  }
  template <class Value>
  void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, Value value) const {
    library_.require(library_.matmul_preference_set_attribute(preference, attribute, &value, sizeof value),
                     "cublasLtMatmulPreferenceSetAttribute");
  }

  /// Describes a row-major matrix to cuBLASLt as a column-major matrix with exchanged extents.
  void describe(cublasLtMatrixLayout_t layout, DType dtype, std::array<std::int64_t, 2> rows_and_columns,
                std::int64_t stride, std::int64_t count, std::int64_t step) const {
    library_.require(library_.matrix_layout_init_internal(layout, sizeof *layout, cuda_type_of(dtype),
                                                          static_cast<std::uint64_t>(rows_and_columns[1]),
                                                          static_cast<std::uint64_t>(rows_and_columns[0]), stride),
                     "cublasLtMatrixLayoutInit");
    if (count > 1) {
      set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(count));
      set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step);
    }
  }

  [[nodiscard]] bool has_allowed_reduction(const cublasLtMatmulAlgo_t& algorithm) const {
    std::uint32_t scheme = 0;
    std::size_t written = 0;
    library_.require(library_.matmul_algo_config_get_attribute(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                                                               &scheme, sizeof scheme, &written),
                     "cublasLtMatmulAlgoConfigGetAttribute");
    return (scheme & ~allowed_reductions) == 0;
  }

 private:
  const CublasLtLibrary& library_;
};

/// Returns a stride of at least one row, which cuBLASLt requires even for a single row.
std::int64_t stride_of(const Panel& panel) { return std::max(panel.stride, panel.columns); }

}  // namespace

void LibraryProducts::require_handle() {
  if (handle_ == nullptr) {
    library_.require_loaded();
    cublasLtHandle_t handle = nullptr;
    library_.require(library_.create(&handle), "cublasLtCreate");
    handle_.reset(handle);
  }
}

LibraryProducts::Key LibraryProducts::key_of(const ProductBatch& batch) {
  const ProductCall& call = batch.call;
  require(call.a.dtype == call.b.dtype, "both factors of a GEMM have the same dtype");
  const std::int64_t depth = call.transpose_a ? call.a.rows : call.a.columns;
  require(depth == (call.transpose_b ? call.b.columns : call.b.rows), "a GEMM contracts equal extents");
  return {.rows = call.out.rows,
          .columns = call.out.columns,
          .depth = depth,
          .stride_a = stride_of(call.a),
          .stride_b = stride_of(call.b),
          .stride_out = stride_of(call.out),
          .step_a = batch.step_a,
          .step_b = batch.step_b,
          .step_out = batch.step_out,
          .count = batch.count,
          .alignment_a = alignment_of(call.a.at),
          .alignment_b = alignment_of(call.b.at),
          .alignment_out = alignment_of(call.out.at),
          .in = call.a.dtype,
          .out = call.out.dtype,
          .transpose_a = call.transpose_a,
          .transpose_b = call.transpose_b,
          .accumulate = call.accumulate,
          .multiprocessors = call.multiprocessors,
          .algorithm_rows = call.algorithm_rows == 0 ? call.out.rows : call.algorithm_rows};
}

std::string LibraryProducts::in_words(const Key& key) {
  return fmt::format("a GEMM of {} x {} x {} in {}", key.rows, key.columns, key.depth, name_of(key.in));
}

LibraryProducts::Plan LibraryProducts::described(const Key& key) const {
  const Calls calls(library_);
  Plan plan;
  library_.require(library_.matmul_desc_init_internal(&plan.what, sizeof plan.what, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                   "cublasLtMatmulDescInit");
  calls.set(&plan.what, CUBLASLT_MATMUL_DESC_TRANSA, key.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  calls.set(&plan.what, CUBLASLT_MATMUL_DESC_TRANSB, key.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (key.multiprocessors > 0) {
    calls.set(&plan.what, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, static_cast<std::int32_t>(key.multiprocessors));
  }
  using Extents = std::array<std::int64_t, 2>;
  const Extents a = key.transpose_a ? Extents{key.depth, key.rows} : Extents{key.rows, key.depth};
  const Extents b = key.transpose_b ? Extents{key.columns, key.depth} : Extents{key.depth, key.columns};
  calls.describe(&plan.a, key.in, a, key.stride_a, key.count, key.step_a);
  calls.describe(&plan.b, key.in, b, key.stride_b, key.count, key.step_b);
  calls.describe(&plan.out, key.out, {key.rows, key.columns}, key.stride_out, key.count, key.step_out);
  return plan;
}

cublasLtMatmulAlgo_t LibraryProducts::chosen(const Key& key, Plan& plan) const {
  const Calls calls(library_);
  cublasLtMatmulPreferenceOpaque_t preference{};
  library_.require(library_.matmul_preference_init_internal(&preference, sizeof preference),
                   "cublasLtMatmulPreferenceInit");
  calls.set(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
  calls.set(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, allowed_reductions);
  calls.set(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(key.alignment_b));
  calls.set(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(key.alignment_a));
  calls.set(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(key.alignment_out));
  calls.set(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(key.alignment_out));
  std::array<cublasLtMatmulHeuristicResult_t, 16> results{};
  int count = 0;
  library_.require(
      library_.matmul_algo_get_heuristic(handle_.get(), &plan.what, &plan.b, &plan.a, &plan.out, &plan.out, &preference,
                                         static_cast<int>(results.size()), results.data(), &count),
      "cublasLtMatmulAlgoGetHeuristic");
  for (const cublasLtMatmulHeuristicResult_t& result : std::span(results).first(static_cast<std::size_t>(count))) {
    if (result.state == CUBLAS_STATUS_SUCCESS && calls.has_allowed_reduction(result.algo)) {
      return result.algo;
    }
  }
  throw std::runtime_error(fmt::format("cuBLASLt has no algorithm with repeatable bits for {}", in_words(key)));
}

LibraryProducts::Plan LibraryProducts::plan_of(const Key& key) const {
  Key algorithm_key = key;
  algorithm_key.rows = key.algorithm_rows;
  Plan model = described(algorithm_key);
  const cublasLtMatmulAlgo_t algorithm = chosen(algorithm_key, model);
  if (key.rows == key.algorithm_rows) {
    model.algorithm = algorithm;
    return model;
  }
  Plan plan = described(key);
  plan.algorithm = algorithm;
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status = library_.matmul_algo_check(handle_.get(), &plan.what, &plan.b, &plan.a, &plan.out,
                                                           &plan.out, &plan.algorithm, &result);
  if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > workspace_bytes) {
    throw std::runtime_error(
        fmt::format("cuBLASLt cannot run {} with its algorithm for {} rows", in_words(key), key.algorithm_rows));
  }
  return plan;
}

void LibraryProducts::run(cudaStream_t stream, const Workspace& workspace, const ProductBatch& batch) {
  const Key key = key_of(batch);
  if (key.rows == 0 || key.columns == 0) {
    return;
  }
  require_handle();
  auto entry = plans_.find(key);
  if (entry == plans_.end()) {
    entry = plans_.emplace(key, plan_of(key)).first;
  }
  Plan& plan = entry->second;
  const float alpha = batch.scale;
  const float beta = key.accumulate ? 1.0F : 0.0F;
  void* out = pointer_to(batch.call.out.at);
  library_.require(library_.matmul(handle_.get(), &plan.what, &alpha, pointer_to(batch.call.b.at), &plan.b,
                                   pointer_to(batch.call.a.at), &plan.a, &beta, out, &plan.out, out, &plan.out,
                                   &plan.algorithm, workspace.at, workspace.bytes, stream),
                   "cublasLtMatmul");
}

}  // namespace commfuse::validate
