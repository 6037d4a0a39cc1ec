// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/scope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "model/config_error.h"
#include "model/workload/bare_mlp.h"
#include "tests/model/llama_70b.h"
#include "tests/refusal.h"

namespace commfuse {
namespace {

using test::llama_70b;

Program program_of(Scope scope, std::int32_t ranks, const char* strategy = "serial") {
  return generate(operation_of(scope, true), Mesh{{{"tp", ranks}}}, 0, *find_strategy(strategy), {});
}

/// Returns the unfused GEMMs of a scope on one rank, m x n x k in elements.
std::vector<std::array<std::int64_t, 3>> gemms(Scope scope, std::int32_t ranks, std::int64_t tokens) {
  const Program program = program_of(scope, ranks);
  const Sizes sizes = bind_sizes(program, quantities_of(llama_70b, {.seq = tokens}));
  std::vector<std::array<std::int64_t, 3>> result;
  for (const Shape& shape : program.unfused) {
    if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
      result.push_back({sizes.elements(gemm->m), sizes.elements(gemm->n), sizes.elements(gemm->k)});
    }
  }
  return result;
}

TEST(Scope, EveryRankMultipliesAllTokensByItsShareOfTheWeights) {
  using Gemms = std::vector<std::array<std::int64_t, 3>>;
  EXPECT_EQ(gemms(Scope::qkv, 8, 4096), (Gemms{{4096, 10240 / 8, 8192}}));  // (64 + 2 x 8) x 128 columns
  EXPECT_EQ(gemms(Scope::out_proj, 8, 4096), (Gemms{{4096, 8192, 8192 / 8}}));
  EXPECT_EQ(gemms(Scope::gate_up, 8, 4096), (Gemms{{4096, 2 * 28672 / 8, 8192}}));
  EXPECT_EQ(gemms(Scope::down, 8, 4096), (Gemms{{4096, 8192, 28672 / 8}}));
  EXPECT_EQ(gemms(Scope::mlp, 8, 4096), (Gemms{{4096, 2 * 28672 / 8, 8192}, {4096, 8192, 28672 / 8}}));
}

/// Returns the FLOPs of causal attention of all heads: half of 4 x tokens x seq x 8192.
double attention_flops(Scope scope) { return has_attention(scope) ? 2.0 * 4096 * 4096 * 8192 : 0.0; }

TEST(Scope, FlopsCountGemmsOnAllRanksAndCausalAttention) {
  // 2 x 4096 x 8192 x 57344 + 2 x 4096 x 28672 x 8192 = 3.848e12 + 1.924e12.
  EXPECT_EQ(flops_of(Scope::mlp, llama_70b, {.seq = 4096}).count,
            2.0 * 4096 * 8192 * 57344 + 2.0 * 4096 * 28672 * 8192);
  for (const Scope scope : all_scopes) {
    double on_all_ranks = attention_flops(scope);
    for (const auto& [m, n, k] : gemms(scope, 4, 4096)) {
      on_all_ranks += 4.0 * 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    }
    EXPECT_EQ(flops_of(scope, llama_70b, {.seq = 4096}).count, on_all_ranks) << name_of(scope);
  }
}

TEST(Scope, AllStrategiesCutTheSameWork) {
  for (const Scope scope : all_scopes) {
    for (const Strategy& strategy : strategies()) {
      if (!applies(strategy, kinds_of(scope))) {
        continue;
      }
      const Program program = program_of(scope, 4, std::string{strategy.name}.c_str());
      const Sizes sizes = bind_sizes(program, quantities_of(llama_70b, {.seq = 4096}));
      double flops = attention_flops(scope) / 4;
      for (const Op& op : program.ops) {
        if (const auto* gemm = std::get_if<GemmShape>(&program.shapes[op.shape])) {
          flops += 2.0 * static_cast<double>(sizes.elements(gemm->m)) * static_cast<double>(sizes.elements(gemm->n)) *
                   static_cast<double>(sizes.elements(gemm->k));
        }
      }
      EXPECT_EQ(4 * flops, flops_of(scope, llama_70b, {.seq = 4096}).count) << strategy.name << " " << name_of(scope);
    }
  }
}

TEST(Scope, BatchesShareTheTokensButNotTheirAttention) {
  // Four sequences of 1024 have the GEMMs of one sequence of 4096, and a quarter of its attention.
  const Flops one_sequence = flops_of(Scope::attention, llama_70b, {.seq = 4096});
  const Flops four_sequences = flops_of(Scope::attention, llama_70b, {.batch = 4, .seq = 1024});
  EXPECT_EQ(one_sequence.count - four_sequences.count, 0.75 * attention_flops(Scope::attention));
}

TEST(Scope, ALayerIsNormedTwiceAndAddedTwice) {
  std::vector<Function> functions;
  std::size_t attentions = 0;
  for (const Shape& shape : program_of(Scope::layer, 4).unfused) {
    attentions += std::holds_alternative<AttentionShape>(shape) ? 1U : 0U;
    if (const auto* elementwise = std::get_if<ElementwiseShape>(&shape)) {
      functions.push_back(elementwise->function);
    }
  }
  EXPECT_EQ(attentions, 1U);
  EXPECT_EQ(functions,
            (std::vector{Function::norm, Function::residual, Function::norm, Function::swiglu, Function::residual}));
}

std::string split_refusal(Scope scope, int ranks) {
  return test::refusal_of([&] { require_divisible(scope, llama_70b, {.seq = 840}, ranks); });
}

TEST(Scope, ImpossibleSplitsAreUserErrorsInEveryPass) {
  const std::string ffn =
      " ffn columns of llama-3.1-70b cannot be split over 3 ranks; choose ranks that divide ffn (28672): ";
  for (const Scope scope : {Scope::gate_up_backward, Scope::down_backward, Scope::fsdp_gate_up, Scope::data_parallel}) {
    EXPECT_EQ(split_refusal(scope, 8), "accepted");
    EXPECT_EQ(split_refusal(scope, 3).rfind("28672" + ffn, 0), 0U) << split_refusal(scope, 3);
  }
  EXPECT_EQ(split_refusal(Scope::fsdp_gate_up, 7), "accepted");
  EXPECT_EQ(split_refusal(Scope::data_parallel, 7),
            "8192 hidden columns of llama-3.1-70b cannot be split over 7 ranks; choose ranks that divide hidden "
            "(8192): 1, 2, "
            "4, 8, 16, 32, 64, 128, 256, 512, 1024");
}

TEST(Scope, ABareMixtureHasTheGemmsOfItsExperts) {
  const Transformer model = bare_mixture({.hidden = 64, .ffn = 128}, {.count = 8, .active = 2, .ranks = 4});
  EXPECT_TRUE(is_expert_gemm(Scope::gate_up, model));
  EXPECT_TRUE(is_expert_gemm(Scope::down, model));
  EXPECT_FALSE(is_expert_gemm(Scope::gate_up, bare_mlp({.hidden = 64, .ffn = 128})));
  EXPECT_FALSE(is_expert_gemm(Scope::gate_up_backward, model));
  EXPECT_EQ(flops_of(Scope::gate_up, model, {.seq = 32}).count, 2.0 * (2.0 * 32 * 64 * 128));
  const auto refusal = [&](Scope scope, int ranks) {
    return test::refusal_of([&] { require_divisible(scope, model, {.seq = 32}, ranks); });
  };
  EXPECT_EQ(refusal(Scope::gate_up, 8), "accepted");
  EXPECT_EQ(refusal(Scope::down, 4), "accepted");
  EXPECT_EQ(refusal(Scope::down, 2),
            "2 ranks cannot be split into groups of 4, over which 64x128-e8-top2-ep4 splits its experts; choose a "
            "multiple of 4");
  EXPECT_EQ(refusal(Scope::mlp, 4),
            "scope mlp needs a plain MLP, but 64x128-e8-top2-ep4 has experts in 1 of 1 layers; choose scope gate_up or "
            "down");
}

TEST(Scope, RanksBeyondTheKvHeadsHoldCopiesInForwardPassesOnly) {
  for (const Scope scope : {Scope::qkv, Scope::attention, Scope::layer}) {
    EXPECT_EQ(split_refusal(scope, 12).substr(0, 10), "8 kv heads");
    EXPECT_EQ(split_refusal(scope, 24).substr(0, 8), "64 heads");
  }
  const auto columns = [](int ranks) {
    const std::vector<Quantity> quantities = quantities_of(llama_70b, {.seq = 4096}, ranks);
    return std::find_if(quantities.begin(), quantities.end(),
                        [](const Quantity& quantity) { return quantity.dimension == "qkv"; })
        ->elements;
  };
  EXPECT_EQ(columns(8), (64 + 2 * 8) * 128);
  EXPECT_EQ(columns(64), (64 + 2 * 64) * 128);
  EXPECT_EQ(key_heads_of(Scope::qkv_backward), KeyHeads::split);
  EXPECT_EQ(key_heads_of(Scope::ulysses), KeyHeads::split);
  EXPECT_EQ(key_heads_of(Scope::layer), KeyHeads::copied);
}

TEST(Scope, BackwardIsTwiceForwardAndATrainingStepThreeTimes) {
  const auto flops = [](Scope scope) { return flops_of(scope, llama_70b, {.seq = 4096}).count; };
  EXPECT_EQ(flops(Scope::qkv_backward), 2 * flops(Scope::qkv));
  EXPECT_EQ(flops(Scope::out_proj_backward), 2 * flops(Scope::out_proj));
  EXPECT_EQ(flops(Scope::gate_up_backward), 2 * flops(Scope::gate_up));
  EXPECT_EQ(flops(Scope::down_backward), 2 * flops(Scope::down));
  EXPECT_EQ(flops(Scope::fsdp_gate_up), flops(Scope::gate_up));
  EXPECT_EQ(flops(Scope::data_parallel), 3 * 2 * flops(Scope::down));
}

TEST(Scope, TokensThatDoNotDivideIntoBlocksAreUserErrors) {
  StrategyOptions options;
  options.slices = 8;
  const Program program = generate(operation_of(Scope::gate_up, true), Mesh{{{"tp", 8}}}, 0, sliced_strategy, options);
  try {
    bind_sizes(program, quantities_of(llama_70b, {.seq = 1000}));
    FAIL() << "1000 tokens were cut into 64 blocks";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "1000 tokens cannot be cut into 64 equal blocks, as sliced (k=8) gate_up requires; choose a multiple of "
        "64, such as 960 or 1024");
  }
}

TEST(Scope, NamesAreReadBack) {
  for (const Scope scope : all_scopes) {
    EXPECT_EQ(scope_named(name_of(scope)), scope);
  }
  EXPECT_EQ(scope_named("mpl"), std::nullopt);
}

}  // namespace
}  // namespace commfuse
