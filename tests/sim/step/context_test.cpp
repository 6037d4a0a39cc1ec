// SPDX-License-Identifier: Apache-2.0
// Tests attention whose sequences are shared by context ranks: worked examples of the ring, and what the ring hides.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "model/config/catalogue.h"
#include "model/cost/attention.h"
#include "model/cost/group.h"
#include "model/cost/memory_bound.h"
#include "sim/step/exchange.h"
#include "sim/step/group_link.h"
#include "sim/step/layer_cost.h"
#include "tests/sim/small_transformer.h"

namespace commfuse {
namespace {

const Transformer one_layer = [] {
  Transformer model = test::small_transformer;
  model.layers = 1;
  model.kv_heads = 4;
  return model;
}();

class ContextTest : public ::testing::Test {
 protected:
  [[nodiscard]] StepPoint point(const Transformer& model, ContextExchange exchange) const {
    TrainingPlan plan;
    plan.tensor = 2;
    plan.context = 4;
    plan.context_exchange = exchange;
    plan.seq = 32768;
    return {.model = &model, .machine = &machine_, .plan = plan};
  }
  Stream forward(const Transformer& model, ContextExchange exchange, const LayerKind& kind = dense_layer) {
    const StepPoint of_step = point(model, exchange);
    SiteTimes sites(structures_, machine_);
    return LayerCost(of_step, sites).forward(kind);
  }
  Stream backward(const Transformer& model, ContextExchange exchange, const LayerKind& kind = dense_layer) {
    const StepPoint of_step = point(model, exchange);
    SiteTimes sites(structures_, machine_);
    return LayerCost(of_step, sites).backward(kind);
  }

  [[nodiscard]] Duration move(std::int64_t bytes) const {
    return memory_bound_time(machine_.accelerator, Bytes{bytes}, machine_.accelerator.sms) +
           machine_.accelerator.stream_gap.value;
  }
  /// Returns the time of a block of attention: 8192 queries per head and this many keys. The first step has
  /// all keys and masks half of the scores, and the edge of the mask takes additional time; later steps have half of
  /// the keys and no mask.
  [[nodiscard]] Duration block(std::int64_t keys, int sms) const {
    const AttentionSize size{.batch = 1,
                             .seq = 8192,
                             .heads = 8,
                             .kv_heads = 2,
                             .head_dim = 128,
                             .causal = keys == 8192,
                             .dtype = DType::bf16};
    return attention_time(machine_.accelerator, size, {.queries = 8192, .keys = keys, .share = 0.5}, sms);
  }
  [[nodiscard]] PassTime pass(std::int64_t keys, double factor) const {
    const int sms = machine_.accelerator.sms;
    return {times(factor, block(keys, sms)), times(factor, block(keys, sms - machine_.link.peer.ctas.value))};
  }
  [[nodiscard]] Duration transfer(std::int64_t blocks) const {
    return send_time(machine_, {.stages = 4, .gpus_per_stage = 2, .bytes = Bytes{blocks * block_bytes}}, 0);
  }

  static constexpr std::int64_t block_bytes = std::int64_t{2} * 8192 * 2 * (128 + 128);  ///< Keys and values of a rank.
  static constexpr std::int64_t outputs = std::int64_t{8192} * 8 * 128;                  ///< Elements of a rank.

