// SPDX-License-Identifier: Apache-2.0
// The softmax between the two GEMMs of fast attention, in fp32. A block of threads handles one row of scores: it reads
// the scores once, keeps them in registers, and writes weights; every exp() is computed once. Rows that do not fit into
// registers are read twice.
#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/numbers.cuh"

namespace commfuse::validate {

namespace {

constexpr unsigned max_threads = 256;
constexpr unsigned warp = 32;
/// Largest number of eights of scores that one thread keeps: rows of up to 8,192 keys are read only once.
constexpr int max_kept_eights = 4;

struct Largest {
  static constexpr float identity = -INFINITY;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  static constexpr float identity = 0.0F;
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// Returns, in every thread, the combination of the values of all threads, always in the same order.
template <class Combine>
__device__ float over_block(float value, const Combine& combine) {
  __shared__ float warps[max_threads / warp];
  for (int half = warp / 2; half > 0; half /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, half));
  }
  __syncthreads();  // all threads have read the result of the previous call
  if (threadIdx.x % warp == 0) {
    warps[threadIdx.x / warp] = value;
  }
  __syncthreads();
  float combined = Combine::identity;
  for (unsigned i = 0; i < blockDim.x / warp; ++i) {
    combined = combine(combined, warps[i]);
  }
  return combined;
}

/// One row: its address, and the part that the query sees.
struct Row {
  View scores, weights;
  std::int64_t number = 0;
  std::uint32_t seen = 0;
  std::uint32_t room = 0;  // columns of weights, with zeros beyond the visible keys
  bool aligned = false;

