// SPDX-License-Identifier: Apache-2.0
// Computes the attention of attention.cpp in double, with every sum in ascending order, so that only the last bit of
// exp() may differ. For checks only: one block of threads computes one head of one query row.
#include <algorithm>
#include <cmath>

#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/numbers.cuh"

namespace commfuse::validate {

namespace {

constexpr int threads = 128;

struct ExactAttention {
  View queries, keys, out;
  std::int64_t rows = 0, key_rows = 0, first_row = 0;
  std::int64_t qkv = 0, out_columns = 0, head = 0, batch = 0;
  bool causal = false, real = false;
};

/// One query row of one head, as in attention.cpp.
struct Query {
  std::int64_t row, q, k, v, out, first_key, keys;
};

__device__ Query query_of(const ExactAttention& args) {
  const std::int64_t heads = args.out_columns / args.head;
  const std::int64_t kv_heads = (args.qkv - args.out_columns) / 2 / args.head;
  const std::int64_t block = blockIdx.y / heads;
  const std::int64_t head = blockIdx.y % heads;
  const std::int64_t row = args.first_row + blockIdx.x;
  Query query{};
  query.row = blockIdx.x;
  query.q = block * args.qkv + head * args.head;
  query.k = block * args.qkv + args.out_columns + head / (heads / kv_heads) * args.head;
  query.v = query.k + kv_heads * args.head;
  query.out = block * args.out_columns + head * args.head;
  query.first_key = row % args.batch;
  const std::int64_t end = args.causal ? min(args.key_rows, row + 1) : args.key_rows;
  query.keys = end > query.first_key ? groups_of(end - query.first_key, args.batch) : 0;
  return query;
}

/// Computes the products q k of the visible rows, scaled if a softmax follows.
template <class In>
__device__ void fill_scores(const ExactAttention& args, const Query& query, double* scores) {
  for (std::int64_t j = threadIdx.x; j < query.keys; j += threads) {
    const std::int64_t key = query.first_key + j * args.batch;
    double score = 0.0;
    for (std::int64_t i = 0; i < args.head; ++i) {
      score = __dadd_rn(score, __dmul_rn(static_cast<double>(load<In>(args.queries, query.row, query.q + i)),
                                         static_cast<double>(load<In>(args.keys, key, query.k + i))));
    }
    scores[j] = args.real ? score / sqrt(static_cast<double>(args.head)) : score;
  }
  __syncthreads();
}

/// Turns scores into the weights of the softmax. The maximum is that of std::max_element, which ignores NaN except in
/// the first element. The sum includes all values, in ascending order.
__device__ void fill_weights(const Query& query, double* weights) {
  __shared__ double shared;
  if (threadIdx.x == 0) {
    shared = weights[0];
    for (std::int64_t j = 1; j < query.keys; ++j) {
      shared = shared < weights[j] ? weights[j] : shared;
    }
  }
  __syncthreads();
  const double largest = shared;
  for (std::int64_t j = threadIdx.x; j < query.keys; j += threads) {
    weights[j] = exp(weights[j] - largest);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    double total = 0.0;
    for (std::int64_t j = 0; j < query.keys; ++j) {
      total = __dadd_rn(total, weights[j]);
    }
    shared = total;
  }
  __syncthreads();
  for (std::int64_t j = threadIdx.x; j < query.keys; j += threads) {
    weights[j] /= shared;
  }
  __syncthreads();
}

/// In, Out: dtypes of queries and keys, and of the output.
template <class In, class Out>
__global__ void __launch_bounds__(threads) exact_attention(const __grid_constant__ ExactAttention args) {
  double* const weights = dynamic_shared<double>();
  const Query query = query_of(args);
  fill_scores<In>(args, query, weights);
  if (args.real && query.keys > 0) {
    fill_weights(query, weights);
  }
  for (std::int64_t i = threadIdx.x; i < args.head; i += threads) {
    double sum = 0.0;
    for (std::int64_t j = 0; j < query.keys; ++j) {
      const std::int64_t key = query.first_key + j * args.batch;
      sum = __dadd_rn(sum, __dmul_rn(weights[j], static_cast<double>(load<In>(args.keys, key, query.v + i))));
    }
    store<Out>(args.out, query.row, query.out + i, static_cast<float>(args.real ? sum : remainder(sum, 5.0)));
  }
}

using Kernel = void (*)(ExactAttention);

Kernel kernel_of(DType queries, DType keys, DType out_dtype) {
  if (queries != keys) {
    return exact_attention<AnyDtype, AnyDtype>;
  }
  return with_known(keys, [&](auto in) {
    return with_known(out_dtype, [](auto out) -> Kernel { return exact_attention<decltype(in), decltype(out)>; });
  });
}

/// Returns the largest number of keys whose weights fit into shared memory.
std::int64_t max_keys() {
  int device = 0;
  int bytes = 0;
  require(cudaGetDevice(&device), "cudaGetDevice");
  require(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  constexpr int reserved = 1024;  // bytes that the kernel and the system need
  return (bytes - reserved) / static_cast<std::int64_t>(sizeof(double));
}

}  // namespace

void launch_exact_attention(cudaStream_t stream, const AttentionCall& call) {
  const AttentionLayout& layout = call.layout;
  const std::int64_t keys = groups_of(call.keys.rows, layout.batch);
  require(keys <= max_keys(),
          "exact attention supports only as many keys as fit in shared memory; use a shorter sequence, or "
          "SumOrder::blocked with real functions");
  const auto shared_bytes =
      static_cast<int>(std::max<std::int64_t>(keys, 1) * static_cast<std::int64_t>(sizeof(double)));
  for (const AttentionCall::Part& part : call.parts) {
    const std::int64_t blocks = part.queries.columns / layout.qkv;
    const std::int64_t heads = blocks * (layout.out / layout.head);
    const ExactAttention args{
        view_of(part.queries), view_of(call.keys), view_of(part.out), part.queries.rows,
        call.keys.rows,        part.first_row,     layout.qkv,        layout.out,
        layout.head,           layout.batch,       layout.causal,     call.functions == Functions::real};
    if (part.queries.rows == 0) {
      continue;
    }
    require(part.queries.rows <= max_blocks_along_x && heads <= max_blocks_along_y,
            "exact attention supports fewer than 2^31 queries and at most 65,535 heads");
    const dim3 grid(static_cast<unsigned>(part.queries.rows), static_cast<unsigned>(heads));
    const Kernel kernel = kernel_of(part.queries.dtype, call.keys.dtype, part.out.dtype);
    require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
            "cudaFuncSetAttribute");
    launch("exact_attention", kernel, {grid, threads, stream, static_cast<std::size_t>(shared_bytes)}, args);
    require(cudaGetLastError(), "an attention kernel");
  }
}

}  // namespace commfuse::validate
