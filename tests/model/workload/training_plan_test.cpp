// SPDX-License-Identifier: Apache-2.0
#include "model/workload/training_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "model/config_error.h"
#include "model/workload/bare_mlp.h"
#include "model/workload/layers.h"
#include "tests/refusal.h"

namespace commfuse {
namespace {

const Transformer llama_405b{.name = "llama",
                             .layers = 126,
                             .hidden = 16384,
                             .ffn = 53248,
                             .heads = 128,
                             .kv_heads = 8,
                             .head_dim = 128,
                             .vocab = 128256,
                             .gated_mlp = true};

std::string plan_refusal(const TrainingPlan& plan, const Transformer& model = llama_405b) {
  return test::refusal_of([&] { require_possible(model, plan); });
}

TEST(TrainingPlan, GivesEndStagesOfLlama405bOneLayerFewer) {
  const TrainingPlan plan{.tensor = 8, .pipeline = 16, .data = 128, .global_batch = 2048, .seq = 8192};
  EXPECT_EQ(plan_refusal(plan), "accepted");
  EXPECT_EQ(plan.gpus(), 16384);
  EXPECT_EQ(plan.micro_batches(), 16);
  const std::vector<std::int64_t> layers = layers_by_chunk(llama_405b, plan);
  EXPECT_EQ(layers.front(), 7);
  EXPECT_EQ(layers[1], 8);
  EXPECT_EQ(layers.back(), 7);
}

TEST(TrainingPlan, RequiresEveryKindOfLayerToSplit) {
  Transformer model = llama_405b;
  model.kinds.assign(126, dense_layer);
  EXPECT_EQ(plan_refusal({.tensor = 8}, model), "accepted");
  model.kinds[3].kv_heads = 4;
  EXPECT_EQ(plan_refusal({.tensor = 8}, model),
            "the number of kv heads of some layers 4 is not a multiple of tensor parallelism 8; choose tensor ranks "
            "that divide it");
  model.kinds[3] = dense_layer;
  model.kinds[3].ffn = 1001;
  EXPECT_EQ(plan_refusal({.tensor = 8}, model),
            "the number of ffn columns of some layers 1001 is not a multiple of tensor parallelism 8; choose tensor "
            "ranks that divide it");
  model.kinds.clear();
  model.experts = Experts{.count = 8, .active = 2, .ffn = 4096, .shared_ffn = 1002};
  EXPECT_EQ(plan_refusal({.tensor = 8}, model),
            "the number of ffn columns of shared experts 1002 is not a multiple of tensor parallelism 8; choose tensor "
            "ranks that divide it");
}

TEST(TrainingPlan, ServingRanksMayHaveCopiesOfKvHeads) {
  EXPECT_NO_THROW(require_possible(llama_405b, {.tensor = 16}, KeyHeads::copied));
  EXPECT_THROW(require_possible(llama_405b, {.tensor = 16}), ConfigError);
  EXPECT_THROW(require_possible(llama_405b, {.tensor = 24}, KeyHeads::copied), ConfigError);
}

TEST(TrainingPlan, NamesTheTwoSettingsThatClash) {
  EXPECT_EQ(plan_refusal({.tensor = 16}),
            "the number of kv heads 8 is not a multiple of tensor parallelism 16; choose tensor ranks that divide it");
  EXPECT_EQ(plan_refusal({.data = 2, .global_batch = 9, .micro_batch = 4}),
            "global batch 9 is not a multiple of data parallelism x micro-batch 8; choose a multiple of it");
  EXPECT_EQ(plan_refusal({.pipeline = 5, .global_batch = 5}),
            "126 layers of llama do not split into pipeline 5 x interleave 1 chunks; choose a number of chunks that "
            "divides 126 or 128");
  EXPECT_EQ(
      plan_refusal({.pipeline = 7, .interleave = 2, .global_batch = 8}),
      "the number of micro-batches 8 is not a multiple of pipeline 7; choose another global batch, or interleave 1");
  EXPECT_EQ(plan_refusal({.interleave = 2}),
            "interleave 2 needs several stages, but pipeline is 1; set interleave to 1");
  EXPECT_EQ(
      plan_refusal({.tensor = 8, .sequence_parallel = true, .seq = 12}),
      "the number of tokens of a pass 12 is not a multiple of tensor parallelism 8; choose another sequence length, "
      "or no sequence parallelism");
  EXPECT_EQ(
      plan_refusal({.tensor = 4, .ulysses = 4}),
      "the number of kv heads 8 is not a multiple of tensor parallelism x ulysses 16; choose fewer ulysses ranks, or "
      "context ranks instead");
  EXPECT_EQ(plan_refusal({.context = 2, .ulysses = 4, .seq = 2052}),
            "seq 2052 is not a multiple of context parallelism x ulysses 8; choose another sequence length");
  EXPECT_EQ(plan_refusal({.data = 2, .expert = 2, .global_batch = 2}),
            "expert parallelism 2 needs experts, and llama has none; choose 1");
  Transformer small_vocabulary = llama_405b;
  small_vocabulary.vocab = 7;
  EXPECT_EQ(plan_refusal({.tensor = 8}, small_vocabulary),
            "a vocabulary of 7 is less than tensor parallelism 8; choose fewer tensor ranks");
}

TEST(TrainingPlan, NamesASingleLayerInTheSingular) {
  Transformer model = llama_405b;
  model.layers = 1;
  EXPECT_EQ(plan_refusal({.pipeline = 2, .global_batch = 2}, model),
            "1 layer of llama does not split into pipeline 2 x interleave 1 chunks; choose a number of chunks that "
            "divides 1 or 3");
}

TEST(TrainingPlan, StatesExpertParallelismItself) {
  const MlpWidths widths{.hidden = 64, .ffn = 64};
  EXPECT_EQ(plan_refusal({}, bare_mixture(widths, {.count = 8, .active = 2})), "accepted");
  EXPECT_EQ(
      plan_refusal({}, bare_mixture(widths, {.count = 8, .active = 2, .ranks = 4})),
      "64x64-e8-top2-ep4 splits its experts for scopes of a layer only; remove -ep4 from its name and choose expert "
      "parallelism 4");
}

TEST(TrainingPlan, SplitsASequenceAmongContextAndUlyssesRanks) {
  const TrainingPlan plan{.tensor = 2, .data = 3, .context = 4, .ulysses = 2, .global_batch = 3, .seq = 4096};
  EXPECT_EQ(plan_refusal(plan), "accepted");
  EXPECT_EQ(plan.gpus(), 48);
  EXPECT_EQ(plan.replicas(), 24);
  EXPECT_EQ(plan.tokens_per_pass(), 512);
}

TEST(TrainingPlan, SplitsHeadsAndGroupsOfTheStateSpaceOfAHybrid) {
  Transformer hybrid = llama_405b;
  hybrid.layers = 2;
  hybrid.state_space = StateSpace{.inner = 16384, .head_dim = 64, .state = 128, .groups = 4};
  hybrid.kinds = kinds_of_letters("M*", false);
  EXPECT_EQ(plan_refusal({.tensor = 4}, hybrid), "accepted");
  EXPECT_EQ(
      plan_refusal({.tensor = 8}, hybrid),
      "the number of state-space groups 4 is not a multiple of tensor parallelism 8; choose tensor ranks that divide "
      "it");
  EXPECT_EQ(
      plan_refusal({.tensor = 2, .context = 4}, hybrid),
      "the number of state-space groups 4 is not a multiple of tensor parallelism x context parallelism x ulysses 8; "
      "choose fewer ranks that share a sequence");
}

TEST(TrainingPlan, RefusesOverflowOf64Bits) {
  constexpr std::int64_t giga = std::int64_t{1} << 30;
  EXPECT_EQ(plan_refusal({.global_batch = giga, .micro_batch = giga, .seq = 2}),
            "micro-batch 1073741824 times seq 2 is too large; the limit is 1073741824 tokens");
  EXPECT_EQ(plan_refusal({.global_batch = giga, .seq = 1}),
            "1073741824 micro-batches x 1 model chunks are too many passes; the limit is 67108864, so "
            "choose a larger micro-batch, or a smaller batch");
  Transformer wide = llama_405b;
  wide.ffn = std::int64_t{1} << 20;
  wide.layers = 10'000;
  EXPECT_EQ(plan_refusal({.seq = giga}, wide),
            "micro-batch 1 times seq 1073741824 is too large for llama, whose activations would take 2e+20 bytes; "
            "choose a smaller batch or sequence");
  EXPECT_EQ(plan_refusal({.seq = giga}), "accepted");
}

TEST(TrainingPlan, SaturatesAtTheLargestNumberOfGpus) {
  constexpr std::int64_t kilo = 1024;
  const TrainingPlan plan{
      .tensor = kilo * kilo, .pipeline = kilo, .data = kilo * kilo, .context = kilo, .ulysses = kilo};
  EXPECT_EQ(plan.gpus(), std::int64_t{1} << 53);
}

}  // namespace
}  // namespace commfuse
