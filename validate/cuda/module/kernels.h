// SPDX-License-Identifier: Apache-2.0
// What our kernels do, seen from the host. None of them waits for another virtual rank: they spin on time or on the
// host's gate only. All throw std::runtime_error when a call cannot be run or launched.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// Blocks that a grid has at most, along x and along y.
inline constexpr std::int64_t most_blocks_along_x = (std::int64_t{1} << 31) - 1;
inline constexpr std::int64_t most_blocks_along_y = 65535;

/// Every element over k in ascending order, each product and each sum rounded to fp32: the interpreter's bits.
void launch_exact_product(cudaStream_t stream, const ProductCall& call);

/// Element by element, and norms by row, in double where the reference is, rounded once.
void launch_function(cudaStream_t stream, const FunctionCall& call);
/// An add has no more terms.
inline constexpr std::size_t most_terms = 64;

/// In double, every sum in ascending order: what attention.cpp does.
void launch_exact_attention(cudaStream_t stream, const AttentionCall& call);

/// Rows of scores become rows of weights: softmax over what each row sees, zero beyond.
struct SoftmaxCall {
  const float* scores = nullptr;  ///< heads x queries x keys, `stride` from row to row
  void* weights = nullptr;        ///< The same, in `dtype`.
  DType dtype = DType::bf16;
  std::int64_t heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t stride = 0;
  std::int64_t first_position = 0;  ///< Of the queries among the keys.
  bool causal = false;
};
void launch_softmax(cudaStream_t stream, const SoftmaxCall& call);

/// Moves all parts by kernels of so many CTAs; a paced one ends no earlier than the pace allows. `clock`: eight bytes
/// of device memory of this stream, for the start of what takes several launches.
void launch_move(cudaStream_t stream, const MoveCall& call, int ctas, std::int64_t* clock);
/// Whether bytes go as they are.
bool moves_bytes(const MoveCall::Part& part, DType wire);

void launch_tags(cudaStream_t stream, const TagCall& call);
/// Adds the number of wrong elements to `count`, which is device memory.
void launch_count_of_wrong_tags(cudaStream_t stream, const TagCall& call, unsigned long long* count);

/// Values in [-1, 1), each a hash of the seed and where it stands.
void launch_randomize(cudaStream_t stream, const Panel& panel, std::uint64_t seed);

void launch_spin(cudaStream_t stream, Duration time);

/// What a gate and the host tell each other, in pinned memory that both see.
struct GateFlags {
  int open = 0;
  int opened_alone = 0;  ///< A gate waited for two seconds and went on.
};
/// `flags` as the device sees them.
void launch_gate(cudaStream_t stream, GateFlags* flags);

}  // namespace commfuse::validate
