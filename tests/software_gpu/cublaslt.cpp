// SPDX-License-Identifier: Apache-2.0
// The double of cuBLASLt: libcublasLt.so.13. Its algorithms sum over k in a different order from the reference,
// and its preferred algorithm depends on the shape; within one algorithm the bits of a row do not depend on other rows.
// It refuses whatever cuBLASLt refuses, and ends the process if two kernels use one workspace simultaneously.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "tests/software_gpu/gpu.h"
#include "tests/software_gpu/misuse.h"

struct cublasLtContext {
  bool alive = true;
};

namespace {

using software_gpu::misuse;

constexpr std::uint64_t magic = 0x5347505542l;

// Contents of the opaque structures.

struct Description {
  std::uint64_t magic = 0;
  std::int32_t transpose_a = CUBLAS_OP_N;
  std::int32_t transpose_b = CUBLAS_OP_N;
  std::int32_t multiprocessors = 0;
};
struct Layout {
  std::uint64_t magic = 0;
  std::int64_t rows = 0, columns = 0, stride = 0;
  std::int64_t step = 0;
  std::int32_t count = 1;
  std::int32_t type = CUDA_R_32F;
};
struct Preference {
  std::uint64_t magic = 0;
  std::uint64_t workspace = 0;
  std::uint32_t reductions = ~0U;
  std::uint32_t alignments[4] = {256, 256, 256, 256};
};
struct Algorithm {
  std::uint64_t magic = 0;
  std::uint32_t parts = 1;      // parts of k, each summed separately
  std::uint32_t lanes = 1;      // interleaved sums within a part
  std::uint32_t alignment = 1;  // alignment of every operand, in bytes
  std::uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_NONE;
};

template <class Content, class Opaque>
Content content_of(const Opaque* opaque) {
  static_assert(sizeof(Content) <= sizeof(Opaque));
  Content content;
  std::memcpy(static_cast<void*>(&content), opaque, sizeof content);
  if (content.magic != magic) {
    misuse("cuBLASLt is given a structure that was not initialized");
  }
  return content;
}
template <class Content, class Opaque>
void put(Opaque* opaque, Content content) {
  content.magic = magic;
  std::memcpy(opaque, &content, sizeof content);
}
template <class Value>
bool take(Value& to, const void* from, std::size_t size) {
  if (size != sizeof to) {
    return false;
  }
  std::memcpy(&to, from, size);
  return true;
}

std::int64_t bytes_of(std::int32_t type) { return type == CUDA_R_32F ? 4 : 2; }

/// A GEMM from its description and layouts; `fits` is true if description and layouts match.
struct Gemm {
  Description description;
  Layout a, b, d;
  std::int64_t rows = 0, columns = 0, depth = 0;  // extents of op(a) op(b), which is column-major
  bool fits = false;
};

Gemm gemm_of(cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
             cublasLtMatrixLayout_t d) {
  Gemm gemm{.description = content_of<Description>(description),
            .a = content_of<Layout>(a),
            .b = content_of<Layout>(b),
            .d = content_of<Layout>(d)};
  const bool ta = gemm.description.transpose_a == CUBLAS_OP_T;
  const bool tb = gemm.description.transpose_b == CUBLAS_OP_T;
  gemm.rows = ta ? gemm.a.columns : gemm.a.rows;
  gemm.depth = ta ? gemm.a.rows : gemm.a.columns;
  gemm.columns = tb ? gemm.b.rows : gemm.b.columns;
  const auto is_valid = [](const Layout& layout) {
    return layout.rows > 0 && layout.columns > 0 && layout.stride >= layout.rows;
  };
  gemm.fits = is_valid(gemm.a) && is_valid(gemm.b) && is_valid(gemm.d) &&
              gemm.depth == (tb ? gemm.b.columns : gemm.b.rows) && gemm.d.rows == gemm.rows &&
              gemm.d.columns == gemm.columns && gemm.a.type == gemm.b.type && gemm.a.count == gemm.b.count &&
              gemm.a.count == gemm.d.count && gemm.a.count > 0;
  return gemm;
}

std::size_t workspace_of(const Gemm& gemm, const Algorithm& algorithm) {
  return algorithm.parts == 1
             ? 0
             : static_cast<std::size_t>(gemm.rows * gemm.columns * gemm.a.count) * algorithm.parts * sizeof(float);
}

/// True if the strides and steps of all operands are aligned as the algorithm needs.
bool strides_fit(const Gemm& gemm, const Algorithm& algorithm) {
  const auto fits = [&](const Layout& layout) {
    return layout.stride * bytes_of(layout.type) % algorithm.alignment == 0 &&
           (layout.count == 1 || layout.step * bytes_of(layout.type) % algorithm.alignment == 0);
  };
  return fits(gemm.a) && fits(gemm.b) && fits(gemm.d);
}

float value_at(const void* from, std::int64_t at, std::int32_t type) {
  switch (type) {
    case CUDA_R_16BF: return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[at]);
    case CUDA_R_16F: return __half2float(static_cast<const __half*>(from)[at]);
    default: return static_cast<const float*>(from)[at];
  }
}