  Machine machine_ = load_machine("h100-sxm");
  StructureCache structures_;
};

TEST_F(ContextTest, ForwardRingReplacesTheGatherByBlocksAndMerges) {
  const Duration gathered = forward(one_layer, ContextExchange::all_gather).device;
  const Duration ring = forward(one_layer, ContextExchange::ring).device;
  const Group group = group_of(machine_, {.stride = 2, .ranks = 4, .gpus = 8});
  const AttentionSize whole{.batch = 1, .seq = 32768, .heads = 8, .kv_heads = 2, .head_dim = 128, .dtype = DType::bf16};
  const Duration removed = group.all_gather(Bytes{4 * block_bytes}) +
                           attention_time(machine_.accelerator, whole,
                                          {.queries = 8192, .keys = 32768, .share = 0.5 / 4}, machine_.accelerator.sms);
  const Duration steps = with_exchange(pass(8192, 1.0), transfer(1)) + 2 * with_exchange(pass(4096, 1.0), transfer(1)) +
                         pass(4096, 1.0).alone;
  const Duration merges = 3 * move(3 * 4 * outputs / 128) + move(4 * outputs) + 3 * move(6 * outputs);
  EXPECT_EQ(ring - gathered, steps + merges - removed);
}

TEST_F(ContextTest, BackwardRingSendsGradientsOneStepBehindTheirBlocks) {
  const Duration gathered = backward(one_layer, ContextExchange::all_gather).device;
  const Duration ring = backward(one_layer, ContextExchange::ring).device;
  const Group group = group_of(machine_, {.stride = 2, .ranks = 4, .gpus = 8});
  const AttentionSize whole{.batch = 1, .seq = 32768, .heads = 8, .kv_heads = 2, .head_dim = 128, .dtype = DType::bf16};
  const Duration removed = group.reduce_scatter(Bytes{4 * block_bytes}) +
                           times(fused_backward, attention_time(machine_.accelerator, whole,
                                                                {.queries = 8192, .keys = 32768, .share = 0.5 / 4},
                                                                machine_.accelerator.sms));
  const Duration steps = with_exchange(pass(8192, fused_backward), transfer(1)) +
                         2 * with_exchange(pass(4096, fused_backward), transfer(2)) +
                         with_exchange(pass(4096, fused_backward), transfer(1));
  const Duration sums =
      move(4 * outputs) + 3 * move(6 * outputs) + move(2 * block_bytes) + 3 * move(3 * block_bytes / 2);
  EXPECT_EQ(ring - gathered, steps + sums - removed);
}

/// With 16 kv heads, keys and values have twice as many elements as queries, so ranks with all keys take longer.
TEST_F(ContextTest, BackwardRingWaitsForTheRanksThatAddMoreGradients) {
  Transformer many_keys = one_layer;
  many_keys.kv_heads = 16;
  const AttentionSize masked{.batch = 1, .seq = 8192, .heads = 8, .kv_heads = 8, .head_dim = 128, .dtype = DType::bf16};
  AttentionSize half = masked;
  half.causal = false;
  const AttentionSize whole{.batch = 1, .seq = 32768, .heads = 8, .kv_heads = 8, .head_dim = 128, .dtype = DType::bf16};
  const Accelerator& accelerator = machine_.accelerator;
  const auto pass_of = [&](const AttentionSize& size, std::int64_t keys) {
    const auto time = [&](int sms) {
      return times(fused_backward,
                   attention_time(accelerator, size, {.queries = 8192, .keys = keys, .share = 0.5}, sms));
    };
    return PassTime{time(accelerator.sms), time(accelerator.sms - machine_.link.peer.ctas.value)};
  };
  const Group group = group_of(machine_, {.stride = 2, .ranks = 4, .gpus = 8});
  const Duration removed =
      group.reduce_scatter(Bytes{16 * block_bytes}) +
      times(fused_backward,
            attention_time(accelerator, whole, {.queries = 8192, .keys = 32768, .share = 0.5 / 4}, accelerator.sms));
  const Duration steps = with_exchange(pass_of(masked, 8192), transfer(4)) +
                         2 * with_exchange(pass_of(half, 4096), transfer(8)) +
                         with_exchange(pass_of(half, 4096), transfer(4));
  const Duration sums = move(4 * outputs) + 3 * move(3 * outputs) + move(8 * block_bytes) + 3 * move(12 * block_bytes);
  EXPECT_EQ(backward(many_keys, ContextExchange::ring).device - backward(many_keys, ContextExchange::all_gather).device,
            steps + sums - removed);
}

TEST_F(ContextTest, RingHidesTransfersThatAGatherExposes) {
  machine_.link.peer.rate.value.value /= 16.0;  // A network has such a rate.
  machine_.link.peer.aggregate_rate.value.value /= 16.0;
  const Duration transfers = 3 * transfer(1);
  const Duration slow = forward(one_layer, ContextExchange::ring).device;
  machine_ = load_machine("h100-sxm");
  EXPECT_GT(transfers, Duration{1'000'000'000});
  EXPECT_LT(slow - forward(one_layer, ContextExchange::ring).device, transfers / 4);
}

/// Groups of 6 GPUs on nodes of 8: the first group is inside a node, the second straddles two, and all steps wait for
/// the second.
TEST_F(ContextTest, RingWaitsForAGroupThatStraddlesNodes) {
  machine_ = load_machine("dgx-h100-x4");
  StepPoint inside = point(one_layer, ContextExchange::ring);
  inside.plan.context = 3;
  inside.plan.seq = 6144;
  StepPoint straddling = inside;
  straddling.plan.data = 4;
  const Bytes block{std::int64_t{2} * 2048 * 2 * (128 + 128)};
  const StageSend first{.stages = 3, .gpus_per_stage = 2, .bytes = block};
  StageSend second = first;
  second.first_gpu = 6;
  EXPECT_GT(send_time(machine_, second, 0), send_time(machine_, first, 0));
  SiteTimes sites(structures_, machine_);
  EXPECT_GT(LayerCost(straddling, sites).forward(dense_layer).device,
            LayerCost(inside, sites).forward(dense_layer).device);
}

TEST_F(ContextTest, LayersWithAWindowGather) {
  const LayerKind windowed{.window = 4096};
  EXPECT_EQ(forward(one_layer, ContextExchange::ring, windowed).device,
            forward(one_layer, ContextExchange::all_gather, windowed).device);
  EXPECT_EQ(backward(one_layer, ContextExchange::ring, windowed).device,
            backward(one_layer, ContextExchange::all_gather, windowed).device);
}

TEST_F(ContextTest, OneContextRankExchangesNothing) {
  StepPoint gathers = point(one_layer, ContextExchange::all_gather);
  StepPoint passes = point(one_layer, ContextExchange::ring);
  gathers.plan.context = passes.plan.context = 1;
  SiteTimes sites(structures_, machine_);
  EXPECT_EQ(LayerCost(gathers, sites).forward(dense_layer).device,
            LayerCost(passes, sites).forward(dense_layer).device);
}

}  // namespace
}  // namespace commfuse
