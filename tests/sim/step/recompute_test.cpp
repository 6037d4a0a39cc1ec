// SPDX-License-Identifier: Apache-2.0
// Tests the backward passes of layers with selective recomputation: worked sums of the kernels that run again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "model/config/catalogue.h"
#include "model/cost/attention.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "model/workload/recomputation.h"
#include "sim/step/group_link.h"
#include "sim/step/layer_cost.h"
#include "sim/step/step.h"
#include "tests/sim/small_transformer.h"

namespace commfuse {
namespace {

constexpr SelectiveRecompute compiled_gemms{
    .attention_core = false, .norms = true, .rotation = true, .activation = true, .every_second_gemm = true};
constexpr SelectiveRecompute eager_gemms{
    .attention_core = false, .norms = true, .rotation = true, .activation = true, .every_second_gemm_eager = true};

const Transformer gated_model = [] {
  Transformer model = test::small_transformer;
  model.kv_heads = 4;
  model.gated_mlp = true;
  return model;
}();

class RecomputeTest : public ::testing::Test {
 protected:
  [[nodiscard]] StepPoint point(const Transformer& model, const TrainingPlan& plan) const {
    return {.model = &model, .machine = &machine_, .plan = plan, .framework = framework_};
  }
  /// Returns the device time that selective recomputation adds to the backward pass of a layer.
  Duration added(const Transformer& model, TrainingPlan plan, const LayerKind& kind = dense_layer) {
    SiteTimes sites(structures_, machine_);
    const auto backward = [&](Recompute recompute) {
      plan.recompute = recompute;
      const StepPoint of_step = point(model, plan);
      return LayerCost(of_step, sites).backward(kind).device;
    };
    return backward(Recompute::selective) - backward(Recompute::none);
  }

  [[nodiscard]] Duration moved(std::int64_t bytes) const {
    return memory_bound_time(machine_.accelerator, Bytes{bytes}, machine_.accelerator.sms);
  }
  [[nodiscard]] Duration gemm(std::int64_t m, std::int64_t n, std::int64_t k) const {
    const GemmSize size{.m = m, .n = n, .k = k, .run = Flops{1e24}};  // sustained power
    return estimate_gemm(machine_.accelerator, size, machine_.accelerator.sms).time;
  }
  /// Returns the sum of the times, with the gap before each kernel.
  [[nodiscard]] Duration together(std::initializer_list<Duration> kernels) const {
    Duration sum{};
    for (const Duration time : kernels) {
      sum += time + machine_.accelerator.stream_gap.value;
    }
    return sum;
  }
  /// Returns the time of fused attention over 2048 tokens, with the heads of one of two ranks.
  [[nodiscard]] Duration core() const {
    return attention_time(machine_.accelerator, {.seq = 2048, .heads = 8, .kv_heads = 2}, machine_.accelerator.sms);
  }

