// SPDX-License-Identifier: Apache-2.0
// Kernels at the limits of their inputs: sizes beyond 32 bits are refused when the kernel is launched, and a row of a
// softmax that sees no key has weights of zero.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "validate/cuda/module/handles.h"
#include "validate/cuda/module/kernels.h"

namespace commfuse::validate {
namespace {

constexpr std::int64_t two_to_31 = std::int64_t{1} << 31U;
constexpr std::int64_t two_to_32 = std::int64_t{1} << 32U;

/// Returns why the launch was refused. Nothing is launched: the addresses belong to no memory.
std::string refusal_of(const std::function<void(cudaStream_t)>& launch) {
  const OwnedStream stream = new_stream(0);
  try {
    launch(stream.get());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

std::string refusal_of_move(const Panel& from, const Panel& to) {
  return refusal_of([&](cudaStream_t stream) {
    launch_move(stream, {.parts = {{from, to}}, .wire = DType::fp32}, 1, nullptr);
  });
}

constexpr const char* too_large = "a kernel works on fewer than 2^31 - 8 rows and columns; use smaller matrices";

// Truncated to 32 bits, 2^32 rows would become 0 rows, and nothing would be moved.
TEST(Limits, CoverMovesThatChangeTheirDtype) {
  const auto panel = [](std::int64_t rows, std::int64_t columns, DType dtype) {
    return Panel{4096, rows, columns, columns + 8, dtype};
  };
  for (const std::int64_t extent : {two_to_31, two_to_32}) {
    EXPECT_EQ(refusal_of_move(panel(extent, 2, DType::fp32), panel(extent, 2, DType::bf16)), too_large);
    EXPECT_EQ(refusal_of_move(panel(2, extent, DType::fp32), panel(2, extent, DType::bf16)), too_large);
  }
}

TEST(Limits, CoverMovesOfBytes) {
  constexpr const char* too_many = "a move has fewer than 2^31 rows and fewer than 2^31 units per row";
  const auto panel = [](std::int64_t rows, std::int64_t columns) {
    return Panel{4096, rows, columns, columns + 1, DType::fp32};
  };
  EXPECT_EQ(refusal_of_move(panel(two_to_32, 2), panel(two_to_32, 2)), too_many);
  EXPECT_EQ(refusal_of_move(panel(2, two_to_32), panel(2, two_to_32)), too_many);
  EXPECT_EQ(refusal_of([](cudaStream_t stream) { launch_move(stream, {}, 1 << 16U, nullptr); }),
            "a move has 1 to 65535 CTAs");
}

TEST(Limits, CoverTagsAndRandomValues) {
  const Panel panel{4096, two_to_32, 1, 1, DType::bf16};
  EXPECT_EQ(refusal_of([&](cudaStream_t stream) { launch_tags(stream, {.panel = panel, .columns = 1}); }), too_large);
  EXPECT_EQ(refusal_of([&](cudaStream_t stream) { launch_randomize(stream, panel, 1); }), too_large);
}

TEST(Limits, CoverRowsOfASoftmaxAndOfExactAttention) {
  constexpr const char* too_many = "a softmax has fewer than 2^31 queries, and at most 65535 heads";
  SoftmaxCall call{.heads = 1, .queries = two_to_32, .keys = 8, .stride = 8};
  const auto refusal = [&] { return refusal_of([&](cudaStream_t stream) { launch_softmax(stream, call); }); };
  EXPECT_EQ(refusal(), too_many);
  call = {.heads = 65536, .queries = 1, .keys = 8, .stride = 8};
  EXPECT_EQ(refusal(), too_many);
  call = {.heads = 1, .queries = 1, .keys = two_to_31, .stride = two_to_31};
  EXPECT_EQ(refusal(), "a row of scores has at most 2^30 keys");
  call = {.heads = 0, .queries = 1, .keys = 8, .stride = 8};
  EXPECT_EQ(refusal(), "none");
}

/// Returns the weights of three queries, the first two of which precede the first key, from scores that are all equal.
std::vector<float> weights_of_early_queries(std::int64_t stride) {
  const std::size_t bytes = 3 * static_cast<std::size_t>(stride) * sizeof(float);
  const OwnedStream stream = new_stream(0);
  const OwnedMemory scores = new_device_memory(bytes);
  const OwnedMemory weights = new_device_memory(bytes);
  require(cudaMemsetAsync(scores.get(), 0, bytes, stream.get()), "cudaMemsetAsync");
  launch_softmax(stream.get(), {.scores = reinterpret_cast<const float*>(scores.get()),
                                .weights = weights.get(),
                                .dtype = DType::fp32,
                                .heads = 1,
                                .queries = 3,
                                .keys = stride,
                                .stride = stride,
                                .first_position = -2,
                                .causal = true});
  require(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  std::vector<float> values(bytes / sizeof(float));
  require(cudaMemcpy(values.data(), weights.get(), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return values;
}

// A thread keeps the scores of the shorter row, and reads those of the longer row twice.
TEST(Softmax, ARowThatSeesNoKeyHasWeightsOfZero) {
  for (const std::int64_t stride : {16, 8200}) {
    std::vector<float> expected(3 * static_cast<std::size_t>(stride), 0.0F);
    expected[2 * static_cast<std::size_t>(stride)] = 1.0F;  // the third query sees the first key
    EXPECT_EQ(weights_of_early_queries(stride), expected) << stride;
  }
}

}  // namespace
}  // namespace commfuse::validate
