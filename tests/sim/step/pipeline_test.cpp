// SPDX-License-Identifier: Apache-2.0
// Compares pipelines with their closed forms, and streams of kernels with a run of every kernel.
#include "sim/step/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

namespace commfuse {
namespace {

using namespace std::chrono_literals;

Stream device_only(Duration time) {
  Stream stream;
  stream.add({.time = time});
  return stream;
}

Pipeline equal_stages(std::int64_t stages, std::int64_t interleave, std::int64_t micro_batches) {
  const PipelineChunk chunk{device_only(10us / interleave), device_only(20us / interleave)};
  return {stages, interleave, micro_batches,
          std::vector<PipelineChunk>(static_cast<std::size_t>(stages * interleave), chunk),
          std::vector<Duration>(static_cast<std::size_t>(stages), Duration::zero())};
}

Duration last_end(const Pipeline& pipeline) {
  Duration last{};
  for (const StageTimes& stage : simulate(pipeline)) {
    last = std::max(last, stage.end);
  }
  return last;
}

// Narayanan et al. 2021, section 2.2: with p stages and m micro-batches the bubble is (p - 1) / m of the work, or
// (p - 1) / (m v) with v chunks per stage.
TEST(Pipeline, OneFOneBTakesMicroBatchesPlusStagesLessOne) {
  for (const std::int64_t stages : {1, 2, 4, 7}) {
    for (const std::int64_t micro_batches : {1, 2, 8, 13}) {
      EXPECT_EQ(last_end(equal_stages(stages, 1, micro_batches)), (micro_batches + stages - 1) * Duration(30us));
    }
  }
}

TEST(Pipeline, InterleavingDividesTheBubbleByTheChunksOfAStage) {
  EXPECT_EQ(last_end(equal_stages(4, 2, 8)), 8 * Duration(30us) + 3 * Duration(15us));
  EXPECT_EQ(last_end(equal_stages(2, 5, 4)), 4 * Duration(30us) + 1 * Duration(6us));
  EXPECT_EQ(last_end(equal_stages(8, 2, 64)), 64 * Duration(30us) + 7 * Duration(15us));
}

TEST(Pipeline, OneMicroBatchIsSentForwardAndBack) {
  Pipeline pipeline = equal_stages(4, 1, 1);
  pipeline.sends.assign(pipeline.sends.size(), 1us);
  EXPECT_EQ(last_end(pipeline), 4 * Duration(30us) + 6 * Duration(1us));
}

TEST(Pipeline, SendsOverTheWiresBetweenTwoStages) {
  Pipeline pipeline = equal_stages(4, 1, 1);
  pipeline.sends = {1us, 100us, 3us, 1000us};  // The last stage sends nothing to the first.
  EXPECT_EQ(last_end(pipeline), 4 * Duration(30us) + 2 * Duration(104us));
  pipeline = equal_stages(4, 2, 4);
  // The second chunks wait for the last stage's sends, and the first chunks for the sends back.
  pipeline.sends.back() = 1000us;
  EXPECT_GE(last_end(pipeline), Duration(2000us));
}

TEST(Pipeline, IsAsFastAsItsSlowestStage) {
  Pipeline pipeline = equal_stages(3, 1, 100);
  pipeline.chunks[1] = {device_only(20us), device_only(40us)};
  // Before the slowest stage starts, a forward pass fills the pipeline; after it a backward pass drains the pipeline.
  // The slowest stage waits once, for 10 us, for its first gradient, because 1F1B lets it run at most two micro-batches
  // ahead.
  EXPECT_EQ(last_end(pipeline), 10us + 100 * Duration(60us) + 10us + 20us);
}

TEST(Pipeline, ReportsTheLastBackwardPassOfEveryChunk) {
  const std::vector<StageTimes> stages = simulate(equal_stages(2, 2, 2));
  ASSERT_EQ(stages[0].last_backward.size(), 2U);
  EXPECT_EQ(stages[0].last_backward[0].chunk, 2);
  EXPECT_EQ(stages[0].last_backward[1].chunk, 0);
  EXPECT_EQ(stages[0].last_backward[1].end, stages[0].end);
  EXPECT_EQ(stages[0].busy, 2 * Duration(30us));
}

/// Returns a ZB-H1 pipeline of equal stages.
Pipeline zb_h1(std::int64_t stages, std::int64_t micro_batches, Duration forward, Duration backward, Duration weights) {
  const PipelineChunk chunk{device_only(forward), device_only(backward), device_only(weights)};
  return {.stages = stages,
          .micro_batches = micro_batches,
          .chunks = std::vector<PipelineChunk>(static_cast<std::size_t>(stages), chunk),
          .sends = std::vector<Duration>(static_cast<std::size_t>(stages), Duration::zero()),
          .splits_backward = true};
}

// Qi et al. 2024, section 2.3: the bubble of p stages is (p - 1) (f + b - w), where f, b and w are the times of a
// forward pass, of gradients of inputs and of gradients of weights. If these are equal, it is a third of 1F1B's
// (p - 1) (f + b + w).
TEST(Pipeline, ZbH1HasTheBubbleOfItsClosedForm) {
  EXPECT_EQ(last_end(zb_h1(4, 8, 10us, 10us, 10us)), 8 * Duration(30us) + 3 * Duration(10us));
  EXPECT_EQ(last_end(zb_h1(2, 4, 10us, 10us, 10us)), 4 * Duration(30us) + 1 * Duration(10us));
  EXPECT_EQ(last_end(zb_h1(8, 16, 10us, 10us, 10us)), 16 * Duration(30us) + 7 * Duration(10us));
  EXPECT_EQ(last_end(zb_h1(4, 8, 10us, 11us, 8us)), 8 * Duration(29us) + 3 * Duration(13us));
  EXPECT_EQ(last_end(zb_h1(4, 12, 2us, 2us, 1us)), 12 * Duration(5us) + 3 * Duration(3us));
  EXPECT_EQ(last_end(zb_h1(4, 8, 3us, 2us, 1us)), 8 * Duration(6us) + 3 * Duration(4us));
}

TEST(Pipeline, ZbH1WithFreeWeightGradientsIs1F1B) {
  for (const std::int64_t micro_batches : {1, 3, 8}) {
    EXPECT_EQ(last_end(zb_h1(4, micro_batches, 10us, 20us, 0us)), last_end(equal_stages(4, 1, micro_batches)));
  }
}

TEST(Pipeline, ZbH1OfTwoStagesAndTwoMicroBatchesByHand) {
  // Sends take 1 us, and all times are in us. Stage 0 runs F0 0-10 and F1 10-20, and waits for the gradient of stage 1
  // (F0 11-21, B0 21-31) until 32: B0 32-42, W0 42-52. The next gradient (F1 31-41, B1 41-51) arrives at 52: B1 52-62,
  // W1 62-72. Stage 1 runs its weight gradients one micro-batch later: W0 51-61, W1 61-71.
  Pipeline pipeline = zb_h1(2, 2, 10us, 10us, 10us);
  pipeline.sends.assign(pipeline.sends.size(), 1us);
  const std::vector<StageTimes> stages = simulate(pipeline);
  EXPECT_EQ(stages[0].end, Duration(72us));
  EXPECT_EQ(stages[1].end, Duration(71us));
  EXPECT_EQ(stages[0].busy, Duration(60us));
  ASSERT_EQ(stages[1].last_backward.size(), 1U);
  EXPECT_EQ(stages[1].last_backward[0].start, Duration(61us));
  EXPECT_EQ(stages[1].last_backward[0].end, Duration(71us));
}

/// Returns the state of a stream after kernels that run one after another.
StreamState simulated(StreamState state, const std::vector<std::array<Duration, 2>>& kernels) {
  for (const auto& [issue, time] : kernels) {
    state.host += issue;
    state.device = std::max(state.host, state.device) + time;
  }
  return state;
}

TEST(Stream, RepeatedLayersEndLikeTheirKernelsOneByOne) {
  const std::vector<std::array<Duration, 2>> layer{{4us, 1us}, {4us, 30us}, {4us, 2us}, {9us, 3us}, {4us, 1us}};
  Stream stream;
  for (const auto& [issue, time] : layer) {
    stream.add({.issue = issue, .time = time});
  }
  for (const Duration device : {Duration(0us), Duration(25us), Duration(300us)}) {
    StreamState kernel_by_kernel{0us, device};
    Stream joined;
    for (int i = 0; i < 12; ++i) {
      kernel_by_kernel = simulated(kernel_by_kernel, layer);
      joined = joined.then(stream);
    }
    const StreamState end_of_joined = joined.after({0us, device}, Duration::zero());
    EXPECT_EQ(end_of_joined.host, kernel_by_kernel.host);
    EXPECT_EQ(end_of_joined.device, kernel_by_kernel.device);
  }
}

TEST(Stream, SlowHostTakesIssuingTimePlusTheLastKernel) {
  Stream stream;
  for (int i = 0; i < 10; ++i) {
    stream.add({.issue = 20us, .time = 5us});
  }
  EXPECT_EQ(stream.after({}, Duration::zero()).device, Duration(10 * 20us + 5us));
}

}  // namespace
}  // namespace commfuse