  Machine machine_ = load_machine("a100-sxm-80");
  Framework framework_;
  StructureCache structures_;
};

TEST_F(RecomputeTest, RunsTheForwardPassOfAFusedCoreAgain) {
  for (const bool sequence_parallel : {false, true}) {
    EXPECT_EQ(added(gated_model, {.tensor = 2, .sequence_parallel = sequence_parallel, .seq = 2048}), core());
  }
}

TEST_F(RecomputeTest, TheCoreHasTheAttentionKernelOfTheFramework) {
  for (Parameter<double>& of_generation : framework_.attention_time) {
    of_generation.value = 1.5;
  }
  EXPECT_EQ(added(gated_model, {.tensor = 2, .seq = 2048}), times(1.5, core()));
}

TEST_F(RecomputeTest, RunsTheKernelsOfAnUnfusedCoreAgain) {
  const std::int64_t rows = 8 * 2048;
  EXPECT_EQ(added(gated_model, {.tensor = 2, .seq = 2048, .fused_attention = false}),
            together({gemm(rows, 2048, 128), gemm(rows, 128, 2048), moved(4 * rows * 2048)}));
}

/// TransformerEngine gathers keys and values, or exchanges heads for tokens, within the core.
TEST_F(RecomputeTest, TheCoreExchangesItsSequenceAgain) {
  const std::int64_t keys = 2 * 2048 * 2 * (128 + 128);  // bytes of the keys and values of two ranks
  const Duration gather = group_of(machine_, {.stride = 2, .ranks = 2, .gpus = 4}).all_gather(Bytes{keys});
  const Duration half = attention_time(machine_.accelerator, {.seq = 2048, .heads = 8, .kv_heads = 2},
                                       {.queries = 1024, .keys = 2048, .share = 0.25}, machine_.accelerator.sms);
  EXPECT_EQ(added(gated_model, {.tensor = 2, .context = 2, .seq = 2048}), gather + half);
  const Group sharers = group_of(machine_, {.stride = 1, .ranks = 2, .gpus = 2});
  EXPECT_EQ(added(gated_model, {.ulysses = 2, .seq = 2048}), sharers.all_to_all(Bytes{2LL * 1024 * (2048 + 2 * 512)}) +
                                                                 core() + sharers.all_to_all(Bytes{2LL * 1024 * 2048}));
}

TEST_F(RecomputeTest, RunsEverySecondGemmAndWhatLiesBetweenAgain) {
  framework_.selective = compiled_gemms;
  const std::int64_t tokens = 1024;
  const std::int64_t state = 2 * tokens * 2048;  // bytes of the tokens
  const Duration norm = moved(2 * state);
  const Duration rotation = moved(2 * 2 * tokens * (2048 + 2 * 512));
  const Duration activation = moved(3 * 2 * tokens * 8192);
  EXPECT_EQ(added(gated_model, {.seq = tokens}),
            together({norm, gemm(tokens, 512, 2048), gemm(tokens, 2048, 2048), rotation, moved(3 * state), norm,
                      gemm(tokens, 8192, 2048), activation}));
  framework_.selective = {.attention_core = false, .norms = true};
  EXPECT_EQ(added(gated_model, {.seq = tokens}), together({norm, norm}));
  framework_.selective = {.attention_core = false, .activation = true};
  EXPECT_EQ(added(gated_model, {.seq = tokens}), together({activation}));
}

/// Even without recomputation, gradients of weights gather the inputs of their GEMMs again.
TEST_F(RecomputeTest, TensorRanksRunTheirShareOfGemmsAgainWithoutCollectives) {
  const std::int64_t tokens = 1024;
  const TrainingPlan plan{.tensor = 2, .sequence_parallel = true, .seq = tokens};
  const std::int64_t own_state = 2 * tokens / 2 * 2048;
  const Duration norm = moved(2 * own_state);
  framework_.selective = compiled_gemms;
  const Duration compiled = added(gated_model, plan);
  EXPECT_EQ(compiled, together({norm, gemm(tokens, 256, 2048), moved(2 * 2 * tokens * (1024 + 2 * 256)),
                                moved(3 * own_state), norm, gemm(tokens, 4096, 2048), moved(3 * 2 * tokens * 4096)}));
  framework_.selective = eager_gemms;  // also the GEMM of the output, although the ranks keep its sum
  EXPECT_EQ(added(gated_model, plan), compiled + together({gemm(tokens, 2048, 1024)}));
}

TEST_F(RecomputeTest, RunsRouterAndRoutedExpertsAgain) {
  Transformer mixture = test::small_transformer;
  mixture.experts = Experts{.count = 8, .active = 2, .ffn = 4096};
  framework_.selective = eager_gemms;
  const std::int64_t tokens = 1024;
  const std::int64_t state = 2 * tokens * 2048;
  const Duration weights = moved(2LL * 8 * 4096 * 2048);  // 1024 tokens use all eight experts
  EXPECT_EQ(added(mixture, {.seq = tokens}, {.mlp = MlpKind::mixture}),
            together({moved(2 * state), gemm(tokens, 8, 2048), moved(2 * 2 * tokens * 8), moved(2 * 2 * state),
                      std::max(weights, gemm(2 * tokens, 4096, 2048)), moved(2 * 2 * 2 * tokens * 4096),
                      std::max(weights, gemm(2 * tokens, 2048, 4096))}));
}

TEST_F(RecomputeTest, TakesTimeAndFreesMemoryBetweenNoneAndFull) {
  framework_.selective = eager_gemms;
  const auto predicted = [&](Recompute recompute) {
    SiteTimes sites(structures_, machine_);
    return predict_step(point(gated_model, {.global_batch = 2, .recompute = recompute}), sites);
  };
  const StepPrediction none = predicted(Recompute::none);
  const StepPrediction selective = predicted(Recompute::selective);
  const StepPrediction full = predicted(Recompute::full);
  EXPECT_LT(none.time, selective.time);
  EXPECT_LT(selective.time, full.time);
  EXPECT_GT(none.memory.activations, selective.memory.activations);
  EXPECT_GT(selective.memory.activations, full.memory.activations);
  const Tokens tokens{2, 2048};
  const double hardware =
      hardware_flops(gated_model, tokens, AttentionCount::causal, Recompute::selective, eager_gemms).count;
  EXPECT_NEAR(selective.hfu / selective.mfu,
              hardware / training_flops(gated_model, tokens, AttentionCount::causal).count, 1e-12);
}

}  // namespace
}  // namespace commfuse