void store_at(void* to, std::int64_t at, std::int32_t type, float value) {
  switch (type) {
    case CUDA_R_16BF: static_cast<__nv_bfloat16*>(to)[at] = __float2bfloat16_rn(value); return;
    case CUDA_R_16F: static_cast<__half*>(to)[at] = __float2half_rn(value); return;
    default: static_cast<float*>(to)[at] = value;
  }
}

/// Returns the rows of op(a), or the columns of op(b), one after the other: `count` vectors of `depth` elements.
std::vector<float> vectors_over_k(const void* from, const Layout& layout, std::int64_t first, std::int64_t count,
                                  std::int64_t depth, bool along_columns) {
  std::vector<float> vectors(static_cast<std::size_t>(count * depth));
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::int64_t at = along_columns ? i * layout.stride + k : k * layout.stride + i;
      vectors[static_cast<std::size_t>(i * depth + k)] = value_at(from, first + at, layout.type);
    }
  }
  return vectors;
}

/// Returns the sum over k in the order of the algorithm: parts, and interleaved lanes within them.
float dot(const float* a, const float* b, std::int64_t depth, const Algorithm& algorithm) {
  float total = 0.0F;
  const auto parts = static_cast<std::int64_t>(algorithm.parts);
  for (std::int64_t part = 0; part < parts; ++part) {
    float lanes[8] = {};
    const std::int64_t end = depth * (part + 1) / parts;
    for (std::int64_t k = depth * part / parts; k < end; ++k) {
      lanes[static_cast<std::uint64_t>(k) % algorithm.lanes] += a[k] * b[k];
    }
    float sum = lanes[0];
    for (std::uint32_t lane = 1; lane < algorithm.lanes; ++lane) {
      sum += lanes[lane];
    }
    total = part == 0 ? sum : total + sum;
  }
  return total;
}

struct Operands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  float alpha = 1.0F, beta = 0.0F;
};

void multiply(const Gemm& gemm, const Algorithm& algorithm, const Operands& operands) {
  for (std::int64_t i = 0; i < gemm.a.count; ++i) {
    const std::vector<float> a = vectors_over_k(operands.a, gemm.a, i * gemm.a.step, gemm.rows, gemm.depth,
                                                gemm.description.transpose_a == CUBLAS_OP_T);
    const std::vector<float> b = vectors_over_k(operands.b, gemm.b, i * gemm.b.step, gemm.columns, gemm.depth,
                                                gemm.description.transpose_b == CUBLAS_OP_N);
    for (std::int64_t column = 0; column < gemm.columns; ++column) {
      software_gpu::beat();
      for (std::int64_t row = 0; row < gemm.rows; ++row) {
        const std::int64_t at = i * gemm.d.step + column * gemm.d.stride + row;
        const float sum =
            operands.alpha * dot(a.data() + row * gemm.depth, b.data() + column * gemm.depth, gemm.depth, algorithm);
        // C is not read if beta is zero, because it may hold NaN.
        store_at(operands.d, at, gemm.d.type,
                 operands.beta == 0.0F ? sum : sum + operands.beta * value_at(operands.d, at, gemm.d.type));
      }
    }
  }
}

