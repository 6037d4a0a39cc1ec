// SPDX-License-Identifier: Apache-2.0
// Host functions that launch our kernels. No kernel waits for another virtual rank: kernels only spin until a time or
// until the host opens the gate. The functions throw std::runtime_error if a call cannot be run or launched.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// Largest number of blocks in a grid, along x and along y.
inline constexpr std::int64_t max_blocks_along_x = (std::int64_t{1} << 31) - 1;
inline constexpr std::int64_t max_blocks_along_y = 65535;

/// Sums every element over k in ascending order, each product and each sum rounded to fp32, with the bits of the
/// interpreter.
void launch_exact_product(cudaStream_t stream, const ProductCall& call);

/// Computes element by element, and norms by row, in the precision that SumOrder (driver.h) states, rounded once.
void launch_function(cudaStream_t stream, const FunctionCall& call);
/// Largest number of terms of an add.
inline constexpr std::size_t max_terms = 64;

/// Computes in double, every sum in ascending order, as attention.cpp does.
void launch_exact_attention(cudaStream_t stream, const AttentionCall& call);

/// Turns rows of scores into rows of weights: softmax over the keys that each row sees, zero for all other keys.
struct SoftmaxCall {
  const float* scores = nullptr;  ///< heads x queries x keys, `stride` elements from row to row
  void* weights = nullptr;        ///< Weights in the same layout, in `dtype`.
  DType dtype = DType::bf16;
  std::int64_t heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t stride = 0;
  std::int64_t first_position = 0;  ///< Position of the first query among the keys.
  bool causal = false;
};
void launch_softmax(cudaStream_t stream, const SoftmaxCall& call);

/// Moves all parts with kernels of `ctas` CTAs; a paced move ends no earlier than the pace allows. `clock` is eight
/// bytes of device memory of this stream, for the start of a paced move that takes several launches.
void launch_move(cudaStream_t stream, const MoveCall& call, int ctas, std::int64_t* clock);
/// Returns true if the bytes are copied unchanged, because neither end has to be converted to the wire's dtype.
bool keeps_bytes(const MoveCall::Part& part, DType wire);

void launch_tags(cudaStream_t stream, const TagCall& call);
/// Adds the number of wrong elements to `count`, which is device memory.
void launch_count_of_wrong_tags(cudaStream_t stream, const TagCall& call, unsigned long long* count);

/// Writes values in [-1, 1), each a hash of the seed and its position.
void launch_randomize(cudaStream_t stream, const Panel& panel, std::uint64_t seed);

void launch_spin(cudaStream_t stream, Duration time);

/// Messages between a gate and the host, in pinned memory that both access.
struct GateFlags {
  int open = 0;
  int opened_alone = 0;  ///< A gate waited for two seconds and then continued on its own.
};
/// `flags` is an address on the device.
void launch_gate(cudaStream_t stream, GateFlags* flags);

}  // namespace commfuse::validate