  /// Returns the scores starting at `key`; -infinity beyond the visible keys.
  __device__ Eight scores_at(std::uint32_t key) const {
    if (key + Eight::size <= seen) {
      return load_eight<Known<DType::fp32>>(scores, number, key, Eight::size, aligned);
    }
    const int count = key < seen ? static_cast<int>(seen - key) : 0;
    Eight part = load_eight<Known<DType::fp32>>(scores, number, key, count, false);
#pragma unroll
    for (int i = 0; i < Eight::size; ++i) {
      part.value[i] = i < count ? part.value[i] : -INFINITY;
    }
    return part;
  }
  template <class Out>
  __device__ void put_weights(std::uint32_t key, const Eight& part) const {
    const int count = room - key < Eight::size ? static_cast<int>(room - key) : Eight::size;
    store_eight<Out>(weights, number, key, part, count, aligned);
  }
};

__device__ float largest_of(const Eight& part) {
  float largest = Largest::identity;
#pragma unroll
  for (const float value : part.value) {
    largest = fmaxf(largest, value);
  }
  return largest;
}

/// Largest score, and sum of the exponentials, of a row. A row that sees no key has neither, and its weights are zeros.
struct Scale {
  float largest, total;
};
__device__ Scale scale_of(const Row& row, float largest, float total) {
  return row.seen == 0 ? Scale{0.0F, 1.0F} : Scale{largest, total};
}

/// Replaces the part by exp(part - largest), and returns its sum.
__device__ float exponentials(Eight& part, float largest) {
  float sum = 0.0F;
#pragma unroll
  for (float& value : part.value) {
    value = __expf(value - largest);
    sum += value;
  }
  return sum;
}

__device__ void divide(Eight& part, float by) {
#pragma unroll
  for (float& value : part.value) {
    value /= by;
  }
}

/// Computes the weights of a row that fits into registers. In every step, each thread handles eight keys: thread t has
/// keys 8 t to 8 t + 7 of the step.
template <class Out, int kept>
__device__ void keep_row(const Row& row) {
  const std::uint32_t step = blockDim.x * Eight::size;
  const std::uint32_t first = threadIdx.x * Eight::size;
  Eight part[kept];
  float largest = Largest::identity;
#pragma unroll
  for (unsigned i = 0; i < kept; ++i) {
    part[i] = row.scores_at(first + i * step);
    largest = fmaxf(largest, largest_of(part[i]));
  }
  largest = scale_of(row, over_block(largest, Largest{}), 0.0F).largest;
  float total = 0.0F;
#pragma unroll
  for (unsigned i = 0; i < kept; ++i) {
    total += exponentials(part[i], largest);
  }
  total = scale_of(row, largest, over_block(total, Sum{})).total;
#pragma unroll
  for (unsigned i = 0; i < kept; ++i) {
    if (first + i * step < row.room) {
      divide(part[i], total);
      row.put_weights<Out>(first + i * step, part[i]);
    }
  }
}

/// Computes the weights of a wider row. Finds the largest score and the sum in one pass, which rescales the sum at
/// every larger score (Milakov and Gimelshein 2018).
template <class Out>
__device__ void read_row_twice(const Row& row) {
  const std::uint32_t step = blockDim.x * Eight::size;
  const std::uint32_t first = threadIdx.x * Eight::size;
  float own_largest = Largest::identity;
  float sum = 0.0F;
  for (std::uint32_t key = first; key < row.seen; key += step) {
    Eight part = row.scores_at(key);
    const float larger = fmaxf(own_largest, largest_of(part));
    sum = sum * (own_largest == larger ? 1.0F : __expf(own_largest - larger)) + exponentials(part, larger);
    own_largest = larger;
  }
  const float largest = over_block(own_largest, Largest{});
  const float total = over_block(sum == 0.0F ? 0.0F : sum * __expf(own_largest - largest), Sum{});
  const Scale scale = scale_of(row, largest, total);
  for (std::uint32_t key = first; key < row.room; key += step) {
    Eight part = row.scores_at(key);
    exponentials(part, scale.largest);
    divide(part, scale.total);
    row.put_weights<Out>(key, part);
  }
}

/// kept: number of eights that a thread keeps; 0 if a row does not fit into registers.
template <class Out, int kept>
__global__ void __launch_bounds__(max_threads) softmax(SoftmaxCall call, bool aligned) {
  const std::int64_t position = call.first_position + blockIdx.x;
  const std::int64_t seen = call.causal ? min(call.keys, position + 1) : call.keys;
  const Row row{.scores = {reinterpret_cast<Address>(call.scores), call.stride, DType::fp32},
                .weights = {reinterpret_cast<Address>(call.weights), call.stride, call.dtype},
                .number = blockIdx.y * call.queries + blockIdx.x,
                .seen = static_cast<std::uint32_t>(seen > 0 ? seen : 0),
                .room = static_cast<std::uint32_t>(call.stride),
                .aligned = aligned};
  if constexpr (kept > 0) {
    keep_row<Out, kept>(row);
  } else {
    read_row_twice<Out>(row);
  }
}

using Kernel = void (*)(SoftmaxCall, bool);

template <class Out>
Kernel kernel_for(std::int64_t eights) {
  switch (groups_of(eights, max_threads)) {
    case 1: return softmax<Out, 1>;
    case 2: return softmax<Out, 2>;
    case 3:
    case 4: return softmax<Out, max_kept_eights>;
    default: return softmax<Out, 0>;
  }
}

}  // namespace

void launch_softmax(cudaStream_t stream, const SoftmaxCall& call) {
  constexpr std::int64_t largest = std::int64_t{1} << 30;
  require(call.keys <= call.stride && call.stride <= largest, "a row of scores has at most 2^30 keys");
  require(call.queries <= max_blocks_along_x && call.heads <= max_blocks_along_y,
          "a softmax has fewer than 2^31 queries, and at most 65535 heads");
  if (call.queries == 0 || call.heads == 0) {
    return;
  }
  const dim3 grid(static_cast<unsigned>(call.queries), static_cast<unsigned>(call.heads));
  const std::int64_t eights = groups_of(call.stride, Eight::size);
  unsigned threads = warp;
  while (threads < max_threads && threads < eights) {
    threads *= 2;
  }
  const auto at = reinterpret_cast<Address>(call.scores) | reinterpret_cast<Address>(call.weights);
  const bool aligned = at % 16 == 0 && call.stride % Eight::size == 0;
  const Kernel kernel = with_known(call.dtype, [&](auto out) { return kernel_for<decltype(out)>(eights); });
  launch("softmax", kernel, {grid, threads, stream}, call, aligned);
  require(cudaGetLastError(), "a softmax kernel");
}

}  // namespace commfuse::validate