/// True if an operand lies in memory of the device.
bool is_on_device(const void* at, const Layout& layout, int device) {
  const std::int64_t elements = (layout.count - 1) * layout.step + (layout.columns - 1) * layout.stride + layout.rows;
  return software_gpu::is_device_memory(at, static_cast<std::size_t>(elements * bytes_of(layout.type)), device);
}

/// Marks a workspace that a kernel is using.
class InUse {
 public:
  explicit InUse(void* at) : at_(at) {
    const std::lock_guard lock(mutex());
    if (at_ != nullptr && !workspaces().insert(at_).second) {
      misuse("two kernels of cuBLASLt use one workspace at the same time");
    }
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() {
    const std::lock_guard lock(mutex());
    workspaces().erase(at_);
  }

 private:
  static std::mutex& mutex() {
    static auto& workspaces_mutex = *new std::mutex;
    return workspaces_mutex;
  }
  static std::set<void*>& workspaces() {
    static auto& set = *new std::set<void*>;
    return set;
  }
  void* at_;
};

unsigned ctas_of(const Gemm& gemm) {
  constexpr std::int64_t tile = 128;
  const std::int64_t tiles = (gemm.rows + tile - 1) / tile * ((gemm.columns + tile - 1) / tile) * gemm.a.count;
  const std::int64_t largest = gemm.description.multiprocessors > 0 ? gemm.description.multiprocessors
                                                                    : software_gpu::settings().multiprocessors;
  return static_cast<unsigned>(std::min(tiles, largest));
}

bool is_aligned(const void* at, std::uint32_t to) { return reinterpret_cast<std::uintptr_t>(at) % to == 0; }

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = software_gpu::kept(new cublasLtContext);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (handle == nullptr || !handle->alive) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  handle->alive = false;
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t cublasLtGetVersion() { return 130100; }

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown";
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t description, std::size_t size,
                                               cublasComputeType_t compute, cudaDataType_t scale) {
  if (size != sizeof *description || compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  put(description, Description{});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t size) {
  auto content = content_of<Description>(description);
  bool taken = false;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: taken = take(content.transpose_a, value, size); break;
    case CUBLASLT_MATMUL_DESC_TRANSB: taken = take(content.transpose_b, value, size); break;
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET: taken = take(content.multiprocessors, value, size); break;
  }
  put(description, content);
  return taken ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, std::size_t size, cudaDataType_t type,
                                                 std::uint64_t rows, std::uint64_t columns, std::int64_t stride) {
  if (size != sizeof *layout) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  put(layout, Layout{.rows = static_cast<std::int64_t>(rows),
                     .columns = static_cast<std::int64_t>(columns),
                     .stride = stride,
                     .type = type});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t size) {
  auto content = content_of<Layout>(layout);
  bool taken = false;
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: taken = take(content.count, value, size); break;
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: taken = take(content.step, value, size); break;
  }
  put(layout, content);
  return taken ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, std::size_t size) {
  if (size != sizeof *preference) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  put(preference, Preference{});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t size) {
  auto content = content_of<Preference>(preference);
  bool taken = false;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: taken = take(content.workspace, value, size); break;
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: taken = take(content.reductions, value, size); break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: taken = take(content.alignments[0], value, size); break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: taken = take(content.alignments[1], value, size); break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: taken = take(content.alignments[2], value, size); break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: taken = take(content.alignments[3], value, size); break;
  }
  put(preference, content);
  return taken ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t /*c*/, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int max_results,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  *count = 0;
  if (handle == nullptr || !handle->alive) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  const Gemm gemm = gemm_of(description, a, b, d);
  const auto limits = content_of<Preference>(preference);
  if (!gemm.fits) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const std::uint32_t alignment = *std::ranges::min_element(limits.alignments);
  const auto offer = [&](const Algorithm& algorithm, cublasStatus_t state) {
    const bool allowed =
        algorithm.reduction == CUBLASLT_REDUCTION_SCHEME_NONE || (limits.reductions & algorithm.reduction) != 0;
    if (*count == max_results || !allowed || algorithm.alignment > alignment || !strides_fit(gemm, algorithm) ||
        workspace_of(gemm, algorithm) > limits.workspace) {
      return;
    }
    cublasLtMatmulHeuristicResult_t& result = results[(*count)++];
    result = {
        .algo = {}, .workspaceSize = workspace_of(gemm, algorithm), .state = state, .wavesCount = 1.0F, .reserved = {}};
    put(&result.algo, algorithm);
  };
  offer({.lanes = 8}, CUBLAS_STATUS_NOT_SUPPORTED);  // callers must check the state
  offer({.parts = 2, .lanes = 4, .reduction = CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE}, CUBLAS_STATUS_SUCCESS);
  constexpr std::int64_t few_columns = 200;
  if (gemm.columns < few_columns) {
    offer({.parts = 2, .lanes = 4, .alignment = 16, .reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE},
          CUBLAS_STATUS_SUCCESS);
  }
  offer({.lanes = 8, .alignment = 16}, CUBLAS_STATUS_SUCCESS);
  offer({.lanes = 2}, CUBLAS_STATUS_SUCCESS);
  return *count == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t /*c*/,
                                       cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (handle == nullptr || !handle->alive) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  const Gemm gemm = gemm_of(description, a, b, d);
  const auto chosen = content_of<Algorithm>(algorithm);
  if (!gemm.fits) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *result = {.algo = *algorithm,
             .workspaceSize = workspace_of(gemm, chosen),
             .state = strides_fit(gemm, chosen) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED,
             .wavesCount = 1.0F,
             .reserved = {}};
  return result->state;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                                    std::size_t size, std::size_t* written) {
  const auto content = content_of<Algorithm>(algorithm);
  if (attribute != CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME || size != sizeof content.reduction) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(value, &content.reduction, size);
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t /*c_layout*/, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream) {
  if (handle == nullptr || !handle->alive) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  const Gemm gemm = gemm_of(description, a_layout, b_layout, d_layout);
  const auto chosen = content_of<Algorithm>(algorithm);
  const int device = software_gpu::device_of(stream);
  if (!gemm.fits || c != d || device < 0 || workspace_of(gemm, chosen) > workspace_bytes ||
      !is_aligned(a, chosen.alignment) || !is_aligned(b, chosen.alignment) || !is_aligned(d, chosen.alignment) ||
      !strides_fit(gemm, chosen)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Operands operands{.a = a, .b = b, .d = d};
  std::memcpy(&operands.alpha, alpha, sizeof operands.alpha);
  std::memcpy(&operands.beta, beta, sizeof operands.beta);
  const double flops =
      2.0 * static_cast<double>(gemm.rows * gemm.columns) * static_cast<double>(gemm.depth * gemm.a.count);
  const cudaError_t status =
      software_gpu::enqueue(stream, {.kind = software_gpu::WorkKind::kernel,
                                     .name = "gemm",
                                     .ctas = ctas_of(gemm),
                                     .run =
                                         [=] {
                                           if (!is_on_device(a, gemm.a, device) || !is_on_device(b, gemm.b, device) ||
                                               !is_on_device(d, gemm.d, device)) {
                                             return cudaErrorIllegalAddress;
                                           }
                                           const InUse use(workspace);
                                           if (software_gpu::computes(flops)) {
                                             multiply(gemm, chosen, operands);
                                           } else {
                                             software_gpu::take_time(flops);
                                           }
                                           return cudaSuccess;
                                         },
                                     .flops = flops});
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
