// SPDX-License-Identifier: Apache-2.0
// Tests that TransformerEngine's methods are chosen by the prices of its own kernels, or by ideal kernels where its own
// have no prices.
#include "sim/tune/overlap_choices.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"

namespace commfuse {
namespace {

/// Returns the choices for eight tensor ranks that process this many tokens together.
OverlapChoices choices_with(std::int64_t tokens, const char* hardware = "h100-sxm",
                            const char* model_name = "llama-3.1-8b") {
  const Transformer model = load_model(model_name);
  const Machine machine = load_machine(hardware);
  TrainingPlan plan;
  plan.tensor = 8;
  plan.sequence_parallel = true;
  plan.micro_batch = 1;
  plan.seq = tokens;
  return overlap_choices({.model = &model, .machine = &machine, .gpus = 8, .base = plan, .wish = {}}, plan);
}

using Methods = std::vector<std::pair<std::string, OverlapMethod>>;

Methods methods_of(const OverlapChoices& choices) {
  Methods methods;
  for (const OverlapChoice& choice : choices.gemms) {
    methods.emplace_back(choice.gemm.name, choice.method);
  }
  return methods;
}

constexpr OverlapMethod no_overlap = OverlapMethod::none;
constexpr OverlapMethod ring_overlap = OverlapMethod::ring_exchange;

// Steps of a ring cost 30 us each. With few tokens only the largest GEMM is long enough to hide them.
TEST(OverlapChoices, AGemmThatTheRingMakesLongerDoesNotOverlap) {
  const OverlapChoices choices = choices_with(8192);
  EXPECT_TRUE(choices.by_own_prices()) << choices.no_prices;
  EXPECT_EQ(methods_of(choices),
            (Methods{{"qkv", no_overlap}, {"proj", no_overlap}, {"fc1", ring_overlap}, {"fc2", no_overlap}}));
  for (const OverlapChoice& choice : choices.gemms) {
    EXPECT_EQ(choice.change() < 0.0, choice.method == ring_overlap) << choice.gemm.name;
    EXPECT_EQ(choice.overlapped.strategy->name, "ring_exchange") << choice.gemm.name;
  }
  EXPECT_TRUE(choices.overlaps(false));
  EXPECT_FALSE(choices.overlaps(true));
}

// At 64K tokens the ring saves a quarter of fc2's time, and changes the time of proj by a few percent.
TEST(OverlapChoices, ReduceScattersAreSwitchedTogether) {
  const OverlapChoices choices = choices_with(65536);
  EXPECT_EQ(methods_of(choices),
            (Methods{{"qkv", ring_overlap}, {"proj", ring_overlap}, {"fc1", ring_overlap}, {"fc2", ring_overlap}}));
  EXPECT_LT(choices.gemms.back().change(), -0.1);
}

TEST(OverlapChoices, WithVeryFewTokensNothingOverlaps) {
  const OverlapChoices choices = choices_with(1024);
  EXPECT_EQ(methods_of(choices),
            (Methods{{"qkv", no_overlap}, {"proj", no_overlap}, {"fc1", no_overlap}, {"fc2", no_overlap}}));
  EXPECT_FALSE(choices.overlap_somewhere());
}

TEST(OverlapChoices, IdealKernelsDecideWhereTeHasNoPrices) {
  const OverlapChoices choices = choices_with(8192, "ascend-910b-mesh");
  EXPECT_EQ(choices.no_prices, "te does not run on ascend-910b-mesh; it is for ampere, hopper, blackwell");
  ASSERT_EQ(choices.gemms.size(), 4U);
  for (const OverlapChoice& choice : choices.gemms) {
    EXPECT_NE(choice.method, no_overlap) << choice.gemm.name;
    EXPECT_TRUE(choice.gemm.scatters || choice.method == ring_overlap) << choice.gemm.name;
  }
}

TEST(OverlapChoices, NameKernelsThatNobodyMeasuredThere) {
  EXPECT_EQ(choices_with(8192, "b200-sxm").unmeasured, "te was not measured on GPUs such as B200 SXM");
  EXPECT_EQ(choices_with(8192).unmeasured, "");
}

TEST(OverlapChoices, AMixtureOfExpertsHasOnlyTheGemmsOfItsAttention) {
  const OverlapChoices choices = choices_with(8192, "h100-sxm", "mixtral-8x7b");
  ASSERT_EQ(choices.gemms.size(), 2U);
  EXPECT_EQ(choices.gemms.front().gemm.name, "qkv");
  EXPECT_EQ(choices.gemms.back().gemm.name, "proj");
}

TEST(OverlapChoices, WithoutSequenceParallelismAreEmpty) {
  const Transformer model = load_model("llama-3.1-8b");
  const Machine machine = load_machine("h100-sxm");
  EXPECT_TRUE(
      overlap_choices({.model = &model, .machine = &machine, .gpus = 8, .base = {}, .wish = {}}, {}).gemms.empty());
}

}  // namespace
}  // namespace commfuse
