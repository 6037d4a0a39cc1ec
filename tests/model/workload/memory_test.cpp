// SPDX-License-Identifier: Apache-2.0
// Tests the memory of layers and steps, where possible against the tables and figures of papers.
#include "model/workload/memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "model/workload/parameters.h"
#include "tests/model/llama_70b.h"

namespace commfuse {
namespace {

using test::llama_70b;

const Transformer gpt_22b{.layers = 48,
                          .hidden = 6144,
                          .ffn = 24576,
                          .heads = 64,
                          .kv_heads = 64,
                          .head_dim = 96,
                          .vocab = 51200,
                          .norm = Norm::layer,
                          .biases = true,
                          .tied_embeddings = true,
                          .positions = 2048};
constexpr std::int64_t sbh = 2048LL * 4 * 6144;  // a micro-batch of 4

TrainingPlan korthikanti(std::int64_t tensor, bool sequence_parallel, Recompute recompute) {
  return {.tensor = tensor,
          .sequence_parallel = sequence_parallel,
          .global_batch = 4,
          .micro_batch = 4,
          .recompute = recompute,
          .fused_attention = false,
          .dropout = true};
}

std::int64_t activations(std::int64_t tensor, bool sequence_parallel, Recompute recompute) {
  return layer_activations(gpt_22b, korthikanti(tensor, sequence_parallel, recompute), dense_layer).count;
}

// Table 2 of Korthikanti et al. 2022; 5 a s / h is 5 x 64 x 2048 / 6144 = 320 / 3.
TEST(LayerActivations, MatchTable2OfKorthikanti) {
  constexpr std::int64_t scores = sbh / 3 * 320;
  EXPECT_EQ(activations(1, false, Recompute::none), 34 * sbh + scores);
  EXPECT_EQ(activations(8, false, Recompute::none), 10 * sbh + 3 * sbh + scores / 8);
  EXPECT_EQ(activations(8, true, Recompute::none), 34 * sbh / 8 + scores / 8);
  EXPECT_EQ(activations(8, false, Recompute::selective), 13 * sbh);
  EXPECT_EQ(activations(8, true, Recompute::selective), 34 * sbh / 8);
  EXPECT_EQ(activations(8, false, Recompute::full), 2 * sbh);
}

TEST(LayerActivations, HoldNoScoresOrMasksWithAFusedCoreWithoutDropout) {
  TrainingPlan plan = korthikanti(1, false, Recompute::none);
  plan.fused_attention = true;
  plan.dropout = false;
  EXPECT_EQ(layer_activations(gpt_22b, plan, dense_layer).count, 32 * sbh);
}

TEST(LayerActivations, CountGroupedQueriesAndAGatedMlp) {
  const TrainingPlan plan{.seq = 1};  // one token
  // 8 h, queries and output 4 x 8192, keys and values 4 x 1024, gate, up and their product 6 x 28672
  EXPECT_EQ(layer_activations(llama_70b, plan, dense_layer).count, 8 * 8192 + 4 * 8192 + 4 * 1024 + 6 * 28672);
}

Transformer small_mixture() {
  return {.layers = 2,
          .hidden = 1024,
          .ffn = 4096,
          .heads = 16,
          .kv_heads = 16,
          .head_dim = 64,
          .vocab = 32000,
          .gated_mlp = true,
          .experts = Experts{.count = 16, .active = 3, .ffn = 512}};
}

constexpr SelectiveRecompute compiled_titan{
    .attention_core = false, .norms = true, .rotation = true, .activation = true, .every_second_gemm = true};
constexpr SelectiveRecompute eager_titan{
    .attention_core = false, .norms = true, .rotation = true, .activation = true, .every_second_gemm_eager = true};

TEST(LayerActivations, WithEverySecondGemmAreItsInputAndTheOtherOutputs) {
  TrainingPlan plan{.seq = 1, .recompute = Recompute::selective};
  const auto kept = [&](const SelectiveRecompute& selective) {
    return layer_activations(llama_70b, plan, dense_layer, selective).count;
  };
  // Queries and the output of attention 4 x 8192, values 2 x 1024, gate 2 x 28672.
  constexpr std::int64_t shared = 4 * 8192 + 2 * 1024 + 2 * 28672;
  EXPECT_EQ(kept(compiled_titan), 2 * 8192 + shared);
  EXPECT_EQ(kept(eager_titan), 2 * 8192 + shared + 2 * 8192);  // and the output of the last GEMM
  plan.tensor = 8;
  plan.sequence_parallel = true;
  plan.seq = 8;                                                    // one token per rank
  EXPECT_EQ(kept(compiled_titan), 4 * 8192 + shared);              // the input, and the sum after attention
  EXPECT_EQ(kept(eager_titan), 6 * 8192 + shared + 8 * 2 * 8192);  // also the last sum, and its addends of all 8 tokens
}

TEST(LayerActivations, WithEverySecondGemmDropRoutedExperts) {
  const Transformer mixture = small_mixture();
  const LayerKind kind{.attention = true, .mlp = MlpKind::mixture};
  TrainingPlan plan{.seq = 1, .recompute = Recompute::selective};
  // The input 2 h; queries, values and output of attention 6 x 1024
  constexpr std::int64_t kept = 2 * 1024 + 6 * 1024;
  EXPECT_EQ(layer_activations(mixture, plan, kind, compiled_titan).count, kept);
  plan.data = 2;
  plan.expert = 2;  // three copies of 2 h that other ranks sent
  EXPECT_EQ(layer_activations(mixture, plan, kind, compiled_titan).count, kept + 3 * 2 * 1024);
}

TEST(LayerActivations, WithRecomputedNormsAndActivationsKeepTheInputsOfBoth) {
  const Transformer mixture = small_mixture();
  Transformer dense = mixture;
  dense.experts.reset();
  const TrainingPlan plan{.seq = 1, .recompute = Recompute::selective};
  // Inputs of norms 4 h; queries, keys, values and output of attention 8 x 1024; gate and up 4 x 4096
  EXPECT_EQ(layer_activations(dense, plan, dense_layer, {.norms = true, .activation = true}).count,
            4 * 1024 + 8 * 1024 + 4 * 4096);
  const LayerKind kind{.attention = true, .mlp = MlpKind::mixture};
  // Gate and up of three experts 3 x 4 x 512, and their inputs
  EXPECT_EQ(layer_activations(mixture, plan, kind, {.norms = true, .activation = true}).count,
            4 * 1024 + 8 * 1024 + 3 * 4 * 512 + 3 * 2 * 1024);
}

TEST(LayerActivations, KeepScoresThatSelectiveRecomputationDoesNotCover) {
  TrainingPlan plan = korthikanti(1, false, Recompute::selective);
  const auto kept = [&](const SelectiveRecompute& selective) {
    return layer_activations(gpt_22b, plan, dense_layer, selective).count;
  };
  EXPECT_EQ(kept({}), 34 * sbh);
  EXPECT_EQ(kept({.attention_core = false, .rotation = true}), activations(1, false, Recompute::none));
}

TEST(StepMemory, WithEverySecondGemmHoldsOneRecomputedLayer) {
  const Transformer model{
      .layers = 8, .hidden = 1024, .ffn = 4096, .heads = 16, .kv_heads = 16, .head_dim = 64, .vocab = 100};
  TrainingPlan plan{.pipeline = 4, .global_batch = 4, .seq = 64};
  const std::int64_t whole = layer_activations(model, plan, dense_layer).count;
  plan.recompute = Recompute::selective;
  const std::int64_t kept = layer_activations(model, plan, dense_layer, compiled_titan).count;
  EXPECT_LT(kept, whole);
  EXPECT_EQ(step_memory(model, plan, 0, {.selective = compiled_titan}).activations.count,
            4 * (2 * kept) + whole - kept);
  EXPECT_EQ(step_memory(model, plan, 0).activations.count, 4 * (2 * whole));  // only a fused core runs again
}

TEST(LayerActivations, WithFp8KeepInputsOfGemmsIn8Bits) {
  const TrainingPlan plan{.seq = 1, .dtype = DType::fp8};
  // Twice 2 h before a norm and h after it; queries 2 x 8192, output 2 x 8192 for the core and 8192 for the
  // out-projection, keys and values 4 x 1024; gate and up 4 x 28672, their product 28672.
  EXPECT_EQ(layer_activations(llama_70b, plan, dense_layer).count, 6 * 8192 + 5 * 8192 + 4 * 1024 + 5 * 28672);
}

TEST(LayerActivations, WithFp8AndAnUnfusedCoreKeepItsOutputOnce) {
  TrainingPlan plan = korthikanti(1, false, Recompute::selective);
  plan.dropout = false;
  plan.dtype = DType::fp8;
  // 6 h at the norms; queries, keys and values 6 h, output h; the MLP 2 x 4 h and 4 h.
  EXPECT_EQ(layer_activations(gpt_22b, plan, dense_layer).count, (6 + 6 + 1 + 12) * sbh);
}

TEST(LayerActivations, WithFp8KeepInputsOfRoutersIn16Bits) {
  Transformer mixture = small_mixture();
  const LayerKind kind{.attention = true, .mlp = MlpKind::mixture};
  const TrainingPlan plan{.seq = 1, .dtype = DType::fp8};
  // Norms keep 3 h and 4 h; queries, keys and values 6 x 1024, output 3 x 1024; three experts 5 x 512 each, and their
  // inputs h.
  const std::int64_t routed = 3 * 1024 + 4 * 1024 + 9 * 1024 + 3 * 5 * 512 + 3 * 1024;
  EXPECT_EQ(layer_activations(mixture, plan, kind).count, routed);
  mixture.experts->shared_ffn = 512;
  EXPECT_EQ(layer_activations(mixture, plan, kind).count, routed + 1024 + 5 * 512);
}

TEST(LayerActivations, CountWholeExpertInputsOnEveryTensorRank) {
  const Transformer mixture = small_mixture();
  const LayerKind kind{.attention = true, .mlp = MlpKind::mixture};
  TrainingPlan plan{.seq = 1};
  // 8 h; 4 x 1024 and 4 x 1024 of attention; three experts of 6 x 512; three copies of 2 h
  EXPECT_EQ(layer_activations(mixture, plan, kind).count, 8 * 1024 + 8 * 1024 + 3 * 6 * 512 + 3 * 2 * 1024);
  plan = {.tensor = 4, .sequence_parallel = true, .expert = 8, .seq = 4};
  EXPECT_EQ(layer_activations(mixture, plan, kind).count, 8 * 1024 + 8 * 1024 + 3 * 6 * 512 + 4 * 3 * 2 * 1024);
}

TEST(StepMemory, WithFullRecomputationHoldsOneRecomputedLayer) {
  const Transformer model{
      .layers = 8, .hidden = 1024, .ffn = 4096, .heads = 16, .kv_heads = 16, .head_dim = 64, .vocab = 100};
  const TrainingPlan without_recompute{.pipeline = 4, .global_batch = 4, .seq = 64};
  TrainingPlan plan = without_recompute;
  plan.recompute = Recompute::full;
  const std::int64_t activations = layer_activations(model, without_recompute, dense_layer).count;
  const std::int64_t input = layer_activations(model, plan, dense_layer).count;
  const std::int64_t seq = 64;
  EXPECT_EQ(input, 2 * seq * 1024);
  EXPECT_EQ(step_memory(model, plan, 0).activations.count, 4 * (2 * input) + activations);
  EXPECT_EQ(step_memory(model, plan, 3).activations.count,
            2 * input + activations);  // more than the few logits take
  Transformer large_vocabulary = model;
  large_vocabulary.vocab = 128256;
  EXPECT_EQ(step_memory(large_vocabulary, plan, 3).activations.count, 2 * input + 4 * seq * 1024 + 4 * seq * 128256);
}

// Two layers per stage; 4 h for the last norm and the input of the logits.
TEST(StepMemory, HoldsTheTensorsOfTheLossOnTheLastStage) {
  const Transformer model{
      .layers = 8, .hidden = 1024, .ffn = 4096, .heads = 16, .kv_heads = 16, .head_dim = 64, .vocab = 128256};
  TrainingPlan plan{.pipeline = 4, .global_batch = 4, .seq = 64};
  const std::int64_t layers = 2 * layer_activations(model, plan, dense_layer).count;
  const auto activations_with = [&](double loss_memory, std::int64_t stage) {
    return step_memory(model, plan, stage, {.loss_memory = loss_memory}).activations.count;
  };
  EXPECT_EQ(activations_with(12.0, 3), layers + 64 * (4 * 1024 + 12 * 128256));
  EXPECT_EQ(activations_with(2.5, 3), layers + 64 * (4 * 1024 + 5 * 128256 / 2));
  EXPECT_EQ(step_memory(model, plan, 3).activations.count, activations_with(4.0, 3));
  EXPECT_EQ(activations_with(12.0, 0), 4 * layers);
  plan.recompute = Recompute::full;  // The loss is freed before a layer is recomputed.
  EXPECT_EQ(activations_with(12.0, 3), 2 * (64 * 2 * 1024) + 64 * (4 * 1024 + 12 * 128256));
  EXPECT_EQ(activations_with(0.0, 3), 2 * (64 * 2 * 1024) + layers / 2);
}

TEST(StepMemory, SharesTheTensorsOfTheLossAmongTensorRanks) {
  const Transformer model{
      .layers = 2, .hidden = 1024, .ffn = 4096, .heads = 16, .kv_heads = 16, .head_dim = 64, .vocab = 100'001};
  const TrainingPlan plan{.tensor = 8, .seq = 1};
  const auto activations_with = [&](double loss_memory) {
    return step_memory(model, plan, 0, {.loss_memory = loss_memory}).activations.count;
  };
  EXPECT_EQ(activations_with(12.0) - activations_with(0.0), 150'002);  // 12 x 100001 / 8 = 150001.5
}

TEST(LayerActivations, AddUpOverThePartsOfAHybrid) {
  // One token: before each part 4 h; attention 4 x 2048 + 4 x 512, an MLP 4 x 4096, a state space of 2048 channels (32
  // heads, one group of 64): projected 2 x 4256, convolved 2 x 2176, and twice 2 x 2048.
  const Transformer hybrid{.layers = 3,
                           .hidden = 1024,
                           .ffn = 4096,
                           .heads = 16,
                           .kv_heads = 4,
                           .head_dim = 128,
                           .vocab = 32000,
                           .state_space = StateSpace{.inner = 2048, .head_dim = 64, .state = 64}};
  const TrainingPlan plan{.seq = 1};
  const auto activations_of = [&](const LayerKind& kind) { return layer_activations(hybrid, plan, kind).count; };
  EXPECT_EQ(activations_of({.attention = true}), 4 * 1024 + 4 * 2048 + 4 * 512);
  EXPECT_EQ(activations_of({.mlp = MlpKind::dense}), 4 * 1024 + 4 * 4096);
  EXPECT_EQ(activations_of({.state_space = true}), 4 * 1024 + 2 * 4256 + 2 * 2176 + 4 * 2048);
  EXPECT_EQ(activations_of(dense_layer), activations_of({.attention = true}) + activations_of({.mlp = MlpKind::dense}));
}

TEST(StepMemory, HoldsAllParametersOverTheStagesOfAHybrid) {
  Transformer hybrid{.layers = 4,
                     .hidden = 1024,
                     .ffn = 4096,
                     .heads = 16,
                     .kv_heads = 4,
                     .head_dim = 128,
                     .vocab = 32000,
                     .state_space = StateSpace{.inner = 2048, .head_dim = 64, .state = 64},
                     .kinds = kinds_of_letters("M*M-", false)};
  const TrainingPlan plan{.pipeline = 2, .global_batch = 2};
  EXPECT_EQ(parameters_on_gpu(hybrid, plan, 0) + parameters_on_gpu(hybrid, plan, 1), parameters_of(hybrid).total());
}

TEST(StepMemory, ShardsExpertsAmongReplicasThatHoldTheSameExperts) {
  const Transformer mixture{.layers = 4,
                            .hidden = 1024,
                            .ffn = 4096,
                            .heads = 16,
                            .kv_heads = 16,
                            .head_dim = 64,
                            .vocab = 32000,
                            .experts = Experts{.count = 16, .active = 2, .ffn = 4096}};
  const std::int64_t experts = 4 * layer_parameters(mixture, {.mlp = MlpKind::mixture}).routed_experts;
  const std::int64_t other_parameters = parameters_of(mixture).total() - experts;
  for (const std::int64_t expert : {1, 4, 16}) {
    const TrainingPlan plan{.data = 16, .expert = expert, .zero = Zero::optimizer, .global_batch = 16};
    const StepMemory memory = step_memory(mixture, plan, 0);
    EXPECT_EQ(experts_on_gpu(mixture, plan, 0), experts / expert);
    EXPECT_EQ(memory.optimizer.count, 12 * (other_parameters + experts) / 16) << expert;  // Each value is held once.
    EXPECT_EQ(memory.weights.count, 2 * (other_parameters + experts / expert)) << expert;
  }
}

// Figure 1 of Rajbhandari et al. 2020: 7.5 billion parameters on 64 ranks.
TEST(StepMemory, MatchesFigure1OfTheZeroPaper) {
  // A layer has 12 h^2 weights, and there are no logits: 7.5e9 is about layers x 12 h^2.
  const Transformer model{.layers = 36,
                          .hidden = 4096,
                          .ffn = 16384,
                          .heads = 32,
                          .kv_heads = 32,
                          .head_dim = 128,
                          .vocab = 51200,
                          .tied_embeddings = true};
  const double parameters = static_cast<double>(parameters_of(model).total());
  const auto gigabytes = [&](Zero zero) {
    const TrainingPlan plan{.data = 64, .zero = zero, .global_batch = 64, .gradient_dtype = DType::bf16};
    const StepMemory memory = step_memory(model, plan, 0);
    return static_cast<double>((memory.weights + memory.gradients + memory.optimizer).count) * 7.5 / parameters;
  };
  EXPECT_NEAR(gigabytes(Zero::none), 120.0, 1e-6);
  EXPECT_NEAR(gigabytes(Zero::optimizer), 31.4, 0.05);
  EXPECT_NEAR(gigabytes(Zero::gradients), 16.6, 0.05);
  EXPECT_NEAR(gigabytes(Zero::weights), 1.9, 0.05);
}

TEST(StepMemory, HoldsTwoGatheredLayersAndOneOfGradients) {
  const Transformer model{
      .layers = 4, .hidden = 1024, .ffn = 4096, .heads = 16, .kv_heads = 16, .head_dim = 64, .vocab = 1000};
  TrainingPlan plan{.data = 8, .zero = Zero::weights, .global_batch = 16, .gradient_dtype = DType::bf16};
  const std::int64_t layer = parameters_on_gpu(model, plan, LayerKind{.attention = true, .mlp = MlpKind::dense});
  EXPECT_EQ(step_memory(model, plan, 0).gathered.count, 2 * (2 * layer + layer));
  plan.zero = Zero::gradients;
  EXPECT_EQ(step_memory(model, plan, 0).gathered.count, 2 * layer);
  plan.zero = Zero::optimizer;
  EXPECT_EQ(step_memory(model, plan, 0).gathered.count, 0);
  plan = {.zero = Zero::weights, .global_batch = 16};  // There are no replicas to shard among.
  EXPECT_EQ(step_memory(model, plan, 0).gathered.count, 0);
  Transformer large_vocabulary = model;
  large_vocabulary.vocab = 100 * layer / model.hidden;
  plan = {.data = 8, .zero = Zero::weights, .global_batch = 16, .gradient_dtype = DType::bf16};
  EXPECT_EQ(step_memory(large_vocabulary, plan, 0).gathered.count,
            4 * large_vocabulary.vocab * large_vocabulary.hidden);
}

constexpr MemoryRules narrow_weights{.fp8_weights = Fp8Weights::narrow};

// Embedding and logits of 1000 x 1024 and the last norm keep 16 bits.
TEST(StepMemory, HoldsNarrowWeightsOfFp8LayersIn8Bits) {
  const Transformer model{
      .layers = 4, .hidden = 1024, .ffn = 4096, .heads = 16, .kv_heads = 16, .head_dim = 64, .vocab = 1000};
  TrainingPlan plan{.data = 8, .zero = Zero::weights, .global_batch = 16, .dtype = DType::fp8};
  const std::int64_t layer = parameters_on_gpu(model, plan, dense_layer);
  const std::int64_t around = 2 * 1000 * 1024 + 1024;
  ASSERT_EQ(parameters_on_gpu(model, plan, 0), 4 * layer + around);
  const StepMemory narrow = step_memory(model, plan, 0, narrow_weights);
  EXPECT_EQ(narrow.weights.count, (4 * layer + 2 * around) / 8);
  EXPECT_EQ(narrow.gathered.count, 2 * layer + 4 * layer);  // weights of two layers; gradients of one, in 32 bits
  const StepMemory wide = step_memory(model, plan, 0);
  EXPECT_EQ(wide.weights.count, 2 * (4 * layer + around) / 8);
  EXPECT_EQ(wide.gathered.count, 2 * 2 * layer + 4 * layer);
  EXPECT_EQ(wide.activations, narrow.activations);
  plan.zero = Zero::optimizer;
  EXPECT_EQ(largest_step_memory(model, plan, narrow_weights).weights.count, 4 * layer + 2 * around);
  plan.dtype = DType::bf16;
  EXPECT_EQ(largest_step_memory(model, plan, narrow_weights).weights.count, 2 * (4 * layer + around));
}

TEST(StepMemory, HoldsNarrowWeightsOfExpertsIn8Bits) {
  Transformer mixture = small_mixture();
  mixture.tied_embeddings = true;
  const TrainingPlan plan{.data = 4, .expert = 4, .zero = Zero::optimizer, .global_batch = 4, .dtype = DType::fp8};
  const std::int64_t around = 32000 * 1024 + 1024;
  EXPECT_EQ(step_memory(mixture, plan, 0, narrow_weights).weights.count, parameters_on_gpu(mixture, plan, 0) + around);
}

TEST(StepMemory, DoesNotShardGradientsThatAPipelineAccumulates) {
  const Transformer model{
      .layers = 4, .hidden = 1024, .ffn = 4096, .heads = 16, .kv_heads = 16, .head_dim = 64, .vocab = 1000};
  TrainingPlan plan{
      .pipeline = 2, .data = 8, .zero = Zero::gradients, .global_batch = 64, .gradient_dtype = DType::bf16};
  EXPECT_EQ(step_memory(model, plan, 0).gradients.count, 2 * parameters_on_gpu(model, plan, 0));
  plan.pipeline = 1;
  EXPECT_EQ(step_memory(model, plan, 0).gradients.count, 2 * parameters_on_gpu(model, plan, 0) / 8);
}

// Two stages of two chunks, two micro-batches: stage 0 runs all four forward passes before its first backward pass.
TEST(StepMemory, CountsWholeGradientsAtTheFullestMoment) {
  const Transformer model{
      .layers = 8, .hidden = 1024, .ffn = 4096, .heads = 16, .kv_heads = 16, .head_dim = 64, .vocab = 1000};
  TrainingPlan plan{.pipeline = 2,
                    .interleave = 2,
                    .data = 8,
                    .zero = Zero::gradients,
                    .global_batch = 16,
                    .seq = 8192,
                    .gradient_dtype = DType::bf16};
  const std::int64_t gradients = 2 * parameters_on_gpu(model, plan, 0);
  // Two micro-batches in four layers, and the gradients of the chunk that runs the first backward pass.
  StepMemory memory = step_memory(model, plan, 0);
  EXPECT_EQ(memory.activations.count, 2 * 4 * layer_activations(model, plan, dense_layer).count);
  EXPECT_EQ(memory.gradients.count, gradients / 2);
  // With few tokens gradients matter more: the fullest moment holds all of them and the activations of one micro-batch.
  plan.seq = 64;
  memory = step_memory(model, plan, 0);
  EXPECT_EQ(memory.activations.count, 4 * layer_activations(model, plan, dense_layer).count);
  EXPECT_EQ(memory.gradients.count, gradients);
  // With more micro-batches, forward and backward passes alternate, so activations and gradients are in memory
  // together.
  plan.seq = 8192;
  plan.global_batch = 32;
  memory = step_memory(model, plan, 0);
  EXPECT_EQ(memory.activations.count, 5 * 4 / 2 * layer_activations(model, plan, dense_layer).count);
  EXPECT_EQ(memory.gradients.count, gradients);
}

TEST(StepMemory, AgreesForAllStagesTogetherAndForEachStage) {
  const Transformer model{.layers = 7,
                          .hidden = 1024,
                          .ffn = 4096,
                          .heads = 16,
                          .kv_heads = 4,
                          .head_dim = 128,
                          .vocab = 32000,
                          .state_space = StateSpace{.inner = 2048, .head_dim = 64, .state = 64},
                          .kinds = kinds_of_letters("M*M-M*-", false)};
  const TrainingPlan plan{.pipeline = 3, .global_batch = 6};
  const std::vector<StageParameters> stages = parameters_by_stage(model, plan);
  ASSERT_EQ(stages.size(), 3U);
  // Two, three and two layers: the first and the last stage also have the embedding and the logits.
  const std::int64_t state_space = parameters_on_gpu(model, plan, LayerKind{.state_space = true});
  const std::int64_t attention = parameters_on_gpu(model, plan, LayerKind{.attention = true});
  const std::int64_t mlp = parameters_on_gpu(model, plan, LayerKind{.mlp = MlpKind::dense});
  EXPECT_EQ(stages[0].whole, 32000 * 1024 + state_space + attention);
  EXPECT_EQ(stages[1].whole, state_space + mlp + state_space);
  EXPECT_EQ(stages[2].whole, attention + mlp + 32000 * 1024 + 1024);
  StepMemory largest;
  for (std::int64_t stage = 0; stage < 3; ++stage) {
    EXPECT_EQ(parameters_on_gpu(model, plan, stage), stages[static_cast<std::size_t>(stage)].whole);
    const StepMemory memory = step_memory(model, plan, stage);
    largest = memory.total() > largest.total() ? memory : largest;
  }
  EXPECT_EQ(largest_step_memory(model, plan).total(), largest.total());
}

TEST(StepMemory, GrowsWithInterleavingAsInKorthikanti) {
  TrainingPlan plan = korthikanti(8, true, Recompute::selective);
  plan.pipeline = 4;
  plan.global_batch = 64;
  plan.dropout = false;
  const double without_interleaving = static_cast<double>(step_memory(gpt_22b, plan, 0).activations.count);
  plan.interleave = 3;
  const double interleaved = static_cast<double>(step_memory(gpt_22b, plan, 0).activations.count);
  // 1 + (stages - 1) / (stages x chunks per stage)
  EXPECT_NEAR(interleaved / without_interleaving, 1.0 + 3.0 / (4.0 * 3.0), 1e-12);
}

TEST(StepMemory, HoldsAllParametersOverAllStages) {
  TrainingPlan plan = korthikanti(1, false, Recompute::none);
  plan.pipeline = 4;
  std::int64_t sum = 0;
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    sum += parameters_on_gpu(gpt_22b, plan, stage);
  }
  // The last stage has a copy of the tied embedding.
  EXPECT_EQ(sum, parameters_of(gpt_22b).total() + gpt_22b.vocab * gpt_22b.hidden);
}

}  // namespace
}  // namespace commfuse
